"""A real aggregator, as a process or deployed, and load on it: for benchmarks and slow tests."""
