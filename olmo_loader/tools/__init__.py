"""The command line tools behind ``python -m olmo_loader``: inspect, verify, stats. No torch."""
