"""Clocks of an entry: what begins them, what does not count, what a restart leaves of them."""

import pytest

from reporter.run.names import entry_name
from reporter.run.plan import Plugin
from tests.unit.launch.cluster import (
    CHECK,
    NODE1,
    NODE2,
    NOW,
    Launcher,
    api_job,
    api_pod,
    api_refusal,
    check_run,
    definition,
    ended,
    run_of,
    running,
    waiting,
)

JOB, NAME = api_job(CHECK), entry_name("r", CHECK)


def seen(*pods, jobs=(JOB,), **fields):
    """A world."""
    return {"jobs": jobs, "pods": pods, **fields}


def pulling(reason="ErrImagePull", message="not found"):
    """A Pod whose image cannot be pulled."""
    return api_pod(CHECK, waiting(reason, message), running())


BUSY = api_pod(CHECK, running(NOW + 7), running(), phase="Running")


def fresh(**fields):
    """A launcher that has just created its Job."""
    return Launcher(check_run(**fields)).launch(CHECK)


def test_the_clock_begins_with_the_plugins_container():
    """Also where only its end was seen, and whatever our own container does."""
    assert {} == fresh().look(9, **seen(api_pod(CHECK, waiting("x"), running()))).start
    assert {CHECK: NOW + 7} == fresh().look(9, **seen(BUSY)).start
    over = api_pod(CHECK, ended(began=NOW + 3), ended(), phase="Succeeded")
    assert {CHECK: NOW + 3} == fresh().look(9, **seen(over)).start


def test_the_clock_begins_once():
    launcher = fresh()
    launcher.look(9, **seen(BUSY))
    assert {} == launcher.look(10, **seen(BUSY)).start


def test_the_first_run_of_a_container_counts():
    again = {"name": "main", "state": running(NOW + 8), "restartCount": 1}
    again["lastState"] = ended(1, began=NOW + 2)
    look = seen(api_pod(CHECK, again, running(), phase="Running"))
    assert {CHECK: NOW + 2} == fresh().look(9, **look).start


@pytest.mark.parametrize(("told", "counts"), [(-9_000, 0), (5, 5), (9_000, 9)])
def test_the_clock_of_a_node_is_wrong(told, counts):
    """Nothing begins before its launch, nor in the future: neither ends an entry too early."""
    pod = api_pod(CHECK, running(NOW + told), running(), phase="Running")
    assert {CHECK: NOW + counts} == fresh().look(9, **seen(pod)).start


@pytest.mark.parametrize("skew", [-3_600, 3_600])
def test_a_container_begins_at_the_same_moment_after_the_wall_clock_was_set(skew):
    """The kubelet's time is by the new one."""
    pod = api_pod(CHECK, running(NOW + 7 - skew), running(), phase="Running")
    made = fresh().look(9, **seen(pod), skew=skew)
    assert ({CHECK: NOW + 7}, NOW + 7) == (made.start, made.pods[CHECK].since)


def test_a_container_without_a_start_time_has_not_begun():
    pod = api_pod(CHECK, {"running": {}}, running(), phase="Running")
    assert {} == fresh().look(9, **seen(pod)).start


def test_once_started_nobody_waits_for_the_start():
    launcher = fresh()
    launcher.look(9, **seen(BUSY))
    made = launcher.look(5_000, **seen(BUSY))
    assert ({}, None) == (made.fail, made.next_look)


def test_the_words_for_an_image_keep_their_cause():
    """The kubelet alternates between two reasons, and one of them does not say why."""
    launcher = fresh()
    launcher.look(0, **seen(pulling()))
    short = pulling("ImagePullBackOff", 'Back-off pulling image "a"')
    assert "ErrImagePull" == launcher.look(9, **seen(short)).pods[CHECK].reason
    launcher.look(20, **seen(pulling()))
    made = launcher.look(300, **seen(short))
    assert "container 'main': ErrImagePull: not found" == made.fail[CHECK].text


def test_the_rows_are_not_mixed():
    """The time counts from the first look at the present one."""
    launcher = fresh()
    launcher.look(0, **seen(pulling()))
    config = seen(pulling("CreateContainerConfigError"))
    launcher.look(290, **config)
    assert {} == launcher.look(349.9, **config).fail
    assert CHECK in launcher.look(350, **config).fail


