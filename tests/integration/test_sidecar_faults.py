"""Every fault of the API, at every call: the verdict is written, it is right, and it comes once."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from reporter import log
from tests.fakekube import Answer, ErrorEvent, FakeKube, Hang, Line, Reset, Rule, Slow
from tests.fakekube.faults import Fault
from tests.integration.scene import BOUND, RUNNING, Scene, now, staged

TOO_MANY = Answer(429, {"Retry-After": "1"})
FAULTS: dict[str, Fault] = {
    "conflict": Answer(409),
    "too many requests": TOO_MANY,
    "too many requests, no wish": Answer(429),
    "too many requests, absurd wish": Answer(429, {"Retry-After": "soon"}),
    "internal error": Answer(500),
    "bad gateway": Answer(502, body=b"<html>502</html>"),
    "unavailable": Answer(503),
    "gateway timeout": Answer(504),
    "forbidden": Answer(403),
    "unauthorized": Answer(401),
    "reset": Reset(),
    "reset, carried out": Reset(apply=True),
    "no answer": Hang(),
    "no answer, carried out": Hang(apply=True),
    "trickle": Slow(every=0.2, step=100, headers=True),
    "no JSON": Answer(200, body=b"\x00garbage"),
    "no JSON, carried out": Answer(200, body=b"\x00garbage", apply=True),
    "another object": Answer(200, body={"kind": "Status", "status": "Success"}),
    "half an object": Answer(200, body=b'{"kind": "Job", "metadata": {'),
    "empty": Answer(200, body=b""),
    "404 of a proxy": Answer(404, body=b"no route"),
}
AT_ONCE = 8  # runs that wait side by side


def a_job(scene: Scene, strike: Callable[[FakeKube], Callable[[], int]]) -> int:
    """Live through one Job in the classic form with a fault; return how often it struck."""
    scene.create()
    hits = strike(scene.fake)
    reporter = scene.start()
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
    reporter = scene.start()
    scene.fake.wait_for(lambda: scene.condition().get("reason") == RUNNING, BOUND)
    reporter.sigterm()
    scene.adapter(scene.ended(1))

    assert 0 == reporter.join()
    check(scene, ("False", "AdapterExitedWithError"))
    return hits()


def check(scene: Scene, verdict: tuple[str, str]) -> None:
    """The right verdict, final, written once and logged once; no other False or True before it."""
    history = scene.history()
    assert [(*verdict, True)] == [entry for entry in history if entry[2] or entry[0] != "Unknown"]
    assert (*verdict, True) == history[-1]
    assert verdict == (scene.condition()["status"], scene.condition()["reason"])
    pods = [event["attempt"]["pod"] for event in scene.said("Verdict")]
    assert 1 == pods.count(scene.pod_name)


def nth(fault: Fault, number: int) -> Callable[[FakeKube], Callable[[], int]]:
    """Let the call of that number fail."""

    def strike(fake: FakeKube) -> Callable[[], int]:
        script = fake.fail(fault, nth=number)
        return lambda: script.hits

    return strike


@pytest.mark.parametrize("life", [a_job, a_natural_end])
@pytest.mark.parametrize("fault", FAULTS)
def test_the_nth_call_fails(
    tmp_path: Path, life: Callable[..., int], fault: str
) -> None:
    """For N = 1, 2, 3 ... until a run is clean."""

    def run(number: int) -> int:
        with staged(tmp_path / str(number), logs) as scene:
            scene.pod_name += str(number)
            return life(scene, nth(FAULTS[fault], number))

    first, clean = 1, False
    with log.capture() as logs, ThreadPoolExecutor(AT_ONCE) as pool:
        while not clean:
            hits = list(pool.map(run, range(first, first + AT_ONCE)))
            clean, first = 0 in hits, first + AT_ONCE
    assert 1 == hits[0] or first > AT_ONCE + 1
