"""Defects made on purpose, to see whether the soak finds them."""
