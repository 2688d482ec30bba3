"""Waiting for a run's aggregator: until when, and what is told meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest

from reporter.errors import Forbidden, NotFound, Unavailable
from reporter.kube.api import Page
from reporter.run.plan import Plan
from reporter.runctl.follow import Deadline
from reporter.runctl.ready import PATIENCE, wait_ready
from reporter.runctl.spec import RunSpec
from tests.fakekube import make_job, make_pod
from tests.plugin_launches import definition, options_of

PULL = "ImagePullBackOff"
STAYS = replace(
    options_of(definition("restricted adapter"), namespace="default"), plan=Plan("first", ())
)
EXITS = replace(STAYS, exit=True)


class World:
    """An API server whose objects change while time goes by, one second a look."""

    def __init__(self, pod: Callable[[float], Any], **more: Any) -> None:
        self._pod, self._more, self.now = pod, more, 0.0

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def ready(self, spec: RunSpec, say: Callable[[str], None] = print) -> list[str]:
        """Return what is in the way in the end."""
        deadline = Deadline(PATIENCE, lambda: self.now, self._sleep)
        wall = lambda: 1893499200.0 + self.now  # noqa: E731
        return wait_ready(cast("Any", self), spec, deadline, say=say, wall=wall)

    def get(self, kind: str, namespace: Any, name: str, **_: Any) -> Any:
        assert ("default", "first") == (namespace, name)
        if kind == "PersistentVolumeClaim":
            found = self._more.get("claim", NotFound("404"))
        else:
            assert "Job" == kind
            found = self._more.get("job", {})
        if isinstance(found, Exception):
            raise found
        return found

    def list_all(self, kind: str, namespace: Any, labels: str, **_: Any) -> Any:
        assert ("Pod", "default") == (kind, namespace)
        assert labels.startswith("status-reporter.io/run=first,")
        found = self._pod(self.now)
        if isinstance(found, Exception):
            raise found
        return iter(found if isinstance(found, list) else filter(None, [found]))

    def list_page(self, kind: str, namespace: str, *, field_selector: str, **_: Any) -> Page:
        assert "Event" == kind
        found = self._more.get("events", {})
        if isinstance(found, Exception):
            raise found
        return Page(found.get(field_selector, []), "", "")


def pod(reason: str = "", *, ready: bool = False, scheduled: bool = True) -> dict[str, Any]:
    """Return the aggregator's Pod."""
    made = make_pod(make_job(), name="first-x7d2k")
    made["spec"]["containers"].append({"name": "kube-sonobuoy", "image": "status-reporter:7"})
    made["status"] = {"phase": "Pending"}
    if not scheduled:
        made["spec"].pop("nodeName", None)
        words = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        made["status"]["conditions"] = [
            {"type": "PodScheduled", "status": "False"}
            | {"reason": "Unschedulable", "message": words}
        ]
    if reason:
        state = {"waiting": {"reason": reason, "message": "Back-off pulling image"}}
        made["status"]["containerStatuses"] = [{"name": "kube-sonobuoy", "state": state}]
    if ready:
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return made


def ended(code: int, message: str = "") -> dict[str, Any]:
    """Return the Pod of an aggregator that has ended."""
    made = pod()
    state = {"terminated": {"exitCode": code, "message": message}}
    phase = "Failed" if code else "Succeeded"
    made["status"] = {
        "phase": phase,
        "containerStatuses": [{"name": "kube-sonobuoy", "state": state}],
    }
    return made


def waited(world: World) -> tuple[list[str], list[str]]:
    """Return what is in the way in the end, and what was told before."""
    told: list[str] = []
    return world.ready(STAYS, told.append), told


@pytest.mark.parametrize("code", [0, 1])
def test_a_job_that_ended_with_its_verdict_before_anybody_saw_it_ready(code: int) -> None:
    """The newest Pod counts: the one before was on a node that is gone."""
    found = [ended(4), ended(code), ended(4)]
    for each, day in zip(found, (1, 3, 2), strict=True):
        each["metadata"]["creationTimestamp"] = f"2026-01-0{day}T00:00:00Z"
    world = World(lambda now: found)

    assert [] == world.ready(EXITS)
    assert world.now < 1


