"""How many requests a Job costs whose watch ends several times."""

import math
import threading
from collections.abc import Iterator
from typing import Any, cast

from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from reporter.sidecar.pod import HEALTHY_AFTER
from tests.blackbox.sidecar.scene import BOUND, RUNNING
from tests.integration.scene import Scene


def adapter_states(scene: Scene) -> list[str]:
    return [event["state"] for event in scene.said("Adapter state")]


class Told:
    """A watch that tells when its first event has been taken: as the next one is asked for."""

    def __init__(self, watch: Watch, taken: threading.Semaphore) -> None:
        self._watch, self._taken = watch, taken
        self.close = watch.close

    def __iter__(self) -> Iterator[tuple[str, dict[str, Any]]]:
        events = iter(self._watch)
        yield next(events)
        self._taken.release()
        yield from events


class Renewing(KubeApi):
    """Watches that last just long enough to be healthy stand for those of a quarter of an hour."""

    shown: threading.Semaphore

    def watch(self, *names: Any, **more: Any) -> Watch:
        watch = super().watch(*names, **more | {"server_timeout": math.ceil(HEALTHY_AFTER)})
        return cast("Watch", Told(watch, self.shown))


def test_a_job_costs_five_requests_and_one_for_each_watch(scene: Scene) -> None:
    """With all defaults; so one of ten minutes, whose watch lasts as long, costs six."""
    api = Renewing.connect(
        scene.fake.server, ca_file=scene.fake.ca_file, token_file=scene.fake.token_file
    )
    api.shown = threading.Semaphore(0)
    scene.create(form="native")
    reporter = scene.start(lambda _: api)
    scene.wait_condition(RUNNING)
    # Before a new watch has shown the Pod, a result would be reason enough to ask for the Pod.
    assert all(api.shown.acquire(timeout=BOUND) for _ in range(2))
    scene.write_result()
    scene.wait_final()
    scene.adapter(scene.ended(0))
    scene.fake.wait_for(lambda: "terminated" in adapter_states(scene), BOUND)

    assert 0 == reporter.finish()
    assert 2 == len([entry for entry in scene.fake.requests() if entry.is_watch])
    others = [entry.method for entry in scene.fake.requests() if not entry.is_watch]
    assert ["GET", "PATCH", "GET", "PATCH", "POST"] == others
