"""SIGTERM: natural ends, deletions, deadlines, and a signal to the reporter alone."""

import signal
import time
from datetime import datetime

import pytest

from tests.blackbox.sidecar.scene import RUNNING, Object, Scene, now
from tests.calm import Calm
from tests.fakekube.faults import Hang, Slow

A = ("Unknown", RUNNING, False)
INTERRUPTED = ("Unknown", "AdapterInterrupted")
QUICKLY = 10.0
"""Ten times the second that an exit may take."""


def later(seconds: float, step: object) -> None:
    """Let so much time pass as lies between two things on a node, then do the second."""
    time.sleep(seconds)
    assert callable(step)
    step()


@pytest.mark.parametrize("code", [0, 1])
def test_a_natural_end_in_the_native_form(scene: Scene, code: int) -> None:
    """SIGTERM comes a little before the API shows the end: it is waited for, no longer."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    reporter.sigterm()
    later(0.015, lambda: scene.adapter(scene.ended(code)))

    assert 0 == reporter.join(QUICKLY)
    reason = "AdapterExitedWithError" if code else "AdapterMissingResults"
    assert [A, ("False", reason, True)] == scene.history()


def test_a_natural_end_after_a_verdict(scene: Scene) -> None:
    """The verdict is there: the reporter only has to go."""
    scene.create(form="native")
    reporter = scene.start()
    scene.write_result()
    scene.wait_final()
    with Calm() as calm:
        reporter.sigterm()
        scene.adapter(scene.ended(0))
        assert 0 == reporter.join(QUICKLY)

    assert calm.seconds < 1.0
    assert ("True", "AllGood", True) == scene.history()[-1]


def test_a_contradiction_that_comes_with_sigterm_is_noted(scene: Scene) -> None:
    """The end becomes visible 15 ms after the signal."""
    scene.create(form="native")
    reporter = scene.start()
    scene.write_result()
    scene.wait_final()
    reporter.sigterm()
    later(0.015, lambda: scene.adapter(scene.ended(1)))

    assert 0 == reporter.join(QUICKLY)
    assert 1 == scene.note()["after"]["exitCode"]


def test_the_watch_is_dead_at_a_natural_end(scene: Scene) -> None:
    """GETs take its place."""
    scene.create(form="native")
    scene.fake.tokens.roles["reporter"] = scene.fake.tokens.roles["go-reporter"]
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    reporter.sigterm()
    later(0.015, lambda: scene.adapter(scene.ended(1)))

    assert 0 == reporter.join(QUICKLY)
    assert [A, ("False", "AdapterExitedWithError", True)] == scene.history()


def short_grace(pod: Object) -> None:
    """Nothing is looked for so long after SIGTERM."""
    pod["spec"]["terminationGracePeriodSeconds"] = 4


@pytest.mark.parametrize("form", ["classic", "native"])
def test_sigterm_to_the_reporter_alone(scene: Scene, form: str) -> None:
    """Nobody asked for the Pod's end: revisable, so that a restarted reporter can go on."""
    scene.create(form=form, pod=short_grace)
    reporter = scene.start()
    scene.wait_condition(RUNNING)

    assert (0 if form == "native" else 1) == reporter.finish()
    assert [A, (*INTERRUPTED, False)] == scene.history()
    assert "Reporter was stopped before a verdict was known" in scene.condition()["message"]


def test_a_reporter_restarted_after_that_goes_on(scene: Scene) -> None:
    """It finds its own revisable report, takes it back, and comes to the verdict."""
    scene.create(form="native", pod=short_grace)
    scene.start()
    scene.wait_condition(RUNNING)
    first = scene.note()["attempt"]
    scene.reporters[0].finish()
    again = scene.start()
    scene.wait_condition(RUNNING)
    scene.write_result()
    scene.wait_final()

    assert 0 == again.finish()
    assert [A, (*INTERRUPTED, False), A, ("True", "AllGood", True)] == scene.history()
    assert first["waitingSince"] == scene.note()["attempt"]["waitingSince"]


@pytest.mark.parametrize("form", ["classic", "native"])
def test_a_deletion_with_a_stubborn_adapter(scene: Scene, form: str) -> None:
    """Written when the deletion is seen, settled before the grace period is over."""
    scene.create(form=form)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.mark_pod_deleted(scene.pod_name, grace=4)
    if form == "classic":
        reporter.sigterm()
    scene.wait_condition("AdapterInterrupted")
    assert not scene.note()["final"]
    if form == "native":
        reporter.sigterm()

    with Calm() as calm:
        assert (0 if form == "native" else 1) == reporter.join(QUICKLY)
    assert calm.seconds < 3.5
    assert [A, (*INTERRUPTED, False), (*INTERRUPTED, True)] == scene.history()
    assert scene.condition()["message"].startswith("Pod was deleted before a verdict was known")


