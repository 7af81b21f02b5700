"""A stored message's bytes: the same in the log, in a pull answer and in replication."""
