"""Tools for a store that no broker runs on: look into it, verify it, repair it, take its messages out."""