@pytest.mark.parametrize(
    ("method", "path", "fault"),
    [
        ("GET", "/jobs/", Hang()),
        ("GET", "/pods/", Hang()),
        ("PATCH", "/jobs/", Hang()),
        ("PATCH", "/jobs/", Hang(apply=True)),
    ],
    ids=["reading the Job", "reading the Pod", "writing", "writing, and its answer is lost"],
)
def test_a_request_that_hangs_does_not_outlive_sigterm(
    scene: Scene, method: str, path: str, fault: Hang
) -> None:
    """The kubelet kills a native sidecar after 2 s: at 1.5 s the interruption has to be there."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    script = scene.fake.fail(fault, method=method, path=path, watch=False)
    scene.fake.mark_pod_deleted(scene.pod_name, grace=1)
    scene.fake.wait_for(lambda: script.hits == 1)
    with Calm() as calm:
        reporter.sigterm()
        scene.wait_final()

    assert calm.seconds < 1.5
    assert (*INTERRUPTED, True) == scene.history()[-1]
    assert 0 == reporter.join(QUICKLY)


def test_a_slow_write_under_way_at_sigterm_is_not_cut(scene: Scene) -> None:
    """Behind it is an admission webhook or a slow etcd: the next one would be no faster."""
    scene.create(form="classic")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    script = scene.fake.fail(Slow(every=0.1, step=100, headers=True), method="PATCH")
    scene.fake.mark_pod_deleted(scene.pod_name, grace=30)
    scene.fake.wait_for(lambda: script.hits == 1)
    reporter.sigterm()
    scene.write_result()

    assert 0 == reporter.join()
    assert [] == [each for each in scene.said("Request failed") if each["request"] == "job"]
    assert [A, (*INTERRUPTED, False), ("True", "AllGood", True)] == scene.history()


@pytest.mark.parametrize("form", ["classic", "native"])
def test_an_adapter_that_writes_its_result_while_it_stops_is_heard(scene: Scene, form: str) -> None:
    """Its word counts more than why it was stopped."""
    scene.create(form=form)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.mark_pod_deleted(scene.pod_name, grace=30)
    if form == "classic":
        reporter.sigterm()
    scene.wait_condition("AdapterInterrupted")
    scene.write_result("failure", "Stopped")
    if form == "native":
        scene.wait_final()
        reporter.sigterm()

    assert 0 == reporter.join(QUICKLY)
    assert [A, (*INTERRUPTED, False), ("False", "Stopped", True)] == scene.history()


@pytest.mark.parametrize("form", ["classic", "native"])
def test_a_result_that_lies_there_unseen_at_sigterm(scene: Scene, form: str) -> None:
    """Written in the moment of the signal: the last look finds it."""
    scene.create(form=form)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.mark_pod_deleted(scene.pod_name, grace=30)
    scene.write_result("failure", "Stopped")
    reporter.sigterm()

    assert 0 == reporter.join(QUICKLY)
    assert ("False", "Stopped", True) == scene.history()[-1]


@pytest.mark.parametrize("form", ["classic", "native"])
def test_the_jobs_deadline(scene: Scene, form: str) -> None:
    """By arithmetic on the API's times, before the Job says a word."""

    def deadline(job: Object) -> None:
        job["spec"]["activeDeadlineSeconds"] = 30
        job["status"]["startTime"] = now(-31)

    scene.create(form=form, job=deadline)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.mark_pod_deleted(scene.pod_name, grace=3)
    reporter.sigterm()
    reporter.join(QUICKLY)

    assert ("False", "AdapterTimeout", True) == scene.history()[-1]
    assert "Job's activeDeadlineSeconds (30s)" in scene.condition()["message"]


def test_the_pods_deadline(scene: Scene) -> None:
    """No deletion is shown: only ContainersReady says PodFailed."""
    scene.create(form="native", pod=lambda pod: pod["spec"].update(activeDeadlineSeconds=30))
    reporter = scene.start()
    scene.wait_condition(RUNNING)

    def failed(pod: Object) -> None:
        pod["status"]["startTime"] = now(-31)
        ready = pod["status"]["conditions"][3]
        ready |= {"status": "False", "reason": "PodFailed", "lastTransitionTime": now()}

    scene.fake.update_pod(scene.pod_name, failed)
    scene.wait_condition("AdapterTimeout")
    assert 0 == reporter.finish(QUICKLY)
    assert [A, ("False", "AdapterTimeout", False), ("False", "AdapterTimeout", True)] == (
        scene.history()
    )


