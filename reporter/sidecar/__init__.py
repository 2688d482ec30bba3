"""The sidecar: wiring and daemon life; decisions are in core, the loop in loop."""
