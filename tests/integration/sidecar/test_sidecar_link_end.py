"""How long a delivery may take, and hold up the end of the sidecar (W24)."""

import json
import threading

import pytest

from tests.fakekube import Rule
from tests.integration.link.scripted import Scripted
from tests.integration.scene import BOUND, Scene
from tests.integration.sidecar.linked import lingering, linked, results, short_grace
from tests.scripted_server import Hold, Say


def test_absent_aggregator_is_left_when_sigterm_ends_the_time(scene: Scene) -> None:
    """The verdict is written in time; the delivery ends with the grace period."""
    with Scripted(listening=False) as aggregator:
        scene.create(pod=short_grace)
        reporter = scene.start(**linked(aggregator))
        scene.write_result()
        assert "AllGood" == scene.wait_final()["reason"]

        assert 0 == reporter.finish()
    (said,) = scene.said("Not delivered to the aggregator")
    assert "error" == said["level"]
    assert "Connection refused" in said["text"]


def test_absent_aggregator_has_the_grace_period_of_the_native_form(scene: Scene) -> None:
    """Tried until two seconds before its end, whatever a worker's own grace period is."""
    before = set(threading.enumerate())
    with Scripted(listening=False) as aggregator:
        scene.create(form="native", pod=short_grace)
        reporter = scene.start(**linked(aggregator, WORKER_GRACE_SECONDS="2.5"))
        scene.write_result()
        scene.wait_final()

        assert 0 == reporter.finish()
    (ended,) = scene.said("Reporter exits")
    assert 2.0 <= ended["stopSeconds"]
    assert 1 == len(scene.said("Not delivered to the aggregator"))
    assert [] == scene.said("Not delivered to the aggregator in time")
    left = set(threading.enumerate()) - before
    for thread in [thread for thread in left if thread.name in ("courier", "relay")]:
        thread.join(BOUND)
        assert not thread.is_alive()


@pytest.mark.parametrize("form", ["native", "classic"])
def test_aggregator_that_asks_for_half_a_minute_gets_the_last_try_in_time(
    scene: Scene, aggregator: Scripted, form: str
) -> None:
    """No wait reaches beyond the grace period: once more while it can still be of use."""
    later = Say(503, headers={"Retry-After": "30"})
    aggregator.script("results", later, later, Say())
    scene.create(form=form, pod=short_grace)
    reporter = scene.start(**linked(aggregator))
    scene.write_result()
    scene.wait_log("Request to the aggregator failed, retrying")
    reporter.sigterm()

    assert 0 == reporter.join()
    assert 3 == len(results(aggregator))
    assert 1 == len(scene.said("Delivered to the aggregator"))


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


def test_native_form_delivers_before_the_pod_ends(scene: Scene, aggregator: Scripted) -> None:
    """No SIGTERM is needed; and after it nothing is sent twice."""
    scene.create(form="native")
    reporter = scene.start(**linked(aggregator))
    scene.write_result()
    aggregator.heard(1, "results")
    scene.wait_log("Delivered to the aggregator")

    assert 0 == reporter.finish()
    assert 1 == len(results(aggregator))


def test_end_that_may_not_be_written_is_delivered_within_the_grace_period(
    scene: Scene, aggregator: Scripted
) -> None:
    """Trying to write takes all of it otherwise, and the upload has no time left."""
    scene.fake.tokens.roles["reporter"] = (Rule(("get", "watch"), ("pods",)),)
    scene.create(form="native", pod=short_grace)
    reporter = scene.start(**linked(aggregator))
    scene.adapter(scene.ended(3))
    reporter.sigterm()

    assert 0 == reporter.join()
    ((target, body, outcome),) = results(aggregator)
    assert ("/api/v1/results/global/e2e", "error") == (target, outcome)
    assert "AdapterExitedWithError" == json.loads(body)["cause"]


def test_native_form_uses_the_grace_period(scene: Scene, aggregator: Scripted) -> None:
    """An upload that is on its way at SIGTERM goes on."""
    gate = threading.Event()
    aggregator.script("results", Hold(gate))
    scene.create(form="native")
    reporter = scene.start(**linked(aggregator))
    scene.write_result()
    aggregator.heard(1, "results")
    scene.adapter(scene.ended(0))
    reporter.sigterm()
    gate.set()

    assert 0 == reporter.join()
    assert [] != scene.said("Delivered to the aggregator")
