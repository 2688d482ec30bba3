"""What a whole reporter writes for what an adapter does, in both forms, and how it exits."""

from typing import Any

import pytest

from tests.blackbox.sidecar.scene import RUNNING, TYPE, Scene, now
from tests.fakekube import Answer, running, terminated, waiting

A = ("Unknown", RUNNING, False)


def test_a_short_job_costs_six_requests(scene: Scene) -> None:
    """One watch, two reads and two writes of the Job, and the Event; nothing else."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.write_result()

    assert 0 == reporter.join()
    job = f"/apis/batch/v1/namespaces/default/jobs/{scene.job_name}/status"
    expected = [
        ("GET", "/api/v1/namespaces/default/pods"),
        ("GET", job),
        ("PATCH", job),
        ("GET", job),
        ("PATCH", job),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events"),
    ]
    assert expected == [(entry.method, entry.path) for entry in scene.fake.journal]
    assert [A, ("True", "AllGood", True)] == scene.history()


@pytest.mark.parametrize(
    ("volume", "reason"),
    [
        pytest.param({"emptyDir": {}}, "AllGood", id="of this Pod"),
        pytest.param({"hostPath": {"path": "/kept"}}, "AdapterMissingResults", id="older than it"),
    ],
)
def test_a_result_that_looks_older_than_its_run(
    scene: Scene, volume: dict[str, Any], reason: str
) -> None:
    """A clock that was stepped costs no result where no earlier run can have left one."""

    def change(pod: Any) -> None:
        pod["spec"]["volumes"] = [{"name": "results", **volume}]
        for container in pod["spec"]["containers"]:
            container["volumeMounts"][0]["mountPath"] = str(scene.directory)

    scene.write_result()
    later = now(5)
    ended = terminated(0, started_at=later, finished_at=later)
    scene.create(adapter=ended, pod=change)
    scene.start()

    assert reason == scene.wait_final()["reason"]


def test_the_transition_time_is_kept_while_the_status_stays(scene: Scene) -> None:
    """From one Unknown to another nothing has changed its status."""
    scene.create(form="native")
    old = "2020-02-02T02:02:02Z"
    condition = {"type": TYPE, "status": "Unknown", "reason": "Old", "lastTransitionTime": old}
    scene.fake.update_job(scene.job_name, lambda job: job["status"].update(conditions=[condition]))
    scene.start()

    assert old == scene.wait_condition(RUNNING)["lastTransitionTime"]
    scene.write_result()
    assert old != scene.wait_condition("AllGood")["lastTransitionTime"]


def test_conditions_of_others_stay_as_they_are(scene: Scene) -> None:
    """Also those that come while we work."""
    scene.create()
    suspended = {
        "type": "Suspended",
        "status": "False",
        "reason": "JobResumed",
        "message": "Job resumed",
        "lastProbeTime": now(),
        "lastTransitionTime": now(),
    }
    scene.fake.update_job(scene.job_name, lambda job: job["status"].update(conditions=[suspended]))
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    other = suspended | {"type": "example.com/Mine"}
    scene.fake.update_job(scene.job_name, lambda job: job["status"]["conditions"].append(other))
    scene.write_result()

    assert 0 == reporter.join()
    found = scene.fake.job(scene.job_name)["status"]["conditions"]
    ours = [condition for condition in found if condition["type"] == TYPE]
    assert [suspended, other] == [condition for condition in found if condition not in ours]
    assert ["AllGood"] == [condition["reason"] for condition in ours]


def test_another_condition_type_has_its_own_annotation(scene: Scene) -> None:
    """A slash becomes a dot, because an annotation's name may have none."""
    scene.create()
    reporter = scene.start(CONDITION_TYPE="example.com/Done")
    scene.write_result()

    assert 0 == reporter.join()
    assert "AllGood" == (scene.fake.condition(scene.job_name, "example.com/Done") or {})["reason"]
    annotations = scene.fake.job(scene.job_name)["metadata"]["annotations"]
    assert ["status-reporter.io/example.com.Done"] == list(annotations)


