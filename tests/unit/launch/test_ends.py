"""How a plugin's Pod can end without a result, and what of it is told when."""

import pytest

from reporter.launch.seen import LATE
from reporter.launch.situation import SETTLE
from reporter.run.names import entry_name
from reporter.run.record import Cause
from reporter.verdict.condition import annotation_key
from tests.unit.launch.cluster import (
    CHECK,
    NOW,
    Launcher,
    api_job,
    api_pod,
    check_run,
    ended,
    running,
    waiting,
)

JOB = api_job(CHECK)
NAME = entry_name("r", CHECK)
POD = f"{NAME}-x7k2p"
WHO = f"Container 'main' of Pod {POD}"
START_FAILED, POD_FAILED = Cause.START_FAILED, Cause.POD_FAILED


def pod(plugin=None, ours=None, **fields):
    """The Pod of the plugin for the whole cluster."""
    return api_pod(CHECK, plugin, ours, **fields)


def disruption(reason, message=""):
    """The condition of a Pod that the platform takes away."""
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "message": message}


def deleted(plugin, ours, *conditions, **fields):
    """A Pod whose deletion was asked for, with a grace period of 30 seconds."""
    more = {"deletionTimestamp": "2026-01-01T00:00:40Z", "deletionGracePeriodSeconds": 30}
    return pod(plugin, ours, phase="Running", conditions=conditions, **(more | fields))


LATER = {"name": "forged", "uid": "zz", "creationTimestamp": "2026-01-01T00:00:09Z"}


def seen(*pods, jobs=(JOB,)):
    """A world."""
    return {"jobs": jobs, "pods": pods}


def failed_job(reason):
    """A Job that has failed."""
    condition = {"type": "Failed", "status": "True", "reason": reason}
    return api_job(CHECK, conditions=[condition])


def judged_job(status, reason, message, *, of=POD, final=True, conditions=()):
    """A Job with the word of our sidecar in that Pod."""
    kind = "Available"
    note = f'{{"final": {str(final).lower()}, "rule": "X", "attempt": {{"pod": "{of}"}}}}'
    job = api_job(CHECK)
    job["metadata"]["annotations"] |= {annotation_key(kind): note}
    condition = {"type": kind, "status": status, "reason": reason, "message": message}
    job["status"]["conditions"] = [condition, *conditions]
    return job


def begun(contract="result-file", **fields):
    """A launcher whose plugin's container has begun."""
    return Launcher(check_run(contract, **fields)).launch(CHECK).started(CHECK)


def fails_after(launcher, look, seconds, expected, at=0):
    """It is shown from then on, and a failure so many seconds later."""
    assert {} == launcher.look(at, **look).fail
    assert {} == launcher.look(at + seconds - 0.1, **look).fail
    failure = launcher.look(at + seconds, **look).fail[CHECK]
    assert expected == (failure.cause, failure.reason, failure.text)
    return failure


OVER = {
    "it exits with an error": (
        ended(3, message="disk on fire\n"),
        "Error",
        f"{WHO} ended: exit code 3 (Error: disk on fire), and its result never arrived",
    ),
    "it exits well and leaves nothing": (
        ended(0),
        "Completed",
        f"{WHO} ended: exit code 0 (Completed), and its result never arrived",
    ),
    "it needs too much memory": (
        ended(137, "OOMKilled"),
        "OOMKilled",
        f"{WHO} ran out of memory and was killed (OOMKilled, exit code 137)",
    ),
    "its container is lost": (
        ended(137, "ContainerStatusUnknown"),
        "ContainerStatusUnknown",
        f"{WHO} was lost: the kubelet could not find it any more",
    ),
    "it says much before it ends": (
        ended(1, message="x" * 500 + "é" * 80),
        "Error",
        f"{WHO} ended: exit code 1 (Error: {'é' * 80}), and its result never arrived",
    ),
}


