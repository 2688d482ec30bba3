"""Judging results in a process of its own: what is in them costs no time of the loop.

The memory of a parser, its time and its end affect the child alone.
"""