@pytest.mark.parametrize(
    ("policy", "status", "code"),
    [
        ("infrastructure", "success", 0),
        ("infrastructure", "failure", 0),
        ("failure", "success", 0),
        ("failure", "failure", 1),
        ("never", "failure", 0),
    ],
)
def test_the_exit_code_after_a_result(scene: Scene, policy: str, status: str, code: int) -> None:
    """Classic form: the adapter's own word is no failure of ours unless asked for."""
    scene.create()
    scene.write_result(status)

    assert code == scene.start(EXIT_POLICY=policy).join()


@pytest.mark.parametrize(("policy", "code"), [("infrastructure", 1), ("failure", 1), ("never", 0)])
def test_the_exit_code_after_a_verdict_of_our_own(scene: Scene, policy: str, code: int) -> None:
    """Classic form: 1 unless the policy says never."""
    scene.create(adapter=scene.ended(3))

    assert code == scene.start(EXIT_POLICY=policy).join()
    assert "AdapterExitedWithError" == scene.condition()["reason"]


ENDS: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, str]]] = {
    "exit 1": ({"code": 1}, {}, ("False", "AdapterExitedWithError")),
    "exit 0": ({"code": 0}, {}, ("False", "AdapterMissingResults")),
    "exit 0, no result required": (
        {"code": 0},
        {"RESULT_REQUIRED": "false"},
        ("True", "AdapterSucceeded"),
    ),
    "OOM": ({"code": 137, "reason": "OOMKilled"}, {}, ("False", "AdapterOOMKilled")),
    "child OOM": ({"code": 0, "reason": "OOMKilled"}, {}, ("False", "AdapterOOMKilled")),
    "not startable": (
        {"code": 128, "reason": "StartError", "message": "exec: no such file"},
        {},
        ("False", "AdapterStartFailed"),
    ),
    "lost": (
        {"code": 137, "reason": "ContainerStatusUnknown"},
        {},
        ("Unknown", "AdapterInterrupted"),
    ),
}


@pytest.mark.parametrize("form", ["classic", "native"])
@pytest.mark.parametrize("end", ENDS)
def test_an_adapter_that_ends_without_a_file(scene: Scene, form: str, end: str) -> None:
    """One final verdict; the native form waits for its SIGTERM and exits with 0."""
    options, variables, (status, reason) = ENDS[end]
    scene.create(form=form)
    reporter = scene.start(**variables)
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(**options))
    scene.wait_final()

    if form == "native":
        assert reporter.alive
        assert 0 == reporter.finish()
    else:
        assert (0 if reason == "AdapterSucceeded" else 1) == reporter.join()
    assert [A, (status, reason, True)] == scene.history()


@pytest.mark.parametrize("form", ["classic", "native"])
def test_it_starts_after_the_adapter_has_ended(scene: Scene, form: str) -> None:
    """The result is there and is taken; nothing else is written."""
    scene.write_result()
    scene.create(form=form, adapter=scene.ended(0))
    reporter = scene.start()
    scene.wait_final()

    assert 0 == reporter.finish()
    assert [("True", "AllGood", True)] == scene.history()


@pytest.mark.parametrize("order", ["file first", "end first"])
@pytest.mark.parametrize("code", [0, 1])
def test_written_and_quit_at_once(scene: Scene, order: str, code: int) -> None:
    """File event and terminated event race; "no file" is never said of a file that is there."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    steps = [scene.write_result, lambda: scene.adapter(scene.ended(code))]
    if order == "end first":
        # The file was there before the end could be seen; its event is late.
        with scene.fake.changed:
            scene.adapter(scene.ended(code))
            scene.write_result()
    else:
        for step in steps:
            step()

    assert 0 == reporter.join()
    assert [A, ("True", "AllGood", True)] == scene.history()


def test_a_half_written_result_is_no_verdict_until_it_is_complete(scene: Scene) -> None:
    """An adapter that does not rename is heard all the same."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    with scene.path.open("w") as file:
        file.write('{"status": "success", "rea')
        file.flush()
        scene.fake.wait_for(lambda: reporter.alive)
        file.write('son": "AllGood"}')

    assert 0 == reporter.join()
    assert [A, ("True", "AllGood", True)] == scene.history()


