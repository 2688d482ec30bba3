"""The Job and its attempts: gone, replaced, never there, older and newer Pods, restarts."""

import pytest

from tests.blackbox.sidecar.scene import RUNNING, Object, Scene, now
from tests.fakekube import make_job

A = ("Unknown", RUNNING, False)
SUCCESS = ("True", "AllGood", True)
OTHER = "33333333-3333-4333-8333-333333333333"


@pytest.mark.parametrize("form", ["classic", "native"])
@pytest.mark.parametrize("successor", [False, True])
def test_a_job_that_is_gone_is_a_quiet_end(scene: Scene, form: str, successor: bool) -> None:
    """Nothing is left to report on; another Job of that name is never touched."""
    scene.create(form=form)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.fake.delete_job(scene.job_name)
    if successor:
        scene.fake.create_job(make_job(scene.job_name, uid=OTHER))
    scene.write_result()
    scene.wait_log("The Job is gone: nothing is left to report on")

    if form == "native":
        assert reporter.alive
    scene.adapter(scene.ended())
    assert 0 == reporter.finish()
    assert [] == [e for e in scene.logs if e["level"] in {"error", "critical"}]
    if successor:
        assert {} == scene.condition()


def test_a_job_that_is_replaced_before_the_first_read(scene: Scene) -> None:
    """The Pod's label says which Job is meant."""
    scene.create()
    scene.fake.delete_job(scene.job_name)
    scene.fake.create_job(make_job(scene.job_name, uid=OTHER))

    assert 0 == scene.start().join()
    assert [] == scene.fake.requests("PATCH")


@pytest.mark.parametrize("form", ["classic", "native"])
def test_the_wrong_job_is_loud(scene: Scene, form: str) -> None:
    """It exists, but the Pod is another Job's: nothing of it is changed."""
    scene.create(form=form)
    scene.fake.create_job(make_job("other", uid=OTHER))
    reporter = scene.start(JOB_NAME="other")
    assert "error" == scene.wait_log("No such Job: check JOB_NAME and JOB_NAMESPACE")["level"]

    if form == "native":
        assert reporter.alive
        scene.adapter(scene.ended())
        assert 0 == reporter.finish()
    else:
        assert 1 == reporter.join()
    assert [] == scene.fake.requests("PATCH")


def test_under_onfailure_the_wrong_job_is_loud_and_the_exit_good(scene: Scene) -> None:
    """Any other exit code would be restarted and counted."""
    scene.create(restart_policy="OnFailure")
    scene.fake.create_job(make_job("other", uid=OTHER))
    reporter = scene.start(JOB_NAME="other")
    scene.wait_log("No such Job: check JOB_NAME and JOB_NAMESPACE")
    assert reporter.alive
    scene.adapter(scene.ended(0))

    assert 0 == reporter.join()


def second_pod(scene: Scene, form: str, seconds: float) -> str:
    """Add a Pod that is so many seconds younger; return its name."""
    name = f"{scene.job_name}-young"
    scene.create_pod(form, name=name, uid="44444444", created=now(seconds))
    return name


@pytest.mark.parametrize("form", ["classic", "native"])
def test_an_older_attempt_writes_nothing_more(scene: Scene, form: str) -> None:
    """The newer Pod's reporter has written: the older one is superseded, whatever it knows."""
    scene.create(form=form)
    older = scene.start()
    scene.wait_condition(RUNNING)
    name = second_pod(scene, form, 5)
    newer = scene.start(
        POD_NAME=name, RESULTS_PATH=str(scene.directory / "other" / "adapter-result.json")
    )
    scene.fake.wait_for(lambda: scene.note()["attempt"]["pod"] == name)
    scene.write_result("failure", "Older")
    scene.wait_log("A newer Pod reports on this Job: nothing more is written")
    scene.adapter(scene.ended())

    assert 0 == older.finish()
    (scene.directory / "other").mkdir()
    scene.path = scene.directory / "other" / "adapter-result.json"
    scene.pod_name = name
    newer.sigterm()
    scene.write_result()
    scene.adapter(scene.ended())
    newer.join()
    assert "Older" not in str(scene.writes())


