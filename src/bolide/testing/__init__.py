"""Test support that ships with the package."""
