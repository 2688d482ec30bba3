"""What became of a Job, in sentences: from API objects to findings. No I/O, no clock.

`written_verdict` reads what stands on the Job, `setting` how the reporter was set up, `pod` and
`container` why a Pod does not go on; `job` adds the rest and puts them together.
"""
