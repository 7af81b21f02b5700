"""Real Java clients, 5.5.0 and 4.9.7, against a server: bolide by default, Apache's own with --server=apache."""