def test_trouble_that_passes_is_forgotten():
    launcher = fresh()
    launcher.look(0, **seen(pulling("CreateContainerConfigError")))
    launcher.look(50, **seen(BUSY))
    launcher.look(55, **seen(pulling("CreateContainerConfigError")))
    assert {} == launcher.look(100, **seen(pulling("CreateContainerConfigError"))).fail


def test_a_refusal_is_over_when_there_is_a_pod():
    """The quota was raised; the Event stays for an hour."""
    launcher = fresh()
    event = api_refusal(CHECK, "Error creating: exceeded quota")
    launcher.look(0, **seen(events=[event]))
    launcher.look(50, **seen(BUSY, events=[event]))
    assert {} == launcher.look(5_000, **seen(BUSY, events=[event])).fail


def test_a_job_without_a_pod_is_not_shown_in_its_first_moments():
    launcher = fresh()
    made = launcher.look(0, **seen())
    assert ({}, NOW + 10) == (made.pods, made.next_look)
    made = launcher.look(10, **seen())
    assert ("NoPod", NOW) == (made.pods[CHECK].reason, made.pods[CHECK].since)


def test_what_a_pod_does_is_shown():
    """Before it is a failure, and when all is well."""
    launcher = fresh()
    shown = launcher.look(3, **seen(pulling())).pods[CHECK]
    pod = f"{NAME}-x7k2p"
    expected = (pod, "node1", "Pending", "ErrImagePull", "not found", NOW + 3, 0)
    assert expected == tuple(getattr(shown, name) for name in shown.__slots__)
    shown = launcher.look(9, **seen(BUSY)).pods[CHECK]
    expected = (pod, "node1", "Running", "", "", NOW + 7, 0)
    assert expected == tuple(getattr(shown, name) for name in shown.__slots__)
    assert shown == launcher.look(10, **seen(BUSY)).pods[CHECK]


def test_the_node_of_a_pod_is_not_ready():
    """It fails nobody: the heartbeat or the deadline decides."""
    conditions = [
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:30Z"},
        {"type": "ContainersReady", "status": "True"},
    ]
    pod = api_pod(CHECK, running(), running(), phase="Running", conditions=conditions)
    launcher = fresh()
    shown = launcher.look(40, **seen(pod)).pods[CHECK]
    expected = ("NodeNotReady", "Node node1 is not ready", NOW + 30)
    assert expected == (shown.reason, shown.message, shown.since)
    assert {} == launcher.look(9_000, **seen(pod)).fail


def test_after_a_restart_the_start_timeout_goes_on():
    """Not anew: a launcher that restarts again and again would wait for ever."""
    launcher = fresh()
    launcher.look(0, **seen())
    launcher.restart()
    assert {} == launcher.look(300, **seen()).fail
    assert {} == launcher.look(599.9, **seen()).fail
    assert CHECK in launcher.look(600, **seen()).fail


def test_after_a_restart_nobody_fails_at_the_first_look():
    """It was away, and so perhaps was the whole control plane."""
    launcher = fresh().restart()
    assert {} == launcher.look(5_000, **seen()).fail
    made = launcher.look(5_059.9, **seen())
    assert ({}, NOW + 5_060) == (made.fail, made.next_look)
    assert CHECK in launcher.look(5_060, **seen()).fail


def test_while_the_api_is_away_nothing_is_decided():
    """What was seen last is shown on; only that a container began is a fact that stays true."""
    run = run_of(Plugin("check"), Plugin("disk", ("node1",)), definitions=[definition("check")])
    launcher = Launcher(run).launch(CHECK)
    look = seen(pulling(), secrets=frozenset({NAME}))
    launcher.look(0, **look)
    launcher.look(200, **look, unseen_since=NOW + 100)
    made = launcher.look(5_000, **look, unseen_since=NOW + 100)
    assert ({}, (), (), ()) == (made.fail, made.create, made.delete, made.take_logs)
    assert ((), None) == (made.delete_secrets, made.next_look)
    assert "ErrImagePull" == made.pods[CHECK].reason
    assert {CHECK: NOW + 7} == launcher.look(5_001, **seen(BUSY), unseen_since=NOW + 100).start