def test_a_half_written_result_of_an_ended_adapter_is_invalid(scene: Scene) -> None:
    """Nobody will complete it; the message says what is wrong."""
    scene.create()
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.write('{"status": "success", "rea')
    scene.adapter(scene.ended(1))

    assert 1 == reporter.join()
    assert [A, ("False", "InvalidResultFormat", True)] == scene.history()
    assert scene.condition()["message"].startswith("Failed to parse adapter result: ")


def test_an_oom_kill_wins_over_a_half_written_result(scene: Scene) -> None:
    """The cause, not its symptom."""
    scene.write('{"status": ')
    scene.create(adapter=scene.ended(137, "OOMKilled"))

    scene.start().join()
    assert [("False", "AdapterOOMKilled", True)] == scene.history()


def test_a_file_that_is_older_than_the_run_is_not_its_result(scene: Scene) -> None:
    """Left by somebody else: the adapter has not written yet."""
    scene.write_result()
    scene.create(adapter=running(now(100)))
    reporter = scene.start()
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(0, started_at=now(100), finished_at=now(101)))

    assert 1 == reporter.join()
    assert [A, ("False", "AdapterMissingResults", True)] == scene.history()


def test_the_wait_time_ends(scene: Scene) -> None:
    """Final at once for an adapter that has started, in the words of the contract."""
    scene.create(adapter=running(now(-100)))

    assert 1 == scene.start(MAX_WAIT_TIME_SECONDS="72").join()
    assert [("False", "AdapterTimeout", True)] == scene.history()
    assert "Adapter did not produce results within 1m12s" == scene.condition()["message"]


def test_an_image_that_cannot_be_had_is_said_at_once_and_taken_back(scene: Scene) -> None:
    """Revisable: the adapter may start after all."""
    scene.create(form="native", adapter=waiting("ErrImageNeverPull", "not on this node"))
    reporter = scene.start()
    scene.wait_condition("AdapterImagePullFailed")
    assert "ErrImageNeverPull: not on this node" in scene.condition()["message"]
    scene.adapter(running(scene.started))
    scene.wait_condition(RUNNING)
    scene.write_result()
    scene.wait_final()
    scene.adapter(scene.ended())

    assert 0 == reporter.finish()
    expected = [("False", "AdapterImagePullFailed", False), A, ("True", "AllGood", True)]
    assert expected == scene.history()


def test_no_write_where_running_is_not_wanted(scene: Scene) -> None:
    """REPORT_RUNNING=false: the verdict is all that is written."""
    scene.create()
    reporter = scene.start(REPORT_RUNNING="false")
    scene.fake.wait_for(lambda: scene.fake.requests("GET", "/jobs/"))
    scene.write_result()

    assert 0 == reporter.join()
    assert [("True", "AllGood", True)] == scene.history()


def test_under_onfailure_a_result_is_revisable_until_the_end(scene: Scene) -> None:
    """Written at once, final when the adapter has ended for good; exit 0."""
    scene.create(restart_policy="OnFailure")
    reporter = scene.start()
    scene.write_result()
    scene.wait_condition("AllGood")
    assert reporter.alive
    scene.adapter(scene.ended(0))

    assert 0 == reporter.join()
    assert [("True", "AllGood", False), ("True", "AllGood", True)] == scene.history()[-2:]


