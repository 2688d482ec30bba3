"""Safe reading of archives that strangers packed: gzip and tar, within caps."""
