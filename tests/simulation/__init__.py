"""A world in virtual time: real servers and clients on a simulated network, disk and clock, all from one seed."""