def test_an_eviction(scene: Scene) -> None:
    """The Pod says why."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)

    def evicted(pod: Object) -> None:
        pod["status"]["conditions"].append(
            {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting",
            }
        )

    scene.fake.update_pod(scene.pod_name, evicted)
    scene.fake.mark_pod_deleted(scene.pod_name)
    scene.wait_condition("AdapterEvicted")

    assert 0 == reporter.finish(QUICKLY)
    assert ("Unknown", "AdapterEvicted", True) == scene.history()[-1]


def test_a_suspended_job(scene: Scene) -> None:
    """The Job is read again: it says so before the Pod is deleted."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.update_job(scene.job_name, lambda job: job["spec"].update(suspend=True))
    scene.fake.mark_pod_deleted(scene.pod_name)
    scene.wait_condition("AdapterInterrupted")

    assert 0 == reporter.finish(QUICKLY)
    assert scene.condition()["message"].startswith("Job was suspended")
    assert scene.note()["final"]


def test_a_short_grace_period(scene: Scene) -> None:
    """Two seconds: the kubelet's floor is enough for the verdict of a deletion."""
    scene.create(pod=lambda pod: pod["spec"].update(terminationGracePeriodSeconds=2))
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    with Calm() as calm:
        scene.fake.mark_pod_deleted(scene.pod_name, grace=2)
        assert 1 == reporter.finish(QUICKLY)

    assert calm.seconds < 2.0
    assert (*INTERRUPTED, True) == scene.history()[-1]


@pytest.mark.parametrize("form", ["classic", "native"])
def test_the_api_is_away_at_sigterm(scene: Scene, form: str) -> None:
    """The verdict is known from the file; it is written when the server is back."""
    scene.create(form=form)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.stop()
    scene.write_result()
    scene.adapter(scene.ended())
    reporter.sigterm()
    later(0.3, scene.fake.start)

    assert 0 == reporter.join()
    assert ("True", "AllGood", True) == scene.history()[-1]


def test_the_api_comes_back_and_shows_the_end(scene: Scene) -> None:
    """While it is away nothing is guessed; the end that it shows afterwards is the verdict."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.stop()
    reporter.sigterm()
    scene.adapter(scene.ended(1))
    later(0.3, scene.fake.start)

    assert 0 == reporter.join()
    assert [A, ("False", "AdapterExitedWithError", True)] == scene.history()


def test_the_api_stays_away_after_sigterm(scene: Scene) -> None:
    """The grace period's end is respected, and the failure is loud."""
    scene.create(pod=lambda pod: pod["spec"].update(terminationGracePeriodSeconds=3))
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.stop()
    scene.write_result()
    begun = time.monotonic()
    with Calm() as calm:
        assert 1 == reporter.finish(QUICKLY)

    assert 1.0 <= time.monotonic() - begun
    assert calm.seconds < 3.0
    assert scene.said("The verdict could not be written in time")


@pytest.mark.parametrize("form", ["classic", "native"])
def test_a_real_sigterm(scene: Scene, form: str) -> None:
    """The whole program as a process: deletion, signal, verdict, exit code."""
    scene.create(form=form)
    with scene.process() as process:
        scene.wait_condition(RUNNING)
        scene.fake.mark_pod_deleted(scene.pod_name, grace=3)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)

    assert ((0 if form == "native" else 1), "") == (process.returncode, errors)
    assert (*INTERRUPTED, True) == scene.history()[-1]


def test_a_second_sigterm_exits_at_once(scene: Scene) -> None:
    """Whoever sends it does not want to wait for the API."""
    scene.create()
    with scene.process() as process:
        scene.wait_condition(RUNNING)
        scene.fake.stop()
        scene.write_result()
        assert process.stdout is not None
        for line in process.stdout:
            if "Request failed" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        # Two signals sent at once may arrive as one.
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
            time.sleep(0.01)

    assert 128 + signal.SIGTERM == process.returncode


def test_the_annotation_keeps_the_times(scene: Scene) -> None:
    """What was known when: the deletion's time is among the evidence."""
    scene.create(form="native")
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.mark_pod_deleted(scene.pod_name)
    scene.wait_condition("AdapterInterrupted")
    reporter.finish(QUICKLY)

    evidence = scene.note()["evidence"]
    assert datetime.fromisoformat(evidence["pod"]["deletionRequestedAt"])
    assert "stoppedForSeconds" in evidence
