"""Names of other clients, for code that was written for them.  They use bolide's public clients and nothing deeper."""
