"""Judging results in a process of its own: what is in them costs no time of the loop.

What a parser holds, how long it takes and how it ends is the child's matter alone.
"""