EXPIRED = '{"level":"error","message":"Invalid setting","problem":"the upload URL expired"}'


@pytest.mark.parametrize(
    ("spec", "message", "said"),
    [
        (STAYS, EXPIRED, "the upload URL expired"),
        (EXITS, EXPIRED, "the upload URL expired"),
        (EXITS, "", "its settings are not valid"),
    ],
)
def test_an_aggregator_that_refuses_its_settings(spec: RunSpec, message: str, said: str) -> None:
    """Nothing else will come."""
    world = World(lambda now: None if now < 1 else ended(2, message))

    (told,) = world.ready(spec)
    assert said in told
    assert world.now < 3


@pytest.mark.parametrize("code", [1, 2, 4])
def test_an_aggregator_that_is_to_stay_and_has_ended_is_waited_for(code: int) -> None:
    """Only with `--exit` it may be over; else the kubelet starts it again."""
    world = World(lambda now: ended(code) if now < 3 else pod(ready=True))

    assert [] == world.ready(STAYS)
    assert 3 <= world.now < 4


def test_the_aggregator_becomes_ready() -> None:
    """Nothing is told of what takes a moment: no Pod yet, containers that are being created."""
    world = World(lambda now: None if now < 1 else pod(ready=now >= 3))

    assert ([], []) == waited(world)
    assert 3 <= world.now < 4


@pytest.mark.parametrize("reason", ["ErrImagePull", PULL, "InvalidImageName", "ErrImageNeverPull"])
def test_an_image_that_cannot_be_pulled_is_told_at_once_and_ends_the_wait(reason: str) -> None:
    """Each line once; 45 s later, when the kubelet has tried twice more, nothing is waited for."""
    seen: list[float] = []
    world = World(lambda _: pod(reason))
    found = world.ready(STAYS, lambda _: seen.append(world.now))

    assert [0.0, 0.0, 0.0] == seen
    assert f"cannot pull its image ({reason}: Back-off pulling image)" in found[0]
    assert found[1].startswith("Check the image's name and tag")
    assert (
        "The image is status-reporter:7: to use another one, delete the run and start it again "
        "with --image or STATUS_CTL_IMAGE."
    ) == found[2]
    assert 45 <= world.now < 47


def test_an_image_that_is_pulled_in_the_end() -> None:
    """The first try has failed, and so has one much later: each has its 45 s."""
    troubled = [*range(40), *range(50, 80)]
    world = World(lambda now: pod(PULL if int(now) in troubled else "", ready=now >= 90))
    found, told = waited(world)

    assert [] == found
    assert 3 == len(told)
    assert 90 <= world.now < 92


def test_an_api_server_that_is_away_does_not_hide_the_image() -> None:
    """The look that tells nothing of the Pod is not the last one."""
    world = World(lambda now: Unavailable("reset") if 40 <= now < 50 else pod(PULL))
    found, _ = waited(world)

    assert "cannot pull its image" in found[0]
    assert 50 <= world.now < 52


def test_an_image_of_another_container_is_not_ours_to_choose() -> None:
    """As of one that a service mesh has put into the Pod."""
    made = pod(PULL)
    made["status"]["containerStatuses"][0]["name"] = "mesh"
    found, _ = waited(World(lambda _: made))

    assert "Container 'mesh' of Pod first-x7d2k cannot pull its image" in found[0]
    assert not [line for line in found if "STATUS_CTL_IMAGE" in line]


