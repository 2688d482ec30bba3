"""What is taken from a decided entry, what is removed, and when that is given up."""

import pytest

from reporter.launch.job import secret_name
from reporter.run.definition import Definition
from reporter.run.identity import ANY_NODE
from reporter.run.names import entry_name
from reporter.run.plan import Key, Plugin
from reporter.run.record import Cause, Failure
from tests.unit.launch.cluster import (
    CHECK,
    NODE1,
    NODE2,
    NOW,
    Launcher,
    api_job,
    api_pod,
    check_run,
    definition,
    ended,
    run_of,
    running,
    waiting,
)

JOB, NAME = api_job(CHECK), entry_name("r", CHECK)
TAKEN = frozenset({CHECK})
BUSY = api_pod(CHECK, running(), running(), phase="Running")
DONE = api_pod(CHECK, ended(), ended(), phase="Succeeded")
LATER = {"name": "forged", "uid": "zz", "creationTimestamp": "2026-01-01T00:00:09Z"}
TWO = run_of(Plugin("disk", ("node1", "node2")), definitions=[definition("disk", driver="Node")])


def decided(verdict="passed", **fields):
    """A launcher whose one entry has its result."""
    return Launcher(check_run(**fields)).launch(CHECK).started(CHECK).receive(CHECK, verdict)


def failed(cause, at=NOW, **fields):
    """A launcher whose one entry has failed."""
    failure = Failure("final", at, "so", cause)
    return Launcher(check_run(**fields)).launch(CHECK).started(CHECK).fail(CHECK, failure)


def made_by_nobody(pod):
    """That Pod as somebody made it by hand: with its labels, but for the controller's."""
    labels = dict(pod["metadata"]["labels"])
    del labels["batch.kubernetes.io/controller-uid"]
    return pod | {"metadata": pod["metadata"] | {"labels": labels}}


def test_logs_are_taken_before_the_job_goes():
    launcher = decided()
    made = launcher.look(0, jobs=[JOB], pods=[BUSY])
    assert ((CHECK,), (), False) == (made.take_logs, made.delete, made.through)
    made = launcher.look(1, jobs=[JOB], pods=[BUSY], taken_logs=TAKEN)
    assert ((), (NAME,), False) == (made.take_logs, made.delete, made.through)
    leaving = api_job(CHECK, deletionTimestamp="2026-01-01T00:00:02Z")
    made = launcher.look(2, jobs=[leaving], pods=[BUSY], taken_logs=TAKEN)
    assert ((), False) == (made.delete, made.through)
    made = launcher.look(3, pods=[BUSY], taken_logs=TAKEN)
    assert ((), False) == (made.delete, made.through)
    made = launcher.look(4, taken_logs=TAKEN)
    assert made.through
    assert {} == made.stays


def test_the_log_of_a_plugin_whose_start_is_not_seen_yet():
    """It was fast: its result came before the API showed that its container has started."""
    launcher = decided()
    early = api_pod(CHECK, waiting("PodInitializing"), running(), phase="Pending")
    made = launcher.look(0, jobs=[JOB], pods=[early])
    assert ((), ()) == (made.take_logs, made.delete)
    assert NOW + 10 == made.next_look
    made = launcher.look(0.2, jobs=[JOB], pods=[BUSY])
    assert (CHECK,) == made.take_logs


def test_the_log_of_a_plugin_whose_pod_is_not_seen_yet():
    """Its result came before the watch of the Pods told of the one that sent it."""
    launcher = decided()
    made = launcher.look(0, jobs=[JOB])
    assert ((), ()) == (made.take_logs, made.delete)
    assert NOW + 10 == made.next_look
    made = launcher.look(0.2, jobs=[JOB], pods=[BUSY])
    assert ((CHECK,), ()) == (made.take_logs, made.delete)


def test_a_start_that_is_never_seen_does_not_keep_the_other_logs():
    launcher = decided()
    early = api_pod(CHECK, waiting("PodInitializing"), running(), phase="Pending")
    assert () == launcher.look(0, jobs=[JOB], pods=[early]).take_logs
    assert (CHECK,) == launcher.look(10, jobs=[JOB], pods=[early]).take_logs


