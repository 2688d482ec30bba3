"""A delivery whose own time is over while something else holds up the end of the sidecar (W24)."""

import pytest

from tests.aggregators.scripted import Scripted
from tests.blackbox.sidecar.linked import lingering, linked, results
from tests.integration.scene import Scene
from tests.scripted_server import Say


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No delivery may hold up the end of a classic Pod for longer than a try takes."""
    monkeypatch.setattr("reporter.sidecar.ending.DELIVERY", 0.0)


@pytest.mark.usefixtures("impatient")
def test_delivery_goes_on_while_the_reporter_lingers(scene: Scene) -> None:
    """It holds nothing up."""
    with Scripted(listening=False) as aggregator:
        scene.create()
        reporter = scene.start(**linked(aggregator, **lingering(1000)))
        scene.write_result()
        scene.wait_log("Request to the aggregator failed, retrying")
        aggregator.listen()
        scene.wait_log("Delivered to the aggregator")
        assert reporter.alive

        assert 0 == reporter.finish()


@pytest.mark.usefixtures("impatient")
def test_delivery_goes_on_while_the_adapter_runs(scene: Scene) -> None:
    """Under OnFailure the reporter stays with an adapter whose time is over."""
    with Scripted(listening=False) as aggregator:
        scene.create(restart_policy="OnFailure")
        reporter = scene.start(**linked(aggregator, MAX_WAIT_TIME_SECONDS="1"))
        assert "AdapterTimeout" == scene.wait_final()["reason"]
        scene.wait_log("Request to the aggregator failed, retrying")
        aggregator.listen()
        scene.wait_log("Delivered to the aggregator")
        assert reporter.alive
        scene.adapter(scene.ended(0))

        assert 0 == reporter.join()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("signalled", [False, True], ids=["the linger is over", "SIGTERM"])
def test_delivery_that_waits_when_its_time_is_over_is_tried_once_more(
    scene: Scene, aggregator: Scripted, signalled: bool
) -> None:
    """The time that it may hold up the end was over while something else did."""
    aggregator.script("results", Say(503, headers={"Retry-After": "60"}), Say())
    scene.create()
    reporter = scene.start(**linked(aggregator, **lingering(1000 if signalled else 1)))
    scene.write_result()
    scene.wait_log("Request to the aggregator failed, retrying")

    assert 0 == (reporter.finish() if signalled else reporter.join())
    assert 2 == len(results(aggregator))
    assert 1 == len(scene.said("Delivered to the aggregator"))
