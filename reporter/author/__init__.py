"""What only `status-ctl try` needs: a child process, its memory limit, its Job in memory."""
