"""What a name server answers, one file per family of requests."""
