"""Real Jobs on the test bed, run and recorded: for the cluster tests and the long series.

What a test expects of them does not live here, but in the tables of `cluster`.
"""
