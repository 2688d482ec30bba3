"""A real aggregator as a process, and load on it: for benchmarks and long tests."""
