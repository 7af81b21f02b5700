"""Every parser, fed with inputs that are almost right.  `python -m tests.fuzz --help` runs many of them."""
