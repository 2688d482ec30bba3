"""One run of an aggregator as values: what is expected, what came, what it adds up to.

Standard library only; no I/O, clock, thread, randomness or logging in here. Times are arguments:
Unix seconds where they outlive a process, the aggregator's monotonic seconds for heartbeats.
"""
