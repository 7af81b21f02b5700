"""JSON bodies of requests and answers, one file per family."""
