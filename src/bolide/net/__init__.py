"""The shells: sockets and time around the protocol of `wire`."""
