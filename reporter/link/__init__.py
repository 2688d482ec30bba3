"""A client library for workers of an aggregator: results, progress and heartbeats over mutual TLS.

    with AggregatorClient(WorkerConfig.from_env(os.environ)) as client:
        client.post_progress(Progress(msg="half of it", total=10, completed=5))
        delivery = client.put_result(ResultSource.from_file("report.json"))

Needs urllib3 and nothing else. It imports neither settings, log nor metrics of the sidecar, and
nothing of Kubernetes.
"""

from reporter.core.payloads import ADAPTER_RESULT
from reporter.core.run.progress import Progress, combine
from reporter.link.answers import Beat, Delivery, Outcome, Reply
from reporter.link.client import AggregatorClient
from reporter.link.config import ConfigError, WorkerConfig
from reporter.link.connection import NoAnswer
from reporter.link.gather import gather
from reporter.link.heart import Heart
from reporter.link.relay import Relay
from reporter.link.sockets import Limits
from reporter.link.source import ResultSource, SourceError
from reporter.link.trust import TrustError

__all__ = [
    "ADAPTER_RESULT",
    "AggregatorClient",
    "Beat",
    "ConfigError",
    "Delivery",
    "Heart",
    "Limits",
    "NoAnswer",
    "Outcome",
    "Progress",
    "Relay",
    "Reply",
    "ResultSource",
    "SourceError",
    "TrustError",
    "WorkerConfig",
    "combine",
    "gather",
]
