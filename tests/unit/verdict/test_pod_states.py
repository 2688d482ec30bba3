"""Reading the API's Pod: states, times and restart policies."""

from dataclasses import replace

import pytest

from reporter.common.objects import epoch, number, stamp
from reporter.verdict.facts import (
    Container,
    RestartPolicy,
    RestartRule,
    Running,
    Terminated,
    Waiting,
)
from reporter.verdict.pod import Names, read_pod
from tests.unit.verdict.api_pods import AT, NAMES, NATIVE_US, START, US, container, pod_with, shown

KILLED = {
    "exitCode": 137,
    "signal": 9,
    "reason": "OOMKilled",
    "message": "m",
    "startedAt": START,
    "finishedAt": "2026-01-02T03:04:06Z",
}
NEVER_STARTED = {"exitCode": 128, "reason": "StartError", "startedAt": "1970-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({}, Waiting()),
        ({"waiting": {}}, Waiting()),
        ({"waiting": {"reason": "ErrImagePull", "message": "m"}}, Waiting("ErrImagePull", "m")),
        ({"running": {"startedAt": START}}, Running(AT)),
        ({"running": {}}, Running()),
        ({"terminated": KILLED}, Terminated(137, "OOMKilled", "m", AT, AT + 1, 9)),
        ({"terminated": NEVER_STARTED}, Terminated(128, "StartError")),  # a zero time is none
    ],
)
def test_states(state, expected):
    """As the API shows them; what is missing reads as empty."""
    assert Container("adapter", expected) == read_pod(shown(state), NAMES).adapter


def test_last_state_and_restarts():
    """The run before, and how often there was one."""
    pod = shown({"running": {}}, restartCount=2, lastState={"terminated": {"exitCode": 1}})

    assert Container("adapter", Running(), Terminated(1), 2) == read_pod(pod, NAMES).adapter


def test_a_pod_without_status_has_not_started():
    """The first event has none of the lists."""
    pod = read_pod(pod_with(container("adapter"), init=[NATIVE_US]), NAMES)

    assert (Container("adapter"), None) == (pod.adapter, pod.blocker)
    assert (Waiting(), False) == (pod.adapter_state, pod.ended_for_good)


POLICIES = {
    "the Pod's": (container("adapter"), {"restartPolicy": "OnFailure"}, RestartPolicy("OnFailure")),
    "the API's default": (container("adapter"), {}, RestartPolicy("Always")),
    "the container's own": (
        container("adapter", restartPolicy="Never"),
        {"restartPolicy": "OnFailure"},
        RestartPolicy("Never"),
    ),
    "the container's rules": (
        container(
            "adapter",
            restartPolicy="Never",
            restartPolicyRules=[
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [42, 43]}},
                {
                    "action": "RestartAllContainers",
                    "exitCodes": {"operator": "NotIn", "values": [1]},
                },
                {"action": "SomethingNew", "exitCodes": {"operator": "In", "values": [1]}},
                {"action": "Restart"},
            ],
        ),
        {},
        RestartPolicy(
            "Never",
            (
                RestartRule(frozenset({42, 43}), among=True),
                RestartRule(frozenset({1}), among=False),
            ),
        ),
    ),
}


@pytest.mark.parametrize(("declared", "spec", "expected"), POLICIES.values(), ids=POLICIES.keys())
def test_restart_policies(declared, spec, expected):
    """The container's own come before the Pod's."""
    pod = pod_with(declared, init=[NATIVE_US], **spec)

    assert expected == read_pod(pod, NAMES).restart


def restarting(name, *codes, operator="In", **fields):
    """A container whose end with one of these codes has all of them started again."""
    rule = {
        "action": "RestartAllContainers",
        "exitCodes": {"operator": operator, "values": list(codes)},
    }
    return container(name, restartPolicy="Never", restartPolicyRules=[rule], **fields)


WATCHER = restarting("watcher", 88)
SIDECAR = restarting("watcher", 88) | {"restartPolicy": "Always"}
RUNS = {"running": {}}


def exits(code):
    return {"terminated": {"exitCode": code}}


BESIDE = {
    "the other one runs": ([US, WATCHER], [], {"watcher": RUNS}, True),
    "it has not started": ([US, WATCHER], [], {"watcher": {}}, True),
    "it asks for it": ([US, WATCHER], [], {"watcher": exits(88)}, True),
    "it has ended well": ([US, WATCHER], [], {"watcher": exits(0)}, False),
    "any code but this": (
        [US, restarting("watcher", 0, operator="NotIn")],
        [],
        {"watcher": exits(1)},
        True,
    ),
    "without a rule": ([US, container("other")], [], {"other": RUNS}, False),
    "the reporter has it": ([restarting(US["name"], 88)], [], {}, False),
    "a sidecar beside a regular container": (
        [US, container("other")],
        [SIDECAR],
        {"watcher": RUNS, "other": RUNS},
        True,
    ),
    "a sidecar of a Pod that ends": ([US], [SIDECAR], {"watcher": RUNS}, False),
}


