"""The test bed: a real control plane and a real node on one machine, without a container engine.

Tests and ``python -m tests.bed`` use it; nothing in ``reporter`` may import it.
"""
