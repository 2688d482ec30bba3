"""Laws of the launcher's decisions: in any order, after any fault, a run ends, and ends right."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.launch.decide import decide
from reporter.launch.seen import newest_pods, read_event, read_job, read_pod
from reporter.launch.world import Memory, World
from reporter.run.entry import State
from reporter.run.names import entry_name
from reporter.run.plan import Plugin
from reporter.run.record import Cause
from tests.property.simulated import EVERY, FOREIGN, HEALTHY, Cluster, Faults, Shell
from tests.unit.launch.cluster import (
    CHECK,
    api_job,
    api_pod,
    api_refusal,
    check_run,
    definition,
    run_of,
)

NODES = ("node1", "node2", "node3", "node4")
TIMEOUT = 1_000  # longer than all outages: results come while the API server is away, too
LONGEST = 3 * (600 + TIMEOUT + 200)
"""Seconds that a run of three groups can take, faults aside."""

PLUGINS = (Plugin("first"), Plugin("disk", NODES), Plugin("last", order=5))


def run(cleanup="always", most=2):
    """Three plugins in two groups, one of them on four nodes."""
    made = [
        definition("first", cleanup=cleanup),
        definition("disk", driver="Node", cleanup=cleanup),
        definition("last", cleanup=cleanup),
    ]
    return run_of(*PLUGINS, definitions=made, most=most, timeout_seconds=TIMEOUT)


KEYS = run().plan.keys
fates = st.fixed_dictionaries({key: st.sampled_from(EVERY) for key in KEYS})
requests = st.frozensets(st.integers(1, 20), max_size=4)
outages = st.lists(st.tuples(st.integers(0, 400), st.integers(1, 300)), max_size=2).map(tuple)
faults = st.builds(
    Faults, before=requests, after=requests, outages=outages, seed=st.none() | st.integers(0, 9)
)

CAUSES = {
    "exits": Cause.POD_FAILED,
    "exits well": Cause.POD_FAILED,
    "is evicted": Cause.POD_FAILED,
    "loses its Pod": Cause.POD_FAILED,
    "loses its Job": Cause.POD_FAILED,
    "cannot be pulled": Cause.START_FAILED,
    "has no node": Cause.START_FAILED,
    "is refused": Cause.START_FAILED,
    "has no Pod": Cause.START_FAILED,
    "breaks its settings": Cause.START_FAILED,
    "name is taken": Cause.START_FAILED,
    "is denied": Cause.START_FAILED,
}


def driven(chosen, wrong, seconds=LONGEST, **settings):
    """A run that was driven to its end."""
    shell = Shell(Cluster(run(**settings), chosen), wrong)
    shell.go(seconds + sum(length for _, length in wrong.outages))
    return shell


@given(
    chosen=fates,
    wrong=faults,
    state=st.sampled_from(["Pending", "Running", "Failed", "deleted"]),
)
def test_a_pod_with_copied_labels_makes_no_difference(chosen, wrong, state):
    """Whoever may create Pods can say of any that it is of our Job, and the newest."""

    def ended(wrong):
        shell = driven(chosen, wrong)
        return shell.through, shell.entries, shell.taken, shell.cluster.created

    assert ended(wrong) == ended(replace(wrong, forged=state))


def expected(fate):
    """What becomes of an entry: state, cause and verdict."""
    if fate in HEALTHY:
        return State.COMPLETE, None, "failed" if fate == "fails" else "passed"
    if fate == "hangs":
        return State.TIMED_OUT, Cause.DEADLINE, ""
    return State.FAILED, CAUSES[fate], ""


@given(chosen=fates, wrong=faults)
def test_a_run_ends_right_whatever_goes_wrong(chosen, wrong):
    """Every entry is decided by its own fate, though the launcher dies and sees late.

    No object twice, none missing, none before its turn (`Shell` watches that), no stranger's gone.
    """
    shell = driven(chosen, wrong)
    cluster = shell.cluster

    assert shell.through
    for key, entry in shell.entries.items():
        found = entry.state, entry.record.cause, entry.record.verdict
        if chosen[key] == "loses its Pod" and wrong.outages and found[1] is Cause.START_FAILED:
            continue  # a Pod that came and went while the API server was away was never seen
        assert expected(chosen[key]) == found, key
    assert len(set(cluster.created)) == len(cluster.created), "created twice"
    assert {key for key, fate in chosen.items() if fate not in FOREIGN} == set(cluster.created)
    assert all(most <= 2 for most in shell.most_open.values()), shell.most_open
    left = cluster.jobs.keys() - cluster.deleted.keys()
    assert not {f"Job {name}" for name in left} - shell.stays.keys()


@given(chosen=fates, cleanup=st.sampled_from(["always", "success", "never"]))
def test_what_a_definition_keeps_is_there_in_the_end(chosen, cleanup):
    shell = driven(chosen, Faults(), cleanup=cleanup)
    left = {shell.cluster.keys[name] for name in shell.cluster.jobs} - {
        shell.cluster.keys[name] for name in shell.cluster.deleted
    }
    passed = {key for key, fate in chosen.items() if fate in {"passes", "sleeps on"}}
    made = set(shell.cluster.created) - {k for k, fate in chosen.items() if fate == "loses its Job"}
    kept = {"always": set(), "success": made - passed, "never": made}[cleanup]
    assert kept == left


@pytest.mark.parametrize("killed", ["before", "after"])
@pytest.mark.parametrize("number", range(1, 16))
def test_the_launcher_is_killed_at_each_request(number, killed):
    """No object twice, none missing, and the run ends right."""
    chosen = dict.fromkeys(KEYS, "passes")
    shell = driven(chosen, Faults(**{killed: frozenset({number})}))
    assert 1 == shell.restarts or shell.requests < number
    assert sorted(KEYS) == sorted(shell.cluster.created)
    assert {State.COMPLETE} == {entry.state for entry in shell.entries.values()}
    assert shell.through


def test_300_nodes_in_waves_of_50():
    """Each takes 25 seconds, so that the last begin long after the first one's start timeout."""
    nodes = tuple(f"node{number:03}" for number in range(300))
    made = [definition("disk", driver="Node", start_timeout_seconds=30, timeout_seconds=40)]
    waves = run_of(
        Plugin("disk", nodes, timeout_seconds=40), definitions=made, most=50, timeout_seconds=40
    )
    shell = Shell(Cluster(waves, dict.fromkeys(waves.plan.keys, "passes")), Faults())
    shell.go(600)
    assert shell.through
    assert {State.COMPLETE} == {entry.state for entry in shell.entries.values()}
    assert {"disk": 50} == shell.most_open
    assert 300 == len(shell.cluster.created)


