"""Values and decisions.

Standard library only; no I/O, clock, thread, randomness or logging in here.
"""
