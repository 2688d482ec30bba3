"""Where reports go: each place takes the same statements."""