def test_an_aggregator_that_keeps_failing_is_told_in_its_own_words() -> None:
    """Once, however often it is restarted."""
    log = '{"level": "info", "message": "Started"}\n'
    log += '{"level": "error", "message": "Invalid setting", "problem": "PLAN: not JSON"}'

    def crashed(now: float) -> dict[str, Any]:
        made = pod("CrashLoopBackOff")
        status = made["status"]["containerStatuses"][0]
        status["restartCount"] = int(now)
        status["lastState"] = {"terminated": {"exitCode": 2, "reason": "Error", "message": log}}
        return made

    found, told = waited(World(crashed))

    assert found == told
    assert "The aggregator keeps failing: Invalid setting: PLAN: not JSON" == found[0]


def test_an_aggregator_that_ends_without_a_word() -> None:
    made = pod("CrashLoopBackOff")
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    made["status"]["containerStatuses"][0] |= {"lastState": ended, "restartCount": 3}
    found, _ = waited(World(lambda _: made))

    assert "exit code 137 (OOMKilled), restarted 3 times" in found[0]


def test_a_claim_that_stays_pending_says_which_options_help() -> None:
    """Told after a few seconds, in which a volume is usually made."""
    world = World(lambda _: pod(scheduled=False), claim={"status": {"phase": "Pending"}})
    found, told = waited(world)

    assert found == told
    assert "pod has unbound immediate PersistentVolumeClaims" in found[0]
    assert (
        "The volume claim first is pending: name a storage class with --storage-class, or run "
        "with --storage none."
    ) == found[-1]


@pytest.mark.parametrize("claim", [{"status": {"phase": "Bound"}}, Forbidden("403")])
def test_another_claim_is_not_to_blame(claim: Any) -> None:
    found, _ = waited(World(lambda _: pod(scheduled=False), claim=claim))

    assert not [line for line in found if "volume claim" in line]


def test_a_pod_that_is_refused_is_told_in_the_api_servers_words() -> None:
    """The Job's events have them."""
    words = 'Error creating: pods "first-x7d2k" is forbidden: exceeded quota'
    selector = "involvedObject.kind=Job,involvedObject.name=first"
    events = [{"reason": "FailedCreate", "message": words}, {"reason": "Other", "message": "no"}]
    world = World(lambda _: None, events={selector: events})

    assert ([words], [words]) == waited(world)


def test_an_api_server_that_is_away_is_waited_for() -> None:
    world = World(lambda now: Unavailable("connection refused") if now < 9 else pod(ready=True))
    found, told = waited(world)

    assert ([], ["connection refused"]) == (found, told)


def test_who_may_not_read_pods_waits_for_nothing() -> None:
    """More looks would show no more."""
    world = World(lambda _: Forbidden("403"))

    with pytest.raises(Forbidden):
        waited(world)
    assert 0 == world.now


def test_who_may_not_read_events_is_told_what_the_pod_says() -> None:
    world = World(lambda now: pod(PULL) if now < 9 else pod(ready=True), events=Forbidden("403"))
    found, told = waited(world)

    assert [] == found
    assert "cannot pull its image" in told[0]


def test_nothing_at_all_is_known() -> None:
    """As where no controller makes the Pod."""
    found, _ = waited(World(lambda _: None))

    assert ["the Pod first-* has not become ready"] == found


@pytest.mark.parametrize("spec", [STAYS, EXITS])
def test_a_run_that_is_deleted_meanwhile_does_not_become_ready(spec: RunSpec) -> None:
    """Its aggregator ends well, or is still said to be ready, while its Pod goes."""
    going = [pod(), pod(ready=True), ended(0)]
    for each in going:
        each["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    world = World(lambda now: going[int(now)] if now < 3 else None, job=NotFound("404"))
    told = world.ready(spec)
    assert ["the run was deleted meanwhile"] == told


def test_an_aggregator_that_is_moved_is_waited_for() -> None:
    """Its Pod goes, and its Job makes another one."""
    going = pod(ready=True)
    going["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    seen = [going, None, pod(), pod(ready=True)]
    world = World(lambda now: seen[min(int(now), 3)])

    assert [] == world.ready(STAYS)
    assert 3 <= world.now
