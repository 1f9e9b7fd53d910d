"""What is learned once from texts or given as a file: frozen, loaded and asked."""