def test_a_plugin_that_cannot_start_has_no_log_to_wait_for():
    launcher = failed(Cause.START_FAILED)
    early = api_pod(CHECK, waiting("ErrImagePull"), running(), phase="Pending")
    assert (CHECK,) == launcher.look(0, jobs=[JOB], pods=[early]).take_logs


def test_an_open_entry_is_left_alone():
    launcher = Launcher(check_run()).launch(CHECK).started(CHECK)
    made = launcher.look(0, jobs=[JOB], pods=[DONE])
    assert ((), (), False) == (made.take_logs, made.delete, made.through)


@pytest.mark.parametrize(
    "pods",
    [
        (),
        (api_pod(CHECK, waiting("ErrImagePull"), waiting("ErrImagePull")),),
        (api_pod(CHECK),),
    ],
    ids=["no Pod", "nothing has started", "nothing is shown"],
)
def test_where_there_are_no_logs_nobody_waits_for_them(pods):
    """Not longer than the API may take to show that a container has started."""
    made = decided().look(10, jobs=[JOB], pods=pods)
    assert ((), (NAME,)) == (made.take_logs, made.delete)


def test_a_pod_that_is_not_of_our_job_has_no_logs_of_ours():
    forged = api_pod(CHECK, running(), running(), job_uid="forged")
    made = decided().look(10, jobs=[JOB], pods=[forged])
    assert ((), (NAME,)) == (made.take_logs, made.delete)
    both = [BUSY, forged | {"metadata": forged["metadata"] | LATER}]
    assert (CHECK,) == decided().look(0, jobs=[JOB], pods=both).take_logs


def test_the_logs_of_an_init_container_are_logs():
    pod = api_pod(CHECK, waiting("PodInitializing"), running())
    assert (CHECK,) == decided().look(10, jobs=[JOB], pods=[pod]).take_logs


@pytest.mark.parametrize(
    ("cleanup", "verdict", "goes"),
    [
        ("always", "passed", True),
        ("always", "failed", True),
        ("success", "passed", True),
        ("success", "failed", False),
        ("success", "unknown", False),
        ("never", "passed", False),
    ],
)
def test_what_a_definition_says_of_its_job(cleanup, verdict, goes):
    """Logs are taken in any case; what stays on purpose does not hold up the end."""
    launcher = decided(verdict, cleanup=cleanup)
    made = launcher.look(0, jobs=[JOB], pods=[DONE])
    assert ((CHECK,), False) == (made.take_logs, made.through)
    made = launcher.look(1, jobs=[JOB], pods=[DONE], taken_logs=TAKEN)
    assert ((NAME,) if goes else (), not goes) == (made.delete, made.through)


def test_a_job_stays_whose_result_never_came_although_it_has_passed():
    """Its condition says so; somebody will ask why the run has nothing of it."""
    run = Launcher(check_run(cleanup="success")).launch(CHECK).started(CHECK)
    text = "Greeted; its result never arrived"
    failure = Failure("final", NOW, text, Cause.POD_FAILED, "Greeted", verdict="passed")
    made = run.fail(CHECK, failure).look(0, jobs=[JOB], pods=[DONE], taken_logs=TAKEN)

    assert ((), True) == (made.delete, made.through)


def test_a_job_waits_for_the_verdict_on_its_result_where_that_decides():
    """Logs are taken meanwhile; the launcher is not through before."""
    made = decided("", cleanup="success").look(0, jobs=[JOB], pods=[DONE], taken_logs=TAKEN)
    assert ((), False) == (made.delete, made.through)
    made = decided("", cleanup="never").look(0, jobs=[JOB], pods=[DONE], taken_logs=TAKEN)
    assert ((), True) == (made.delete, made.through)


