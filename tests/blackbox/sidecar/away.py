"""A sidecar at work while its aggregator is away for some time."""

from __future__ import annotations

import threading

from tests.aggregators.served import Aggregator
from tests.blackbox.sidecar.scene import RUNNING, Scene
from tests.ports import free_port

PLAN = {"run": "away", "plugins": [{"name": "e2e"}, {"name": "open"}]}


def variables(aggregator: Aggregator) -> dict[str, str]:
    """The settings of a link to that aggregator."""
    folder = aggregator.certificates
    return {
        "AGGREGATOR_URL": aggregator.url,
        "RESULT_TYPE": "e2e",
        "CA_CERT_FILE": str(folder / "ca.pem"),
        "CLIENT_CERT_FILE": str(folder / "e2e.crt"),
        "CLIENT_KEY_FILE": str(folder / "e2e.key"),
        "SONOBUOY_PROGRESS_PORT": str(free_port()),
        "WORKER_HEARTBEAT_SECONDS": "1",
    }


def survive(scene: Scene, aggregator: Aggregator, seconds: float) -> None:
    """The aggregator is killed while the adapter works and is back so much later.

    The verdict does not wait for it, and the result is delivered afterwards.
    """
    scene.create(form="native")
    reporter = scene.start(**variables(aggregator))
    scene.wait_condition(RUNNING)
    scene.write_progress(msg="half", total=4, completed=2)
    aggregator.wait_status(lambda found: found["plugins"][0]["progress"])
    aggregator.kill()
    scene.write_progress(msg="more", total=4, completed=3)
    scene.write_result()

    assert "AllGood" == scene.wait_final()["reason"]
    scene.wait_log("Request to the aggregator failed, retrying")
    assert not scene.said("Delivered to the aggregator")
    threading.Event().wait(seconds)
    assert reporter.alive
    aggregator.start()
    scene.wait_log("Delivered to the aggregator")

    entry = aggregator.entry("e2e/global")
    assert ("complete", len(scene.path.read_bytes())) == (entry["status"], entry["bytes"])
    assert scene.path.read_bytes() == aggregator.result("e2e/global")
    assert entry["last-heartbeat"] is not None
    scene.adapter(scene.ended())
    assert 0 == reporter.finish()
