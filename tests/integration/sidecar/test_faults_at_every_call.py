"""Every fault of the API, at every call: the verdict is written, it is right, and it comes once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporter.common import log
from tests.blackbox.sidecar.scene import BOUND, RUNNING
from tests.blackbox.sidecar.test_sidecar_faults import check
from tests.fakekube import Answer, FakeKube, Hang, Reset, Slow
from tests.fakekube.faults import Fault
from tests.integration.scene import Scene, impatient, staged

TOO_MANY = Answer(429, {"Retry-After": "1"})
FAULTS: dict[str, Fault] = {
    "conflict": Answer(409),
    "too many requests": TOO_MANY,
    "too many requests, absurd wish": Answer(429, {"Retry-After": "soon"}),
    "internal error": Answer(500),
    "bad gateway": Answer(502, body=b"<html>502</html>"),
    "forbidden": Answer(403),
    "unauthorized": Answer(401),
    "reset": Reset(),
    "reset, carried out": Reset(apply=True),
    "no answer": Hang(),
    "no answer, carried out": Hang(apply=True),
    "trickle": Slow(every=0.05, step=50, headers=True),
    "no JSON": Answer(200, body=b"\x00garbage"),
    "no JSON, carried out": Answer(200, body=b"\x00garbage", apply=True),
    "another object": Answer(200, body={"kind": "Status", "status": "Success"}),
    "half an object": Answer(200, body=b'{"kind": "Job", "metadata": {'),
    "404 of a proxy": Answer(404, body=b"no route"),
}
AT_ONCE = 7  # runs that wait side by side: a life has six calls, or seven with a retry


def a_job(scene: Scene, strike: Callable[[FakeKube], Callable[[], int]]) -> int:
    """Live through one Job in the classic form with a fault; return how often it struck."""
    scene.create()
    hits = strike(scene.fake)
    reporter = scene.start(impatient)
    scene.fake.wait_for(lambda: scene.condition().get("reason") == RUNNING, BOUND)
    scene.write_result()
    scene.adapter(scene.ended(0))

    assert 0 == reporter.join()
    check(scene, ("True", "AllGood"))
    return hits()


def a_natural_end(scene: Scene, strike: Callable[[FakeKube], Callable[[], int]]) -> int:
    """The same in the native form, with a failure that shows after SIGTERM."""
    scene.create(form="native")
    hits = strike(scene.fake)
    reporter = scene.start(impatient)
    scene.fake.wait_for(lambda: scene.condition().get("reason") == RUNNING, BOUND)
    reporter.sigterm()
    scene.adapter(scene.ended(1))

    assert 0 == reporter.join()
    check(scene, ("False", "AdapterExitedWithError"))
    return hits()


def nth(fault: Fault, number: int) -> Callable[[FakeKube], Callable[[], int]]:
    """Let the call of that number fail."""

    def strike(fake: FakeKube) -> Callable[[], int]:
        script = fake.fail(fault, nth=number)
        return lambda: script.hits

    return strike


@pytest.mark.parametrize("life", [a_job, a_natural_end])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_nth_call_fails(tmp_path: Path, life: Callable[..., int], fault: str) -> None:
    """For N = 1, 2, 3 ... until a run is clean."""

    def run(number: int) -> int:
        with staged(tmp_path / str(number), logs) as scene:
            scene.pod_name += str(number)
            return life(scene, nth(FAULTS[fault], number))

    with log.capture() as logs, ThreadPoolExecutor(AT_ONCE) as pool:
        hits = list(pool.map(run, range(1, AT_ONCE + 1)))
        while 0 not in hits:
            hits.append(run(len(hits) + 1))
    assert [1, 1, 1] == hits[:3]