WORLD_RUN = run(most=9)
objects = st.fixed_dictionaries(
    {key: st.tuples(*[st.booleans()] * 3, st.sampled_from(EVERY)) for key in KEYS}
)


@given(data=st.data(), seen=objects)
def test_the_order_in_which_objects_are_seen_makes_no_difference(data, seen):
    """Nor does the order of the entries."""
    cluster = Cluster(WORLD_RUN, {key: fate for key, (*_, fate) in seen.items()})
    shell = Shell(cluster, Faults())
    shell.go(data.draw(st.integers(1, 60)))
    world = shell._world()
    memory = shell.memory

    def decided(order):
        def shuffled(mapping):
            keys = sorted(mapping, key=lambda each: order.index(hash(each) % len(order)))
            return {each: mapping[each] for each in keys}

        made = decide(
            WORLD_RUN,
            shuffled(shell.entries),
            replace(world, jobs=shuffled(world.jobs), pods=shuffled(world.pods)),
            memory,
            now=cluster.now,
            begun=True,
        )
        sets = (made.adopt, made.take_logs, made.delete, made.delete_secrets)
        return (
            made.create,
            *map(sorted, sets),
            made.fail,
            made.start,
            made.pods,
            made.next_look,
            made.through,
        )

    orders = st.permutations(range(7))
    assert decided(data.draw(orders)) == decided(data.draw(orders))
    assert decided(tuple(range(7))) == decided(tuple(range(7)))


garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.sampled_from(
        ["True", "False", "Pending", "Failed", "Running", "2026-01-01T00:00:00Z", "ErrImagePull"]
    ),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["metadata", "status", "spec", "state", "waiting", "terminated", "running", "name",
             "reason", "message", "conditions", "type", "labels", "uid", "phase", "exitCode",
             "containerStatuses", "initContainerStatuses", "deletionTimestamp", "involvedObject"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=14,
)  # fmt: skip


@given(data=st.data())
def test_no_object_of_the_api_ends_the_launcher(data):
    """Whatever a proxy, a newer version or a stranger puts into it."""

    def damaged(value):
        if isinstance(value, dict):
            kept = {name: damaged(each) for name, each in value.items()}
            name = data.draw(st.sampled_from([*kept, None]))
            return kept if name is None else kept | {name: data.draw(garbage)}
        return value

    whole = check_run()
    job = read_job(damaged(api_job(CHECK)))
    pod = read_pod(damaged(api_pod(CHECK)) | {}, whole.launch)
    event = read_event(damaged(api_refusal(CHECK, "no")))
    name = entry_name("r", CHECK)
    world = World(
        {name: job}, newest_pods([pod] if pod else []), {name: event} if event else {}, frozenset()
    )
    shell = Shell(Cluster(whole, {CHECK: "passes"}), Faults())
    shell.go(3)
    decide(whole, shell.entries, world, Memory(), now=shell.cluster.now, begun=True)