@pytest.mark.parametrize("contract", ["result-file", "done-file", "link"])
@pytest.mark.parametrize("case", OVER.values(), ids=OVER)
def test_an_end_without_a_result(case, contract):
    """60 seconds after the end of whoever uploads; while that runs, only the deadline counts."""
    state, reason, text = case
    if "never arrived" not in text:
        text += ", and its result never arrived"
    launcher = Launcher(check_run(contract)).launch(CHECK).started(CHECK)
    at = 0
    if contract != "link":
        uploading = pod(state, running(), phase="Running", contract=contract)
        made = launcher.look(0, **seen(uploading))
        assert ({}, None) == (made.fail, made.next_look)
        assert made.pods[CHECK].message.endswith("and its result has not arrived yet")
        at = 5_000
        assert {} == launcher.look(at, **seen(uploading)).fail
    over = pod(state, ended(0), phase="Failed", contract=contract)
    assert {} == launcher.look(at, **seen(over)).fail
    assert {} == launcher.look(at + 59.9, **seen(over)).fail
    failure = launcher.look(at + 60, **seen(over)).fail[CHECK]
    assert (POD_FAILED, reason, text) == (failure.cause, failure.reason, failure.text)


BUSY = (running(), running())
EVICTED = disruption("EvictionByEvictionAPI", "drained")
TAKEN = {
    "its Pod is evicted by the API": (
        deleted(*BUSY, EVICTED),
        "EvictionByEvictionAPI",
        f"Pod {POD} was disrupted (EvictionByEvictionAPI: drained)",
    ),
    "its Pod makes room for another": (
        deleted(*BUSY, disruption("PreemptionByScheduler")),
        "PreemptionByScheduler",
        f"Pod {POD} was disrupted (PreemptionByScheduler)",
    ),
    "its node is lost": (
        deleted(*BUSY, disruption("DeletionByTaintManager")),
        "DeletionByTaintManager",
        f"Pod {POD} was disrupted (DeletionByTaintManager)",
    ),
    "somebody deletes its Pod": (
        deleted(*BUSY),
        "PodDeleted",
        f"Pod {POD} was deleted before its result arrived",
    ),
}


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_a_pod_that_is_taken_away_while_ours_may_still_upload(case):
    """It has the grace period for what it has; on a lost node it is never seen to end."""
    shown, reason, text = case
    fails_after(begun(), seen(shown), 30 + LATE, (POD_FAILED, reason, text))


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_a_pod_that_was_taken_away_and_is_gone(case):
    """What was last seen of it is the reason, not that it is gone."""
    shown, reason, text = case
    launcher = begun()
    launcher.look(0, **seen(shown))
    fails_after(launcher, seen(), SETTLE, (POD_FAILED, reason, text), at=5)


@pytest.mark.parametrize("case", TAKEN.values(), ids=TAKEN)
def test_a_pod_that_was_taken_away_and_its_job_too(case):
    shown, reason, text = case
    launcher = begun()
    launcher.look(0, **seen(shown))
    fails_after(launcher, seen(jobs=()), SETTLE, (POD_FAILED, reason, text), at=5)


def test_an_eviction_by_the_kubelet():
    """Its Pods stay, and have ended when it is told."""
    gone = pod(
        ended(137),
        ended(0),
        phase="Failed",
        status={"reason": "Evicted", "message": "low on memory"},
        conditions=[disruption("TerminationByKubelet", "low on memory")],
    )
    text = f"Pod {POD} was disrupted (TerminationByKubelet: low on memory)"
    fails_after(begun(), seen(gone), SETTLE, (POD_FAILED, "Evicted", text))


def test_a_disruption_that_is_only_announced_is_no_end():
    """The Pod may be spared."""
    shown = pod(running(), running(), phase="Running", conditions=[EVICTED])
    launcher = begun()
    made = launcher.look(0, **seen(shown))
    assert ({}, None) == (made.fail, made.next_look)
    assert {} == launcher.look(9_000, **seen(shown)).fail


def test_a_pod_that_is_taken_away_before_it_started():
    shown = deleted(waiting("ContainerCreating"), None)
    text = f"Pod {POD} was deleted before its result arrived"
    launcher = Launcher(check_run()).launch(CHECK)
    fails_after(launcher, seen(shown), SETTLE, (POD_FAILED, "PodDeleted", text))


