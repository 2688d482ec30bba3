"""What is written on a Job whose reporter is lost, and when it is left alone."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.common.objects import epoch
from reporter.common.schema import problems
from reporter.reap.decide import (
    UNKNOWN_POD,
    NewestPod,
    NodeLook,
    Reap,
    Why,
    conditions_owed,
    node_look,
)
from reporter.verdict.condition import (
    Attempt,
    Owner,
    Statement,
    decode_note,
    encode_annotation,
    owner,
    read_standing,
)
from tests.fakekube import make_job, waiting
from tests.unit.reap.scene import (
    DELETED_BY_GC,
    ENDED,
    IMAGE,
    KEY,
    KILLED,
    NOW,
    RUNS,
    SETTLE,
    Object,
    ended,
    job,
    judged,
    pod,
    said,
)
from tests.unit.reap.situations import GONE, LEFT, WRITTEN


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    """Row, status, reason, message, and whether it is final."""
    made, shown, *node, expected = WRITTEN[name]
    found = judged(made, shown, *node)

    assert isinstance(found, Reap), found
    assert expected == (
        found.report.row,
        found.report.status,
        found.report.reason,
        found.report.message,
        found.final,
    )
    assert {} == problems("verdict.v1", json.loads(encode_annotation(statement(found))))


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    """Why nothing is written."""
    made, shown, *node, expected = LEFT[name]

    assert expected is judged(made, shown, *node)


@pytest.mark.parametrize("earlier", [0.0, 1.0])
def test_settles(earlier: float) -> None:
    """By the API server's clock, and to the second."""
    pending = pod(adapter_state=waiting(), reporter=IMAGE, phase="Pending", created=ENDED)
    found = [
        judged(job(ended()), None, now=NOW - earlier),
        judged(job(), pending, now=NOW - earlier),
    ]

    assert ([Why.SETTLING, Why.ALIVE] if earlier else [Reap, Reap]) == [
        each if earlier else type(each) for each in found
    ]


def test_an_end_without_a_time() -> None:
    """Counts as long ago."""
    assert isinstance(judged(job({"type": "Complete", "status": "True"}), None), Reap)


def statement(found: Reap, *, final: bool | None = None) -> Statement:
    """Return what is written."""
    said = found.final if final is None else final
    return Statement(found.report, said, found.attempt, found.evidence, NOW)


class TestAttempt:
    """Whose report it is."""

    def test_of_a_pod_that_is_there(self) -> None:
        """The Pod's; the times of an earlier start of the reporter are kept."""
        made = said(job(ended()), RUNS, created="2030-01-01T12:00:00Z")
        found = judged(made, pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"))

        assert isinstance(found, Reap)
        note = decode_note(made["metadata"]["annotations"][KEY])
        assert note is not None
        assert note.attempt.same(found.attempt)
        assert note.attempt.waiting_since_at == found.attempt.waiting_since_at
        assert epoch("2030-01-01T12:00:02Z") == found.attempt.first_started_at

    def test_of_a_pod_that_is_gone(self) -> None:
        """As its reporter has written it."""
        made = said(job(ended()), RUNS)
        found = judged(made, None)
        note = decode_note(made["metadata"]["annotations"][KEY])

        assert isinstance(found, Reap)
        assert note is not None
        assert note.attempt == found.attempt

    @pytest.mark.parametrize("started", [True, False])
    def test_of_a_pod_that_nobody_knows(self, started: bool) -> None:
        """Older than any Pod of the Job, should one come after all, even of the same second."""
        made = job(ended())
        if not started:
            del made["status"]["startTime"]
        found = judged(made, None)
        assert isinstance(found, Reap)
        note = encode_annotation(statement(found, final=True))
        standing = read_standing(made, "Available", decode_note(note))
        at = found.attempt.waiting_since_at

        assert (UNKNOWN_POD, epoch("2030-01-01T12:00:00Z") if started else NOW) == (
            found.attempt.pod,
            at,
        )
        assert Owner.OLDER is owner(standing, Attempt("validate-0", "0", at, at))


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("completions", [1, 3])
def test_the_message_names_the_completion_index(gone: bool, completions: int) -> None:
    """As the reporter's own messages do."""
    made = said(job(ended(), completions=completions, completionMode="Indexed"), RUNS, index=2)
    shown = pod(adapter_state=waiting(), reporter=IMAGE, phase="Failed")
    shown["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "2"}
    found = judged(made, None if gone else shown)

    assert isinstance(found, Reap)
    assert 2 == found.attempt.index
    begins = f"{'index 2: ' * (completions > 1)}{'Pod is gone' if gone else 'Reporter did not'}"
    assert found.report.message.startswith(begins)


def test_evidence() -> None:
    """What was seen; nothing of a file that nobody could see."""
    shown = pod(deleted=ENDED, conditions=(DELETED_BY_GC,))
    found = judged(said(job(), RUNS), shown, GONE)

    assert isinstance(found, Reap)
    assert {"observedAt", "pod", "adapter", "job", "reaper"} == set(found.evidence)
    assert {"name": "node1", "state": "deleted"} == found.evidence["reaper"]["node"]
    assert "running" == found.evidence["reaper"]["reporter"]["state"]


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (pod(), ""),
        (pod(deleted=ENDED), "node1"),
        (pod(phase="Unknown"), "node1"),
        (pod(conditions=(DELETED_BY_GC | {"reason": "TerminationByKubelet"},)), "node1"),
    ],
)
def test_node_in_doubt(shown: Object, expected: str) -> None:
    """Only where a Pod is taken away: nodes are not asked about for Pods that are well."""
    (owed,) = conditions_owed(make_job())

    assert expected == NewestPod(shown, owed).doubtful_node


