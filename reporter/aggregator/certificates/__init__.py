"""The certificates of a run: made, kept, handed out, put to use."""