def test_a_plugin_that_ended_by_itself_before_its_pod_was_deleted():
    """Its own end is what people need to know."""
    shown = deleted(ended(3, at=NOW + 5), ended(0))
    text = f"{WHO} ended: exit code 3 (Error), and its result never arrived"
    fails_after(begun(), seen(shown), SETTLE, (POD_FAILED, "Error", text))


def test_a_plugin_that_ended_because_its_pod_was_deleted():
    shown = deleted(ended(143, at=NOW + 20), ended(0))
    text = f"Pod {POD} was deleted before its result arrived"
    fails_after(begun(), seen(shown), SETTLE, (POD_FAILED, "PodDeleted", text))


def test_a_pod_that_vanishes_after_its_plugin_ended():
    """Force deletion: nothing of the deletion was ever seen."""
    launcher = begun()
    launcher.look(0, **seen(pod(ended(3), running(), phase="Running")))
    text = f"{WHO} ended: exit code 3 (Error), and its result never arrived"
    fails_after(launcher, seen(), SETTLE, (POD_FAILED, "Error", text), at=9)


def test_a_pod_that_vanishes_while_it_runs():
    launcher = begun()
    launcher.look(0, **seen(pod(running(), running(), phase="Running")))
    text = f"Pod {POD} was deleted before its result arrived"
    fails_after(launcher, seen(), SETTLE, (POD_FAILED, "PodDeleted", text), at=9)


@pytest.mark.parametrize("started", [True, False], ids=["running", "starting"])
def test_a_pod_that_vanished_while_the_launcher_was_away(started):
    """The Job says that there was one, and will be none."""
    launcher = Launcher(check_run()).launch(CHECK)
    if started:
        launcher.started(CHECK)
    text = f"Pod of Job {NAME} was deleted before its result arrived"
    look = seen(jobs=[failed_job("BackoffLimitExceeded")])
    fails_after(launcher, look, SETTLE, (POD_FAILED, "PodDeleted", text))


def test_a_job_that_is_complete_and_has_no_pod():
    """Its plugin began and ended while the launcher was away."""
    done = api_job(CHECK, conditions=[{"type": "Complete", "status": "True"}])
    text = f"Pod of Job {NAME} was deleted before its result arrived"
    launcher = Launcher(check_run()).launch(CHECK)
    fails_after(launcher, seen(jobs=[done]), SETTLE, (POD_FAILED, "PodDeleted", text))


def test_a_started_plugin_without_a_pod():
    """Its Job has not failed yet, but there will be no second Pod."""
    text = f"Pod of Job {NAME} was deleted before its result arrived"
    fails_after(begun(), seen(), SETTLE, (POD_FAILED, "PodDeleted", text))


def test_a_pod_that_was_seen_and_vanished_before_it_started():
    launcher = Launcher(check_run()).launch(CHECK)
    launcher.look(0, **seen(pod(waiting("ContainerCreating"))))
    text = f"Pod {POD} was deleted before its result arrived"
    fails_after(launcher, seen(), SETTLE, (POD_FAILED, "PodDeleted", text), at=9)


def test_a_job_that_is_being_deleted_makes_no_pod():
    look = seen(jobs=[api_job(CHECK, deletionTimestamp="2026-01-01T00:00:40Z")])
    text = f"Pod of Job {NAME} was deleted before its result arrived"
    launcher = Launcher(check_run()).launch(CHECK)
    fails_after(launcher, look, SETTLE, (POD_FAILED, "PodDeleted", text))


@pytest.mark.parametrize("pods", [(), (deleted(*BUSY),)], ids=["gone", "ending"])
def test_a_job_whose_own_deadline_passed(pods):
    look = seen(*pods, jobs=[failed_job("DeadlineExceeded")])
    text = f"Job {NAME} ran longer than its activeDeadlineSeconds"
    seconds = 30 + LATE if pods else SETTLE
    fails_after(begun(), look, seconds, (POD_FAILED, "DeadlineExceeded", text))