@pytest.mark.parametrize(
    ("status", "earlier", "expected"),
    [
        ("True", 0, NodeLook.ALIVE),
        ("False", 0, NodeLook.ALIVE),
        ("Unknown", 0, NodeLook.SILENT),
        ("Unknown", 1, NodeLook.ALIVE),
    ],
)
def test_node_look(status: str, earlier: int, expected: NodeLook) -> None:
    """A node that is not ready has a kubelet that says so; only silence counts."""
    ready = {"type": "Ready", "status": status, "lastTransitionTime": ENDED}
    node = {"status": {"conditions": [{"type": "DiskPressure", "status": "Unknown"}, ready]}}

    assert expected is node_look(node, NOW - earlier, SETTLE)
    assert NodeLook.ALIVE is node_look({}, NOW, SETTLE)


JOBS = [made for made, *_ in (*WRITTEN.values(), *LEFT.values())]
PODS = [shown for _, shown, *_ in (*WRITTEN.values(), *LEFT.values())]


@given(st.sampled_from(JOBS), st.sampled_from(PODS), st.sampled_from(NodeLook))
def test_whatever_comes_together(made: Object, shown: Object | None, node: NodeLook) -> None:
    """A final verdict stays, no exit code makes a verdict, a Job that goes on gets no last word.

    And the next pass finds nothing more to say.
    """
    before = deepcopy(made)
    found = judged(made, shown, node)
    over = any(each["type"] in {"Complete", "Failed"} for each in made["status"]["conditions"])
    over |= made["status"].get("failed", 0) > made["spec"]["backoffLimit"]

    assert before == made
    if isinstance(found, Why):
        return
    assert '"final":true' not in made["metadata"].get("annotations", {}).get(KEY, "")
    assert found.report.row in {"O", "E", "D", "N", "W1", "W2", "W3", "M", "R"}
    assert over or not found.final
    again = deepcopy(made)
    conditions = again["status"]["conditions"]
    conditions[:] = [each for each in conditions if each["type"] != "Available"]
    note = encode_annotation(statement(found))
    again["metadata"]["annotations"] = {KEY: note}
    conditions.append(
        {"type": "Available"}
        | {key: getattr(found.report, key) for key in ("status", "reason", "message")}
    )
    second = judged(again, shown, node)
    if found.final:
        assert second is Why.FINAL
    elif isinstance(second, Reap):
        assert (found.report, found.final) == (second.report, second.final)
