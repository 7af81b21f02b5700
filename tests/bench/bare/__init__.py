"""Load from bare sockets: what a broker has when its client costs next to nothing."""
