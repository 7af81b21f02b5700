"""Everything that proves bolide; the folders are explained in CONTRIBUTING.md."""
