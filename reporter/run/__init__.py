"""One run of an aggregator as values: what is expected, what came, what it adds up to.

Standard library only; no I/O, thread, randomness or logging in here. Times are arguments: by the
run's clock where they outlive a process, the aggregator's monotonic seconds for heartbeats.
"""
