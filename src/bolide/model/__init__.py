"""Values that every room shares: frozen, validated, without I/O."""
