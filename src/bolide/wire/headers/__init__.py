"""The fields of each request and response, one file per family."""