def test_a_job_that_was_seen_and_is_gone():
    launcher = begun()
    launcher.look(0, **seen(pod(running(), running(), phase="Running")))
    text = f"Job {NAME} was deleted before its result arrived"
    fails_after(launcher, seen(jobs=()), SETTLE, (POD_FAILED, "JobDeleted", text), at=9)


def test_a_job_that_only_its_creation_has_shown():
    """The answer to the request is no watch: it and its Pod may still be seen."""
    launcher = Launcher(check_run()).launch(CHECK)
    launcher.look(0, **seen())
    text = f"Job {NAME} was deleted before its result arrived"
    fails_after(launcher, seen(jobs=()), 60, (POD_FAILED, "JobDeleted", text), at=9)


@pytest.mark.parametrize("started", [True, False], ids=["running", "starting"])
def test_a_job_that_was_never_seen(started):
    """A watch may not have shown it yet: right after its creation nobody fails for that."""
    launcher = Launcher(check_run()).launch(CHECK)
    if started:
        launcher.started(CHECK)
    text = f"Job {NAME} was deleted before its result arrived"
    fails_after(launcher, seen(jobs=()), 60, (POD_FAILED, "JobDeleted", text))


def test_a_job_of_that_name_that_is_another_one_now():
    """Neither it nor its Pod tells anything of the entry."""
    launcher = begun()
    launcher.look(0, **seen(pod(running(), running(), phase="Running")))
    other = api_job(CHECK, uid="another", owner="somebody")
    its = pod(ended(0), ended(0), phase="Succeeded", job_uid="another")
    text = f"Job {NAME} was deleted before its result arrived"
    look = seen(its, jobs=[other])
    fails_after(launcher, look, SETTLE, (POD_FAILED, "JobDeleted", text), at=9)


def test_a_pod_with_our_labels_that_our_job_has_not_made():
    """Anybody who may create Pods could fail an entry with it."""
    forged = pod(ended(1), ended(1), phase="Failed", job_uid="forged")
    launcher = Launcher(check_run()).launch(CHECK)
    made = launcher.look(20, **seen(forged))
    assert ("NoPod", "") == (made.pods[CHECK].reason, made.pods[CHECK].name)
    assert {} == made.start


@pytest.mark.parametrize("taken", [True, False], ids=["and is taken away", ""])
def test_a_newer_pod_with_our_labels_beside_the_one_that_our_job_has_made(taken):
    """It does not hide that one, not even one that is taken away and would count last."""
    forged = pod(ended(1), ended(1), phase="Failed", job_uid="forged", **LATER)
    real = deleted(*BUSY) if taken else pod(*BUSY, phase="Running")
    launchers = begun(), begun()
    for after in (0, 5, 60, 600):
        alone, both = (
            launcher.look(after, **seen(*pods))
            for launcher, pods in zip(launchers, ((real,), (real, forged)), strict=True)
        )
        assert alone == both
    assert taken == launchers[1].entries[CHECK].terminal


def test_a_pod_outlives_its_job_for_a_moment():
    """The Job was deleted; its Pod still runs in its grace period."""
    launcher = begun()
    launcher.look(0, **seen(pod(running(), running(), phase="Running")))
    look = seen(deleted(*BUSY), jobs=())
    text = f"Pod {POD} was deleted before its result arrived"
    fails_after(launcher, look, 30 + LATE, (POD_FAILED, "PodDeleted", text), at=1)


@pytest.mark.parametrize(
    ("status", "verdict", "ending"),
    [
        ("True", "passed", "; its result never arrived"),
        ("False", "failed", ""),
        ("Unknown", "unknown", ""),
    ],
)
def test_the_sidecar_could_not_upload_but_wrote_its_verdict(status, verdict, ending):
    """The entry takes what the condition says."""
    job = judged_job(status, "DiskSlow", "80 ms")
    over = pod(ended(0), ended(1), phase="Failed")
    expected = (POD_FAILED, "DiskSlow", f"80 ms{ending}")
    failure = fails_after(begun(), seen(over, jobs=[job]), 60, expected)
    assert verdict == failure.verdict


