"""Judging: the reports that tools write, read into items, counts and one verdict.

The parsers are fed bytes and hold no more than their caps, whatever they are fed. Which file is
read, and where, is decided elsewhere.
"""
