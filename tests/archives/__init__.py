"""Archives for tests, made by hand; those that somebody made to do harm among them."""
