"""What a machine's files say about it: parsers of text, and nodes compared with each other."""
