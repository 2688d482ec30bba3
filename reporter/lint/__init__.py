"""What of a Job's manifest would go wrong, before it does. `rules` has the table of all rules."""
