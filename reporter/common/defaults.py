"""Names and defaults that several programs share. Imported before anything heavy."""

REPORTER = "status-reporter"
"""The reporter's container, and who an Event of ours is from."""
RESULTS_PATH = "/results/adapter-result.json"
WAIT_SECONDS = 300
ADAPTER_RESULT = "status-reporter.io/adapter-result.v1"
"""What an adapter's result file is called in the header `Result-Format` of an upload."""
