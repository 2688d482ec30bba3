"""The values of a run: plan, definitions, names, entries, progress, status. No I/O."""
