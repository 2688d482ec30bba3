"""What follows a run: the tarball with everything people get."""
