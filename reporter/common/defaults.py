"""Names, defaults and variables that several programs share. Imported before anything heavy."""

REPORTER = "status-reporter"
"""The reporter's container, and who an Event of ours is from."""
RESULTS_PATH = "/results/adapter-result.json"
WAIT_SECONDS = 300
ADAPTER_RESULT = "status-reporter.io/adapter-result.v1"
"""What an adapter's result file is called in the header `Result-Format` of an upload."""
UNREACHED, REACHED = "Cannot reach the aggregator", "Reached the aggregator"
"""What a worker logs at its start; the launcher looks for it."""
METADATA_BYTES = 4096
"""Of the header `Result-Metadata` of an upload."""


def is_service_link(variable: str, value: str) -> bool:
    """Return whether the kubelet has made this variable of a Service's name.

    A Service `metrics` gives every container METRICS_PORT=tcp://10.0.0.1:9090, which is how Docker
    linked containers, and nobody's setting.
    """
    return variable.endswith("_PORT") and value.startswith(("tcp://", "udp://", "sctp://"))


def service_link_ignored(variable: str, value: str) -> str:
    """Say in one line that such a variable is not used."""
    return f"{variable}={value[:64]!r}: set by Kubernetes for a Service, not a setting"
