"""A sidecar with a link: its variables, and what its aggregator got."""

from tests.aggregators.scripted import Scripted
from tests.ports import free_port


def linked(aggregator: Scripted, **variables: str) -> dict[str, str]:
    """The variables of a link; beats are off unless said."""
    port = {"SONOBUOY_PROGRESS_PORT": str(free_port()), "WORKER_HEARTBEAT_SECONDS": "0"}
    return {**aggregator.environment(), **port, **variables}


def lingering(seconds: int) -> dict[str, str]:
    """The variables of a reporter that nobody scrapes."""
    address = {"METRICS_PORT": str(free_port()), "METRICS_ADDRESS": "127.0.0.1"}
    return {**address, "METRICS_LINGER_SECONDS": str(seconds)}


def short_grace(pod: dict) -> None:
    """Leave the reporter little time after SIGTERM."""
    pod["spec"]["terminationGracePeriodSeconds"] = 4


def results(aggregator: Scripted) -> list[tuple[str, bytes, str]]:
    """Target, body and outcome of every upload so far."""
    return [
        (heard.target, heard.body, heard.headers.get("result-outcome", ""))
        for heard in aggregator.requests
        if heard.method == "PUT"
    ]
