"""Pure decisions: values in, a value out."""
