"""The command for people, one module per command."""
