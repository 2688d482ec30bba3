"""A client library for workers of an aggregator: results, progress and heartbeats over mutual TLS.

    with AggregatorClient(WorkerConfig.from_env(os.environ)) as client:
        client.post_progress(Progress(msg="half of it", total=10, completed=5))
        delivery = client.put_result(ResultSource.from_file("report.json"))

Needs urllib3 and nothing else. It imports neither settings, log nor metrics of the sidecar, and
nothing of Kubernetes.
"""

from reporter.common.defaults import ADAPTER_RESULT
from reporter.errors import NoAggregatorPod
from reporter.link.client import AggregatorClient
from reporter.link.config import ConfigError, WorkerConfig
from reporter.link.connection import NoAnswer, TimeLimits
from reporter.link.gather import gather
from reporter.link.heart import Heart
from reporter.link.messages import (
    PATH_PROGRESS_BY_NODE,
    PATH_PROGRESS_GLOBAL,
    PATH_RESULTS_BY_NODE,
    PATH_RESULTS_GLOBAL,
    Beat,
    Delivery,
    Outcome,
    Reply,
    global_result_url,
    node_result_url,
)
from reporter.link.relay import Relay
from reporter.link.source import ResultSource, SourceError
from reporter.link.trust import TrustError
from reporter.run.progress import Progress, combine

__all__ = [
    "ADAPTER_RESULT",
    "PATH_PROGRESS_BY_NODE",
    "PATH_PROGRESS_GLOBAL",
    "PATH_RESULTS_BY_NODE",
    "PATH_RESULTS_GLOBAL",
    "AggregatorClient",
    "Beat",
    "ConfigError",
    "Delivery",
    "Heart",
    "NoAggregatorPod",
    "NoAnswer",
    "Outcome",
    "Progress",
    "Relay",
    "Reply",
    "ResultSource",
    "SourceError",
    "TimeLimits",
    "TrustError",
    "WorkerConfig",
    "combine",
    "gather",
    "global_result_url",
    "node_result_url",
]
