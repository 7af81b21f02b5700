"""The examples that readers will copy."""
