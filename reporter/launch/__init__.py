"""What a run has in the cluster: its objects, what was seen of them, what to do about it.

Values and decisions. The aggregator's launcher and `status-ctl run` carry them out.
"""