@pytest.mark.parametrize("cleanup", ["success", "never"])
def test_a_failed_entry_keeps_its_job_where_that_is_wanted(cleanup):
    made = failed(Cause.POD_FAILED, cleanup=cleanup).look(0, jobs=[JOB], taken_logs=TAKEN)
    assert ((), True) == (made.delete, made.through)


@pytest.mark.parametrize("cleanup", ["always", "success", "never"])
def test_a_plugin_that_was_stopped_runs_no_longer(cleanup):
    """Whatever its definition says of Jobs that are to be looked at; its logs are taken before."""
    launcher = failed(Cause.STOPPED, cleanup=cleanup)
    made = launcher.look(0, jobs=[JOB], pods=[BUSY])
    assert ((CHECK,), (), False) == (made.take_logs, made.delete, made.logs_taken)
    made = launcher.look(1, jobs=[JOB], pods=[BUSY], taken_logs=TAKEN)
    assert ((NAME,), True) == (made.delete, made.logs_taken)


@pytest.mark.parametrize("cause", [Cause.DEADLINE, Cause.HEARTBEAT])
def test_a_worker_that_may_be_between_two_tries_is_not_killed(cause):
    """The run is held open for it, too."""
    launcher = failed(cause)
    look = {"jobs": [JOB], "pods": [BUSY], "taken_logs": TAKEN}
    made = launcher.look(19.9, **look)
    assert ((), NOW + 20) == (made.delete, made.next_look)
    assert (NAME,) == launcher.look(20, **look).delete


def test_a_worker_that_has_ended_is_not_waited_for():
    made = failed(Cause.DEADLINE).look(1, jobs=[JOB], pods=[DONE], taken_logs=TAKEN)
    assert (NAME,) == made.delete


def test_a_failed_pod_is_not_waited_for():
    made = failed(Cause.POD_FAILED).look(1, jobs=[JOB], pods=[BUSY], taken_logs=TAKEN)
    assert (NAME,) == made.delete


def test_a_lost_state_takes_all_with_it():
    """Whatever the definition says: nobody will ever come back to these."""
    failure = Failure("final", NOW, "so", Cause.LOST, "StateLost")
    launcher = Launcher(check_run(cleanup="never")).fail(CHECK, failure)
    made = launcher.look(0, jobs=[JOB], pods=[BUSY], taken_logs=TAKEN)
    assert (NAME,) == made.delete


def test_what_does_not_go_is_given_up():
    """30 seconds after the grace period of its Pod; what stays is named with its reason."""
    launcher = decided()
    leaving = api_job(CHECK, deletionTimestamp="2026-01-01T00:00:02Z", finalizers=["a/b"])
    look = {"jobs": [leaving], "taken_logs": TAKEN}
    made = launcher.look(0, **look)
    assert (True, False, {}) == (made.logs_taken, made.through, made.stays)
    made = launcher.look(89.9, **look)
    assert (False, NOW + 90) == (made.through, made.next_look)
    made = launcher.look(90, **look)
    assert (True, {f"Job {NAME}": "it is being deleted"}) == (made.through, made.stays)


@pytest.mark.parametrize(
    ("contract", "grace", "seconds"),
    [("done-file", 120, 150), ("result-file", 5, 90), ("link", 5, 35), ("link", None, 60)],
)
def test_a_plugin_has_its_grace_period_before_its_removal_fails(contract, grace, seconds):
    template = {"spec": {"terminationGracePeriodSeconds": grace, "containers": [{"name": "main"}]}}
    run = run_of(Plugin("check"), definitions=[Definition("check", "Job", contract, template)])
    launcher = Launcher(run).launch(CHECK).started(CHECK).receive(CHECK)
    look = {"jobs": [JOB], "pods": [BUSY], "taken_logs": TAKEN}
    launcher.look(0, **look)
    assert not launcher.look(seconds - 0.1, **look).through
    assert launcher.look(seconds, **look).through


