"""Pages: limits found by a scan, main text extracted in a process that may be stopped."""
