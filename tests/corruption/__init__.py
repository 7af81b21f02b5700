"""Bytes change behind the store's back: flips, overwritten runs, truncations, swapped pages, in every kind of file."""
