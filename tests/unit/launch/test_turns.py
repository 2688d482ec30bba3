"""Whose Jobs are created when: groups by order, not too many at once, nothing twice."""

import pytest

from reporter.launch.world import Denial
from reporter.run.names import entry_name
from reporter.run.plan import GLOBAL, Key, Plugin
from reporter.run.record import Cause
from tests.unit.launch.cluster import CHECK, NODE1, NODE2, NOW, Launcher, api_job, check_run, run_of

FIRST, SECOND, LAST = (Key(name, GLOBAL) for name in ("first", "second", "last"))
GROUPS = run_of(Plugin("last", order=9), Plugin("first"), Plugin("second"))
NODES = tuple(f"node{number:02}" for number in range(9))
WAVES = run_of(Plugin("disk", NODES), Plugin("net", NODES[:2]), most=3)
JOB = api_job(CHECK)


def test_a_group_is_created_at_once_and_the_next_when_all_of_it_are_decided():
    launcher = Launcher(GROUPS)
    assert (FIRST, SECOND) == launcher.look(0).create
    launcher.launch(FIRST, SECOND)
    assert () == launcher.look(1).create
    launcher.receive(FIRST)
    assert () == launcher.look(2).create
    launcher.receive(SECOND, "failed")
    assert (LAST,) == launcher.look(3).create


def test_a_failed_start_does_not_hold_up_the_next_group():
    launcher = Launcher(GROUPS).launch(FIRST, SECOND).receive(FIRST)
    launcher.look(0)
    assert SECOND in launcher.look(60).fail
    assert (LAST,) == launcher.look(60).create


def test_not_more_of_a_plugin_than_allowed_are_open():
    """Each plugin has its own bound; whoever is decided makes room for the next."""
    disk = [Key("disk", node) for node in NODES]
    net = [Key("net", node) for node in NODES[:2]]
    launcher = Launcher(WAVES)
    assert (*disk[:3], *net) == launcher.look(0).create
    launcher.launch(*disk[:2])
    assert (disk[2], *net) == launcher.look(0).create
    launcher.launch(disk[2], *net)
    assert () == launcher.look(0).create
    launcher.receive(disk[1])
    assert (disk[3],) == launcher.look(0).create


def test_a_job_whose_launch_is_not_stored_yet_is_open_too():
    """The launcher was killed in between: it takes what it has made, and makes nothing twice."""
    disk = [Key("disk", node) for node in NODES]
    launcher = Launcher(WAVES)
    made = launcher.look(0, jobs=[api_job(disk[0]), api_job(disk[2])])
    assert (disk[0], disk[2]) == made.adopt
    assert {} == made.fail
    assert disk[1] == made.create[0]
    assert disk[3] not in made.create


@pytest.mark.parametrize(
    "job",
    [
        api_job(CHECK, owner="somebody"),
        JOB | {"metadata": JOB["metadata"] | {"ownerReferences": []}},
        JOB | {"metadata": JOB["metadata"] | {"annotations": {}}},
        api_job(CHECK)
        | {"metadata": api_job(NODE1)["metadata"] | {"name": entry_name("r", CHECK)}},
        JOB
        | {
            "metadata": JOB["metadata"]
            | {"ownerReferences": [{"kind": "Job", "uid": "0a-config-map"}]}
        },
    ],
    ids=["another owner", "no owner", "no word whose it is", "of another node", "another kind"],
)
def test_the_name_is_taken_by_a_stranger(job):
    """It is not taken for ours; once that was tried the entry fails, and nobody touches it."""
    launcher = Launcher(check_run())
    made = launcher.look(0, jobs=[job])
    assert ((CHECK,), ()) == (made.create, made.adopt)
    denial = Denial("NameTaken", "it is there already")
    made = launcher.look(1, jobs=[job], denied={entry_name("r", CHECK): denial})
    failure = made.fail[CHECK]
    assert (Cause.START_FAILED, *denial) == (failure.cause, failure.reason, failure.text)
    assert ((), ()) == (made.create, made.adopt)
    after = launcher.look(2, jobs=[job])
    assert ((), (), True) == (after.delete, after.take_logs, after.through)


