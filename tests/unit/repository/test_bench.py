"""The benchmarks' own arithmetic."""

import json
from types import SimpleNamespace

from tests.aggregators.load import finish
from tests.bench.aggregator import Measured


def test_a_server_that_takes_nothing_is_measured_too():
    """As one that is asked with the wrong certificate."""
    said = {"statuses": {}, "errors": {"tls": 20}, "milliseconds": {}, "seconds": 2.0, "bytes": 0}
    load = SimpleNamespace(
        communicate=lambda timeout: (json.dumps(said).encode(), None),
        kill=lambda: None,
        returncode=0,
    )
    assert "0 MB/s" == Measured(finish(load, 1.0), 0.0, 0).speed()
