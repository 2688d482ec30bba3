"""`status-ctl explain`, `jobs` and `wait JOB`: from a Job and its Pods to findings."""