def test_while_the_api_is_away_nothing_begins():
    launcher = Launcher(check_run(), begun=False)
    assert not launcher.look(0, unseen_since=NOW - 1).begin


@pytest.mark.parametrize(
    ("look", "seconds"),
    [(seen(pulling()), 300), (seen(), 600), (seen(pulling("InvalidImageName")), 60)],
    ids=["image", "no Pod", "name"],
)
def test_the_time_in_which_the_api_is_away_does_not_count(look, seconds):
    launcher = fresh()
    launcher.look(0, **look)
    launcher.look(20, **look, unseen_since=NOW + 10)
    launcher.look(40, **look, unseen_since=NOW + 30)  # it came back for a moment, unseen by us
    launcher.look(5_010, **look)
    assert {} == launcher.look(5_000 + seconds - 0.1, **look).fail
    assert CHECK in launcher.look(5_000 + seconds, **look).fail


def test_an_entry_that_was_launched_after_an_outage_gets_nothing_for_it():
    run = run_of(Plugin("disk", ("node1", "node2")))
    launcher = Launcher(run).launch(NODE1)
    first = seen(jobs=[api_job(NODE1)])
    launcher.look(0, **first)
    launcher.look(50, **first, unseen_since=NOW + 20)
    launcher.look(120, **first)
    launcher.launch(NODE2, at=NOW + 120)
    both = seen(jobs=[api_job(NODE1), api_job(NODE2)])
    launcher.look(121, **both)
    assert {NODE1} == launcher.look(700, **both).fail.keys()
    assert {NODE2} == launcher.look(720, **both).fail.keys()


def test_outages_are_forgotten_when_they_matter_to_nobody():
    launcher = fresh()
    launcher.look(0, **seen())
    launcher.look(50, **seen(), unseen_since=NOW + 20)
    assert 1 == len(launcher.look(60, **seen()).memory.outages)
    launcher.look(61, **seen(BUSY))
    assert () == launcher.look(62, **seen(BUSY)).memory.outages


def test_a_launcher_that_was_stopped_for_a_while():
    """It did not look when it had to: what it has not seen is nobody's fault."""
    launcher = fresh()
    launcher.look(0, **seen(pulling()))
    launcher.look(20, **seen(pulling()))
    assert NOW + 300 == launcher.memory.next_look
    assert {} == launcher.late(2_000).fail
    assert NOW + 2_280 == launcher.memory.next_look
    assert {} == launcher.look(2_279, **seen(pulling())).fail


def test_the_end_waits_for_an_api_that_is_away_but_not_for_ever():
    """Its time does not count, up to ten minutes."""
    launcher = fresh().receive(CHECK)
    launcher.look(0, **seen())
    made = launcher.look(30, **seen(), unseen_since=NOW + 10)
    assert (False, NOW + 600) == (made.through, made.next_look)
    made = launcher.look(110, **seen())
    assert (False, (NAME,), NOW + 200) == (made.through, made.delete, made.next_look)
    launcher.look(120, **seen(), unseen_since=NOW + 115)
    assert not launcher.look(599, **seen(), unseen_since=NOW + 115).through
    assert launcher.look(705, **seen(), unseen_since=NOW + 115).through


def test_an_entry_that_is_open_again_ends_the_end():
    """Its result was lost on the disk, and may come once more."""
    launcher = fresh().receive(CHECK)
    launcher.look(0, **seen())
    launcher.entries[CHECK] = fresh().entries[CHECK]
    assert launcher.look(1, **seen()).memory.ending_since is None


def test_who_began_while_nobody_was_here_can_still_come_back():
    """Its worker was refused until now: half a minute is left of its time, as for the others."""
    launcher = Launcher(run_of(Plugin("check", timeout_seconds=60))).launch(CHECK)
    launcher.look(0, **seen())
    made = launcher.restart().look(500, **seen(BUSY))
    assert {CHECK: NOW + 500 + 30 - 60} == made.start


def test_who_began_while_nobody_was_here_gets_no_new_time():
    launcher = Launcher(run_of(Plugin("check", timeout_seconds=600))).launch(CHECK)
    launcher.look(0, **seen())
    assert {CHECK: NOW + 7} == launcher.restart().look(500, **seen(BUSY)).start
