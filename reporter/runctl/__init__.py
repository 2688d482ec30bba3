"""The commands for runs: create, find, follow, retrieve, delete."""
