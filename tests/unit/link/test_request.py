"""The addresses of a worker's requests, for who makes them without our client."""

import pytest

from reporter.aggregator.api.target import Route, parse_target
from reporter.link import (
    PATH_PROGRESS_BY_NODE,
    PATH_PROGRESS_GLOBAL,
    PATH_RESULTS_BY_NODE,
    PATH_RESULTS_GLOBAL,
    global_result_url,
    node_result_url,
)
from reporter.run.plan import Key

BASE = "https://aggregator.ns.svc:8080"


def test_the_paths_are_those_that_the_aggregator_serves():
    """Each with a key behind it is a target of its kind."""
    found = [
        parse_target(f"{path}/{names}")
        for path, names in [
            (PATH_RESULTS_GLOBAL, "e2e"),
            (PATH_RESULTS_BY_NODE, "node1/sysd"),
            (PATH_PROGRESS_GLOBAL, "e2e"),
            (PATH_PROGRESS_BY_NODE, "node1/sysd"),
        ]
    ]
    e2e, sysd = Key("e2e", "global"), Key("sysd", "node1")

    assert [
        (Route.RESULTS, e2e),
        (Route.RESULTS, sysd),
        (Route.PROGRESS, e2e),
        (Route.PROGRESS, sysd),
    ] == [(target.route, target.key) for target in found if target]


@pytest.mark.parametrize("base", [BASE, f"{BASE}/", f"{BASE}/some/path?query"])
def test_a_result_has_one_address(base):
    """A path in the base is dropped; names are escaped once."""
    assert f"{BASE}/api/v1/results/global/e2e" == global_result_url(base, "e2e")
    assert f"{BASE}/api/v1/results/by-node/n%2F1/e%20e" == node_result_url(base, "n/1", "e e")


def test_an_extension_is_put_behind_the_plugin():
    """As older aggregators know files."""
    assert f"{BASE}/api/v1/results/global/e2e.tar.gz" == global_result_url(BASE, "e2e", "tar.gz")
    assert f"{BASE}/api/v1/results/by-node/n/e2e.json" == node_result_url(BASE, "n", "e2e", "json")


@pytest.mark.parametrize(
    ("base", "plugin"), [("aggregator:8080", "e2e"), ("/api", "e2e"), (BASE, ""), (BASE, "..")]
)
def test_what_is_no_address_is_refused(base, plugin):
    """Not sent to somewhere else."""
    with pytest.raises(ValueError, match=r"no such names|not https"):
        global_result_url(base, plugin)
