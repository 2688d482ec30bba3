"""What can be looked at: each source returns plain values and never raises for what it finds."""
