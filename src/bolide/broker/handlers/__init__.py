"""What the broker does for each request, one file per family."""