def test_a_verdict_of_a_pod_that_is_gone():
    job = judged_job("False", "DiskSlow", "80 ms")
    failure = fails_after(begun(), seen(jobs=[job]), SETTLE, (POD_FAILED, "DiskSlow", "80 ms"))
    assert "failed" == failure.verdict


@pytest.mark.parametrize(
    "job",
    [
        judged_job("False", "DiskSlow", "80 ms", of="another"),
        judged_job("False", "DiskSlow", "80 ms", final=False),
    ],
    ids=["of another Pod", "not final"],
)
def test_a_condition_that_says_nothing_about_this_end(job):
    over = pod(ended(3), ended(1), phase="Failed")
    text = f"{WHO} ended: exit code 3 (Error), and its result never arrived"
    failure = fails_after(begun(), seen(over, jobs=[job]), 60, (POD_FAILED, "Error", text))
    assert "" == failure.verdict


def test_a_final_condition_decides_nothing_while_the_pod_runs():
    """The sidecar writes it first and uploads then."""
    job = judged_job("False", "DiskSlow", "80 ms")
    launcher = begun()
    look = seen(pod(running(), running(), phase="Running"), jobs=[job])
    launcher.look(0, **look)
    assert {} == launcher.look(5_000, **look).fail


def test_a_final_condition_about_a_start_does_not_replace_the_kubelets_words():
    """The sidecar waits as long as the plugin may take; the launcher does not."""
    job = judged_job("False", "AdapterTimeout", "nothing came")
    look = seen(pod(waiting("ErrImagePull", "not found"), running()), jobs=[job])
    launcher = Launcher(check_run()).launch(CHECK)
    text = "container 'main': ErrImagePull: not found"
    failure = fails_after(launcher, look, 300, (START_FAILED, "ErrImagePull", text))
    assert "" == failure.verdict


def test_the_command_of_a_plugin_does_not_exist():
    """The runtime could not start it, and with restartPolicy Never it is over."""
    run = {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}}
    over = pod(run, ended(0), phase="Failed")
    text = "container 'main': StartError: no such file"
    launcher = Launcher(check_run()).launch(CHECK)
    fails_after(launcher, seen(over), 60, (START_FAILED, "StartError", text))


def test_an_init_container_of_the_plugin_fails():
    """Its own containers never start."""
    over = pod(waiting("PodInitializing"), None, phase="Failed")
    over["spec"]["initContainers"].append({"name": "setup"})
    over["status"]["initContainerStatuses"].append(
        {"name": "setup", "state": ended(7, message="no disk")}
    )
    text = "init container 'setup': exited with code 7: Error: no disk"
    launcher = Launcher(check_run()).launch(CHECK)
    fails_after(launcher, seen(over), 60, (START_FAILED, "InitContainerFailed", text))


def test_a_pod_that_was_given_up_with_its_node():
    """Nobody is left to say that our container does not run any more."""
    over = pod(ended(3), running(), phase="Failed")
    text = f"{WHO} ended: exit code 3 (Error), and its result never arrived"
    fails_after(begun(), seen(over), 60, (POD_FAILED, "Error", text))


def test_a_pod_that_ends_without_a_word():
    over = pod(None, None, phase="Failed")
    text = f"{WHO} never started, and the Pod has ended"
    launcher = Launcher(check_run()).launch(CHECK)
    fails_after(launcher, seen(over), 60, (START_FAILED, "NeverStarted", text))


def test_our_worker_cannot_be_pulled_while_the_plugin_runs():
    """Nobody would send what it writes."""
    launcher = begun("done-file")
    look = pod(running(), waiting("ErrImagePull", "not found"), contract="done-file")
    text = "container 'status-worker': ErrImagePull: not found"
    fails_after(launcher, seen(look), 300, (START_FAILED, "ErrImagePull", text))