@pytest.mark.parametrize("situation", BESIDE)
def test_an_adapter_has_ended_for_good_when_nothing_can_restart_all_containers(situation):
    """RestartAllContainers of another one starts the adapter again, whatever its own policy."""
    regular, init, states, expected = BESIDE[situation]
    pod = pod_with(*regular, container("adapter"), init=init, restartPolicy="Never")
    adapter = {"name": "adapter", "state": exits(1)}
    shown = [{"name": name, "state": state} for name, state in states.items()]
    pod["status"] = {"containerStatuses": [adapter, *shown], "initContainerStatuses": shown}

    assert expected is not read_pod(pod, Names(adapter="adapter")).ended_for_good


def test_a_result_is_revisable_while_another_container_can_restart_all():
    """A later run of the adapter replaces it; the end of the Pod settles it."""
    pod = pod_with(US, WATCHER, container("adapter"), restartPolicy="Never")
    found = read_pod(pod, Names(adapter="adapter"))

    assert found.may_run_again
    assert not replace(found, phase="Failed").may_run_again


def test_our_own_restart_policy():
    """It tells whether our exit code is counted, whatever holds for the adapter."""
    adapter = container("adapter", restartPolicy="Never")

    pod = read_pod(pod_with(US, adapter, restartPolicy="OnFailure"), NAMES)

    assert (RestartPolicy("Never"), RestartPolicy("OnFailure")) == (pod.restart, pod.own_restart)


ONLY_42 = RestartPolicy("Never", (RestartRule(frozenset({42}), among=True),))
ALL_BUT_42 = RestartPolicy("Never", (RestartRule(frozenset({42}), among=False),))


@pytest.mark.parametrize(
    ("policy", "after", "not_after"),
    [
        (RestartPolicy("Never"), (), (0, 1)),
        (RestartPolicy("OnFailure"), (1,), (0,)),
        (RestartPolicy("Always"), (0, 1), ()),
        (ONLY_42, (42,), (0, 1)),
        (ALL_BUT_42, (0, 1), (42,)),
    ],
)
def test_who_is_started_again(policy, after, not_after):
    """Rules first, then the policy; exit 0 is a success under OnFailure.

    Only Never without rules ends for good whatever happens.
    """
    assert {code: code in after for code in (*after, *not_after)} == {
        code: policy.restarts_after(code) for code in (*after, *not_after)
    }
    assert (after != ()) is policy.can_restart


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (START, AT),
        ("2026-01-02T04:04:05+01:00", AT),
        ("2026-01-02T03:04:05.5Z", AT + 0.5),
        ("1970-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:59", None),
        ("2026-01-02T03:04:05", None),
        ("2026-01-02", None),
        ("soon", None),
        ("", None),
    ],
)
def test_times_of_the_api(shown, expected):
    """RFC 3339 with an offset; zero times are no times."""
    assert expected == epoch(shown)


def test_the_last_moment_of_the_calendar():
    """A far offset on the last day of the year 9999 is a time like any other."""
    assert stamp(epoch("9999-12-31T23:59:59-23:59")) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (AT + 0.9, START),
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1970-01-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
        (253_402_300_800, "9999-12-31T23:59:59Z"),
        (2**63, "9999-12-31T23:59:59Z"),
        (float("inf"), "9999-12-31T23:59:59Z"),
        (float("-inf"), "1970-01-01T00:00:00Z"),
        (float("nan"), "1970-01-01T00:00:00Z"),
    ],
)
def test_times_are_written_whole_and_always_have_a_date(seconds, expected):
    """An adapter can set its file's times to anything."""
    assert expected == stamp(seconds)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (5, 5),
        (-(2**63), -(2**63)),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (10**400, None),
        (True, None),
        (5.0, None),
        ("5", None),
        (None, None),
    ],
)
def test_numbers_of_the_api(shown, expected):
    """Integers of 64 bits, nothing else."""
    assert expected == number({"n": shown}, "n")


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ({}, None),
        ({"initContainerStatuses": [{"name": "status-reporter", "restartCount": 2}]}, 2),
        ({"containerStatuses": [{"name": "status-reporter", "restartCount": 0}]}, 0),
        ({"containerStatuses": [{"name": "adapter", "restartCount": 3}]}, None),
        ({"containerStatuses": [{"name": "status-reporter"}]}, None),
    ],
)
def test_how_often_the_reporter_was_restarted(statuses, expected):
    """In both forms; nothing where the API does not show it."""
    assert expected == read_pod({"status": statuses}, NAMES).own_restarts
