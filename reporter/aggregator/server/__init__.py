"""Sockets, TLS and limits of the aggregator's listeners."""
