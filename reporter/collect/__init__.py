"""Gatherers: programs that write what they find about a machine into a directory, and ours."""
