"""The house rules that no linter knows: contracts, sizes, compiled modules, text."""
