"""What `status-ctl reap` does in the cluster."""
