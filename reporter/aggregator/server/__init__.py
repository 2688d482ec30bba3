"""Sockets, TLS and limits of the listeners."""