def test_the_end_has_no_hurry_while_the_run_is_open_for_an_upload():
    """Its time begins with the end: until then its Job stays, and the launcher with it."""
    launcher = failed(Cause.POD_FAILED)
    look = {"jobs": [JOB], "pods": [BUSY], "taken_logs": TAKEN}
    made = launcher.look(0, **look, uploading=TAKEN)
    assert (False, False) == (made.logs_taken, made.through)
    assert not launcher.look(100, **look, uploading=TAKEN).through
    made = launcher.look(101, **look)
    assert (True, False) == (made.logs_taken, made.through)
    assert not launcher.look(190.9, **look).through
    assert launcher.look(191, **look).through


def test_an_upload_of_what_is_stored_already_does_not_hold_up_the_end():
    launcher = decided()
    look = {"jobs": [JOB], "pods": [BUSY], "taken_logs": TAKEN, "uploading": TAKEN}
    assert not launcher.look(0, **look).through
    assert launcher.look(90, **look).through


def test_a_worker_that_may_be_between_two_tries_does_not_use_up_the_time_of_the_removal():
    """The run closes no earlier either, but it need not wait for the Pod."""
    launcher = failed(Cause.DEADLINE)
    look = {"jobs": [JOB], "pods": [BUSY], "taken_logs": TAKEN}
    assert launcher.look(0, **look).logs_taken
    assert (NAME,) == launcher.look(20, **look).delete
    assert not launcher.look(109.9, **look).through
    assert launcher.look(110, **look).through


def test_logs_that_do_not_come_hold_up_the_end_for_a_while():
    """Then their Job goes without, and its removal has its whole time."""
    launcher = decided()
    look = {"jobs": [JOB], "pods": [BUSY]}
    made = launcher.look(0, **look)
    assert (False, (), NOW + 45) == (made.logs_taken, made.delete, made.next_look)
    made = launcher.look(44.9, **look)
    assert (False, ()) == (made.logs_taken, made.delete)
    made = launcher.look(45, **look)
    assert (True, (NAME,), False) == (made.logs_taken, made.delete, made.through)
    assert not launcher.look(134.9, **look).through
    made = launcher.look(135, **look)
    expected = {f"Job {NAME}": "its deletion has not been confirmed yet"}
    assert (True, expected) == (made.through, made.stays)


def test_logs_of_a_kept_job_hold_up_the_end_for_a_while():
    launcher = decided(cleanup="never")
    look = {"jobs": [JOB], "pods": [BUSY]}
    assert not launcher.look(0, **look).through
    assert not launcher.look(44.9, **look).through
    made = launcher.look(45, **look)
    assert (True, {}, ()) == (made.through, made.stays, made.delete)


def test_a_pod_that_does_not_end_is_named():
    launcher = decided()
    assert launcher.look(0, pods=[BUSY]).logs_taken
    made = launcher.look(90, pods=[BUSY])
    expected = {f"Job {NAME}": f"its Pod {NAME}-x7k2p has not ended yet"}
    assert (True, expected) == (made.through, made.stays)


def test_a_pod_that_has_ended_is_waited_for_by_nobody():
    """Its Job is gone: the garbage collector and the node take their time for the object."""
    made = decided().look(0, pods=[DONE])
    assert (True, {}) == (made.through, made.stays)


def test_a_pod_that_is_not_of_our_job_holds_up_no_end():
    """As far as our Job was ever seen, or never was any."""
    forged = api_pod(CHECK, running(), running(), phase="Running", job_uid="forged")
    bare = made_by_nobody(forged)
    for pod in (forged, bare):
        launcher = decided()
        launcher.look(0, jobs=[JOB], pods=[DONE, pod], taken_logs=TAKEN)
        made = launcher.look(1, pods=[pod], taken_logs=TAKEN)
        assert (True, {}) == (made.through, made.stays)

        refused = Failure("final", NOW, "so", Cause.START_FAILED)
        made = Launcher(check_run()).fail(CHECK, refused).look(0, pods=[pod])
        assert (True, {}) == (made.through, made.stays)