def test_under_onfailure_a_second_run_takes_its_place(scene: Scene) -> None:
    """The first run's failure is replaced by the second run's success."""
    scene.create(restart_policy="OnFailure")
    reporter = scene.start()
    scene.write_result("failure", "DiskFull")
    scene.wait_condition("DiskFull")
    first = scene.ended(1)
    scene.adapter(first)
    scene.fake.wait_for(lambda: scene.said("Adapter state")[-1]["state"] == "terminated")
    # In the same second: only that it was there before tells the old file from a new one.
    again = now()
    scene.adapter(running(again), last=first, restarts=1)
    scene.wait_condition(RUNNING)
    scene.write_result("success", "AllGood")
    scene.wait_condition("AllGood")
    scene.adapter(scene.ended(0, started_at=again), last=first, restarts=1)

    assert 0 == reporter.join()
    assert ("True", "AllGood", True) == scene.history()[-1]
    assert 1 == scene.note()["attempt"]["adapterRestarts"]


def test_under_onfailure_a_timeout_is_final_but_the_reporter_stays(scene: Scene) -> None:
    """An early exit would count against the Job's back-off limit."""
    scene.create(adapter=running(now(-100)), restart_policy="OnFailure")
    reporter = scene.start(MAX_WAIT_TIME_SECONDS="5")
    scene.wait_final()
    assert reporter.alive
    scene.adapter(scene.ended(0, started_at=now(-100)))

    assert 0 == reporter.join()
    assert [("False", "AdapterTimeout", True)] == scene.history()


def test_a_crash_loop_is_reported(scene: Scene) -> None:
    """Revisable, with the last exit code and the restarts."""
    last = scene.ended(7)["terminated"]
    scene.create(
        adapter=waiting("CrashLoopBackOff", "back-off 20s"),
        last_state={"terminated": last},
        restarts=2,
        restart_policy="OnFailure",
    )
    scene.start()

    message = scene.wait_condition("AdapterCrashLooping")["message"]
    assert "last exit code 7, restarted 2 times" in message


@pytest.mark.parametrize("problem", ["exit 1", "OOM"])
def test_a_contradiction_is_noted_once(scene: Scene, problem: str) -> None:
    """Native form: a success that the adapter's end belies stays, and the annotation says so."""
    options, _, _ = ENDS[problem]
    scene.create(form="native")
    reporter = scene.start()
    scene.write_result()
    scene.wait_final()
    scene.adapter(scene.ended(**options))
    scene.fake.wait_for(lambda: "after" in scene.note())

    assert 0 == reporter.finish()
    assert ("True", "AllGood") == (scene.condition()["status"], scene.condition()["reason"])
    assert options["code"] == scene.note()["after"]["exitCode"]
    noted = scene.writes()[-1]
    assert ["metadata"] == list(noted)
    assert 1 == sum("status" not in body for body in scene.writes())


def test_a_contradiction_is_noted_although_somebody_else_writes_to_the_job(scene: Scene) -> None:
    """Each of the first two patches comes too late: 409."""
    scene.create(form="native")
    reporter = scene.start()
    scene.write_result()
    scene.wait_final()
    fault = scene.fake.fail(Answer(409), method="PATCH", times=2)
    scene.adapter(scene.ended(1))

    assert 0 == reporter.finish()
    assert 1 == scene.note()["after"]["exitCode"]
    assert 2 == fault.hits


def test_a_contradiction_is_noted_by_a_restarted_reporter(scene: Scene) -> None:
    """The evidence that the first one wrote is kept."""
    scene.create(form="native")
    first = scene.start()
    scene.write_result()
    scene.wait_final()
    evidence = scene.note()["evidence"]
    first.close()
    second = scene.start()
    scene.wait_log("Final verdict is already on the Job")
    scene.adapter(scene.ended(1))

    assert 0 == second.finish()
    assert 1 == scene.note()["after"]["exitCode"]
    assert evidence == scene.note()["evidence"]


def test_an_end_that_fits_the_success_is_not_noted(scene: Scene) -> None:
    """Exit 0 after a success: nothing to add."""
    scene.create(form="native")
    reporter = scene.start()
    scene.write_result()
    scene.wait_final()
    written = len(scene.writes())
    scene.adapter(scene.ended(0))

    assert 0 == reporter.finish()
    assert written == len(scene.writes())
