"""Our Python clients with our server beside others with theirs: one kind of load, each in a process of its own."""