def test_a_newer_attempt_takes_over_a_final_verdict(scene: Scene) -> None:
    """The first Pod failed for good; the second one is another try."""
    scene.create(adapter=scene.ended(1))
    assert 1 == scene.start().join()
    scene.pod_name = second_pod(scene, "classic", 5)
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.write_result()

    assert 0 == reporter.join()
    assert [("False", "AdapterExitedWithError", True), A, SUCCESS] == scene.history()


@pytest.mark.parametrize("form", ["classic", "native"])
def test_a_restarted_reporter_finds_its_final_verdict(scene: Scene, form: str) -> None:
    """Nothing is written again, and the metrics and the exit code are those of the verdict."""
    scene.create(form=form)
    first = scene.start()
    scene.write_result()
    scene.wait_log("Verdict")
    first.close()
    written = len(scene.writes())
    # The file may have changed meanwhile: the verdict has not.
    scene.write_result("failure", "TooLate")
    again = scene.start()
    scene.wait_log("Final verdict is already on the Job")
    scene.adapter(scene.ended())

    assert 0 == again.finish()
    assert written == len(scene.writes())
    assert 1 == len(scene.said("Verdict"))


def test_a_restarted_reporter_recalls_the_adapters_first_start(scene: Scene) -> None:
    """The wait time is not begun anew: the note on the Job says since when."""
    scene.create(form="native", created=now(-60))
    with scene.process() as first:
        scene.wait_condition(RUNNING)
        first.kill()

    def an_hour_ago(job: Object) -> None:
        notes = job["metadata"]["annotations"]
        note = notes["status-reporter.io/Available"]
        notes["status-reporter.io/Available"] = note.replace(scene.started, now(-3600))

    def restarted(pod: Object) -> None:
        pod["status"]["initContainerStatuses"][0]["restartCount"] = 1

    scene.fake.update_job(scene.job_name, an_hour_ago)
    scene.fake.update_pod(scene.pod_name, restarted)
    scene.start(MAX_WAIT_TIME_SECONDS="1800")
    scene.wait_final()

    assert ("False", "AdapterTimeout", True) == scene.history()[-1]


def test_nothing_is_written_when_nothing_has_changed(scene: Scene) -> None:
    """A reporter that was killed and comes back to the same revisable report."""
    scene.create(form="native", restart_policy="OnFailure")
    scene.write_result()
    with scene.process() as first:
        scene.wait_condition("AllGood")
        first.kill()
    scene.start()
    scene.wait_log("Adapter state")
    scene.adapter(scene.ended(0))
    scene.wait_final()

    assert [("True", "AllGood", False), SUCCESS] == scene.history()


def test_a_foreign_condition_of_our_type_is_taken_over(scene: Scene) -> None:
    """A condition without our annotation is an older product's: it is replaced."""
    scene.create()
    old = {"type": "Available", "status": "False", "reason": "Old", "message": "old"}
    scene.fake.update_job(scene.job_name, lambda job: job["status"].update(conditions=[old]))
    reporter = scene.start()
    scene.write_result()

    assert 0 == reporter.join()
    assert SUCCESS == scene.history()[-1]
    assert 1 == len(scene.fake.job(scene.job_name)["status"]["conditions"])


def test_a_busy_job_is_written_in_the_end(scene: Scene) -> None:
    """Every read is outdated by the Job controller for a while: 409, read and decide again."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    busy = 0

    def touch(_: object) -> bool:
        nonlocal busy
        busy += 1
        if busy <= 5:
            scene.fake.update_job(scene.job_name, lambda job: job["status"].update(ready=busy))
        return False

    scene.fake.fail(None, method="PATCH", where=touch, times=None)  # type: ignore[arg-type]
    scene.write_result()

    assert 0 == reporter.join()
    assert [A, SUCCESS] == scene.history()
    assert 6 == busy
