"""`status-ctl try` and `validate`: an adapter without a cluster."""
