"""Reading reports: parsers, and the separate process for untrusted ones."""
