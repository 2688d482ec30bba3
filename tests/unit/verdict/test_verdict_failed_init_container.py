"""A failed init container as a real node shows it: the kubelet fails the Pod, nobody interrupts."""

from __future__ import annotations

from reporter.verdict.facts import Blocker, Container, Waiting
from tests.situations import at, deleted, ended, final, observed, pod, rows_of, verdict

PREPARE = Blocker(Container("prepare", ended(6)), for_good=True)
# Never ready, so its condition turned to PodFailed with the transition time of the Pod's start.
FAILED = pod(Waiting("PodInitializing"), phase="Pending", blocker=PREPARE, failing_at=at(0))
NOT_STARTED = (
    "W3",
    "False",
    "AdapterStartFailed",
    "init container 'prepare': exited with code 6: Error",
)


def test_pod_that_fails_with_its_init_container_is_not_interrupted() -> None:
    """ContainersReady says PodFailed here too, as at a Pod's deadline or an eviction."""
    assert final(*NOT_STARTED) == verdict(observed((3, FAILED)))


def test_deletion_explains_a_failed_init_container() -> None:
    """Its exit code may be that of the kubelet's SIGTERM."""
    said = verdict(observed((21, deleted(FAILED)), stopped=21))

    assert ["N!"] == rows_of([said])
