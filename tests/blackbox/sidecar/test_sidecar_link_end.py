"""How long a delivery may take, and hold up the end of the sidecar (W24)."""

import json
import threading

import pytest

from tests.aggregators.scripted import Scripted
from tests.blackbox.sidecar.linked import linked, results, short_grace
from tests.blackbox.sidecar.scene import Scene
from tests.fakekube import Rule
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


def test_native_form_delivers_before_the_pod_ends(scene: Scene, aggregator: Scripted) -> None:
    """No SIGTERM is needed; and after it nothing is sent twice."""
    scene.create(form="native")
    reporter = scene.start(**linked(aggregator))
    scene.write_result()
    aggregator.heard(1, "results")
    scene.wait_log("Delivered to the aggregator")
    scene.adapter(scene.ended())

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
