"""Every command of the original's `mqadmin`, run against the original and against bolide, and compared."""
