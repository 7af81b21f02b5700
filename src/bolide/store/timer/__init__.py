"""The index of timed messages: which message of the log is due when, in the original's own files."""
