"""Finding a run, and asking it."""
