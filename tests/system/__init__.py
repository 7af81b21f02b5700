"""The `bolide` command as its users run it: real processes, real signals, real pipes, raw sockets."""
