"""What `status-ctl reap` decides: which Jobs wait in vain for their reporter, and what they get."""