def test_a_copy_of_our_job_under_another_name():
    """Somebody wanted to try it once more: it is not adopted, and not removed."""
    copy = api_job(CHECK, name="copy")
    launcher = Launcher(check_run())
    made = launcher.look(0, jobs=[copy])
    assert ((CHECK,), ()) == (made.create, made.adopt)
    made = launcher.receive(CHECK).look(1, jobs=[copy])
    assert ((), True) == (made.delete, made.through)


def test_the_api_refuses_one_job_and_none_of_the_others():
    """At once, with its words."""
    denial = Denial("JobRefused", 'jobs.batch "x" is forbidden: exceeded quota: jobs')
    launcher = Launcher(run_of(Plugin("disk", ("node1", "node2"))))
    made = launcher.look(0, denied={entry_name("r", NODE1): denial})
    ((key, failure),) = made.fail.items()
    assert (NODE1, Cause.START_FAILED, *denial, NOW) == (
        *(key, failure.cause, failure.reason, failure.text),
        failure.at,
    )
    assert (NODE2,) == made.create


def test_a_stranger_in_a_later_group_fails_nobody_before_its_turn():
    """It may be gone by then."""
    launcher = Launcher(GROUPS)
    made = launcher.look(0, jobs=[api_job(LAST, owner="somebody")])
    assert {} == made.fail
    launcher.receive(FIRST).receive(SECOND)
    assert (LAST,) == launcher.look(1).create


def test_a_result_that_came_without_a_launch_needs_none():
    launcher = Launcher(check_run()).receive(CHECK)
    made = launcher.look(0)
    assert ((), (), True) == (made.create, made.adopt, made.through)


def test_launching_begins_with_a_word_in_the_store():
    """Nothing is created before it stands there, and with it an unstored launch is recognised."""
    launcher = Launcher(check_run(), begun=False)
    made = launcher.look(0)
    assert (True, (), ()) == (made.begin, made.create, made.adopt)
    launcher.begun = True
    made = launcher.look(0)
    assert (False, (CHECK,)) == (made.begin, made.create)
    assert (CHECK,) == launcher.look(1, jobs=[JOB]).adopt


def test_a_plan_without_plugins_is_through():
    made = Launcher(run_of(), begun=False).look(0)
    assert (False, True) == (made.begin, made.through)


def test_the_state_is_lost_and_its_jobs_still_run():
    """An aggregator that was moved without its volume: nothing is launched, all of it goes."""
    run = run_of(Plugin("check"), Plugin("late", order=1))
    launcher = Launcher(run, begun=False)
    made = launcher.look(0, jobs=[JOB])
    assert {CHECK, Key("late", GLOBAL)} == made.fail.keys()
    assert {Cause.LOST} == {failure.cause for failure in made.fail.values()}
    assert {"StateLost"} == {failure.reason for failure in made.fail.values()}
    assert all("delete the run" in failure.text for failure in made.fail.values())
    assert (False, (), ()) == (made.begin, made.create, made.adopt)
    made = launcher.look(1, jobs=[JOB])
    assert (entry_name("r", CHECK),) == made.delete
    assert ((), ()) == (made.create, made.adopt)
    made = launcher.look(2)
    assert ((), False, True) == (made.create, made.begin, made.through)


def test_a_lost_state_stays_lost_though_its_jobs_are_gone():
    """Killed while it wrote the failures: the rest is not launched after all."""
    run = run_of(Plugin("check"), Plugin("late", order=1))
    launcher = Launcher(run, begun=False)
    made = launcher.look(0, jobs=[JOB])
    late = Key("late", GLOBAL)
    again = Launcher(run, begun=False).fail(CHECK, made.fail[CHECK])
    made = again.look(1)
    assert ({late}, False, ()) == (made.fail.keys(), made.begin, made.create)


def test_a_stranger_with_our_name_does_not_mean_that_the_state_is_lost():
    launcher = Launcher(check_run(), begun=False)
    made = launcher.look(0, jobs=[api_job(CHECK, owner="somebody")])
    assert (True, {}) == (made.begin, made.fail)


def test_an_entry_that_was_launched_proves_that_launching_has_begun():
    run = run_of(Plugin("check"), Plugin("late", order=1))
    launcher = Launcher(run, begun=False).launch(CHECK)
    made = launcher.look(0, jobs=[JOB])
    assert (False, {}) == (made.begin, made.fail)
