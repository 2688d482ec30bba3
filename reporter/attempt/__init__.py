"""Look, decide, act for one Job: the loop, and what it asks of others."""
