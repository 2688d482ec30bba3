"""How long a run that is launched can take: what its certificates have to last for."""

import pytest

from reporter.run.duration import longest
from reporter.run.plan import LONGEST_TIMEOUT, Plugin
from tests.unit.launch.cluster import definition, run_of

NODES = tuple(f"node{number}" for number in range(5))


@pytest.mark.parametrize(
    ("plugins", "seconds"),
    [
        ((Plugin("a", timeout_seconds=100),), 700),
        ((Plugin("a", timeout_seconds=100), Plugin("b", timeout_seconds=50)), 700),
        ((Plugin("a", timeout_seconds=100), Plugin("b", order=1, timeout_seconds=50)), 1_350),
        ((Plugin("a", NODES, timeout_seconds=100),), 3 * 700),
        ((Plugin("a", NODES[:2], timeout_seconds=100),), 700),
        ((Plugin("a", timeout_seconds=LONGEST_TIMEOUT),), LONGEST_TIMEOUT),
    ],
)
def test_orders_follow_each_other_and_waves_too(plugins, seconds):
    """Two nodes at once, 600 s to start; never more than a certificate can last."""
    run = run_of(*plugins, most=2)

    assert seconds == longest(run.plan, run.launch)


def test_a_start_timeout_of_its_own():
    """Each plugin says how long its start may take."""
    made = definition("a", start_timeout_seconds=30)
    run = run_of(Plugin("a", timeout_seconds=100), definitions=[made])

    assert 130 == longest(run.plan, run.launch)