def test_a_pod_that_no_controller_made_holds_up_no_end_after_a_restart():
    """Others might be of a Job that went before anybody looked; this one says that it has none."""
    made = decided().look(0, pods=[made_by_nobody(BUSY)])
    assert (True, {}) == (made.through, made.stays)


def test_one_entry_is_cleaned_up_while_others_run():
    launcher = Launcher(TWO).launch(NODE1, NODE2).receive(NODE1)
    jobs = [api_job(NODE1), api_job(NODE2)]
    made = launcher.look(0, jobs=jobs, taken_logs=frozenset({NODE1}))
    assert ((entry_name("r", NODE1),), False) == (made.delete, made.through)


def test_a_strangers_job_is_never_removed():
    """Not even when its labels and its name say that it is ours."""
    foreign = [api_job(CHECK, owner="somebody"), api_job(Key("else", "n"))]
    made = decided().look(0, jobs=foreign)
    assert ((), (), True) == (made.delete, made.take_logs, made.through)


def test_a_secret_goes_when_the_last_who_needs_it_is_gone():
    """Nodes may share one."""
    shared = secret_name("r", TWO.plan.plugins[0], NODE1)
    assert shared == entry_name("r", Key("disk", ANY_NODE))
    known = {"secrets": frozenset({shared, "of somebody else"}), "taken_logs": {NODE1, NODE2}}
    launcher = Launcher(TWO).launch(NODE1, NODE2)
    assert () == launcher.look(0, **known).delete_secrets
    launcher.receive(NODE1)
    assert () == launcher.look(1, **known).delete_secrets
    launcher.receive(NODE2)
    assert () == launcher.look(2, jobs=[api_job(NODE2)], **known).delete_secrets
    assert (shared,) == launcher.look(3, **known).delete_secrets
    assert () == launcher.look(4).delete_secrets


def test_a_secret_of_one_node_goes_with_its_job():
    run = run_of(Plugin("disk", ("node1", "node2"), identity="node"))
    known = frozenset({entry_name("r", NODE1), entry_name("r", NODE2)})
    launcher = Launcher(run).launch(NODE1, NODE2).receive(NODE1)
    made = launcher.look(0, jobs=[api_job(NODE2)], secrets=known)
    assert (entry_name("r", NODE1),) == made.delete_secrets


def test_a_kept_job_keeps_no_secret():
    """Its certificate ends with the run."""
    made = decided(cleanup="never").look(0, jobs=[JOB], taken_logs=TAKEN, secrets={NAME})
    assert (NAME,) == made.delete_secrets


def test_a_secret_holds_up_the_end_for_30_seconds():
    """One request that failed is tried again: what is left behind is a key. It has no grace period,
    however long that of the plugin is."""
    template = {"spec": {"terminationGracePeriodSeconds": 86400, "containers": [{"name": "main"}]}}
    run = run_of(Plugin("check"), definitions=[Definition("check", "Job", "link", template)])
    launcher = Launcher(run).launch(CHECK).started(CHECK).receive(CHECK)
    for after in (0, 1, 29.9):
        made = launcher.look(after, secrets={NAME})
        assert ((NAME,), False) == (made.delete_secrets, made.through)
    made = launcher.look(30, secrets={NAME})
    assert (True, {}) == (made.through, made.stays)
    assert decided().look(0).through


def test_a_run_that_ends_without_the_api_says_what_may_be_left():
    """It was there when it was last seen."""
    launcher = decided()
    look = {"jobs": [JOB], "pods": [BUSY], "unseen_since": NOW}
    launcher.look(0, **look)
    made = launcher.look(599, **look)
    assert (False, False, {}) == (made.logs_taken, made.through, made.stays)
    made = launcher.look(600, **look)
    assert (True, True, [f"Job {NAME}"]) == (made.logs_taken, made.through, [*made.stays])


def test_a_run_whose_logs_are_taken_does_not_wait_for_an_api_that_is_away():
    made = decided().look(0, jobs=[JOB], pods=[BUSY], taken_logs=TAKEN, unseen_since=NOW)
    assert (True, False) == (made.logs_taken, made.through)
