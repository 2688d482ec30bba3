"""The figures of docs/benchmarks.md, measured: `make bench`."""
