"""What is written on a Job whose reporter is lost, and when it is left alone.

Each situation is a Job, its newest Pod and that Pod's node as the API shows them.
"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.core import rows
from reporter.core.annotation import decode_note, encode_note
from reporter.core.condition import Attempt, Owner, owner, read_standing
from reporter.core.objects import epoch
from reporter.core.payloads import ResultPayload
from reporter.core.reap.decide import UNKNOWN_POD, Reap, Scene, reap
from reporter.core.reap.owed import conditions_owed
from reporter.core.reap.situation import NodeLook, Why, node_in_doubt, node_look
from reporter.wire.schema import problems
from tests.fakekube import make_job, make_pod, terminated, waiting

ENDED = "2030-01-01T12:10:00Z"
NOW = (epoch(ENDED) or 0.0) + 60.0
SETTLE = 60.0
KEY = "status-reporter.io/Available"
Object = dict[str, Any]

IMAGE = waiting("ErrImagePull", "not found")
KILLED = terminated(137)
DELETED_BY_GC = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


def ended(kind: str = "Failed", reason: str = "BackoffLimitExceeded") -> Object:
    return {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": ENDED}


def job(*conditions: Object, **spec: Any) -> Object:
    """A Job that began at 12:00."""
    made = make_job()
    made["spec"] |= spec
    made["status"]["conditions"] = list(conditions)
    return made


def said(
    made: Object,
    report: rows.Report,
    *,
    final: bool = False,
    pod: str = "validate-x7k2p",
    created: str = "2030-01-01T12:00:00Z",
    **evidence: Any,
) -> Object:
    """The Job with what a reporter has written on it."""
    uid = "22222222-2222-4222-8222-222222222222" if pod == "validate-x7k2p" else "another"
    at = epoch(created) or 0.0
    note = encode_note(Attempt(pod, uid, at, at), report, evidence, final=final)
    made["metadata"]["annotations"] = {KEY: note}
    made["status"]["conditions"].append(
        {
            "type": "Available",
            "status": report.status,
            "reason": report.reason,
            "message": report.message,
            "lastTransitionTime": ENDED,
        }
    )
    return made


RUNS = rows.running(None, None)
RESULT = rows.result(ResultPayload(True, "AllChecked", "12 of 12"))
MISFIT = rows.misfit("no such container")
EVICTED = rows.evicted("EvictionByEvictionAPI", "drained")
PULL = rows.trouble("W1", "container 'adapter': ErrImagePull: not found")
SEEN = {"adapter": {"container": "adapter", "restarts": 0, "state": "running"}}
OOM = {"adapter": {"container": "adapter", "restarts": 0, "state": "terminated"}}
OOM["adapter"] |= {"exitCode": 137, "reason": "OOMKilled"}


def pod(
    made: Object | None = None,
    *,
    reporter: Object | None = None,
    deleted: str = "",
    conditions: tuple[Object, ...] = (),
    **shown: Any,
) -> Object:
    """The Job's Pod, whose reporter is in that state (running unless said)."""
    found = make_pod(made or make_job(), **shown)
    if reporter is not None:
        kind = "containerStatuses" if shown.get("form") == "classic" else "initContainerStatuses"
        own = next(c for c in found["status"][kind] if c["name"] == "status-reporter")
        own["state"] = reporter
    found["status"]["conditions"] += conditions
    if deleted:
        found["metadata"] |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": 30}
    return found


def judged(
    made: Object, shown: Object | None, node: NodeLook = NodeLook.ALIVE, now: float = NOW
) -> Reap | Why:
    """Decide as the shell does."""
    (owed,) = conditions_owed(made)
    note = decode_note(made["metadata"].get("annotations", {}).get(KEY, ""))
    standing = read_standing(made, owed.type, note)
    return reap(Scene(made, owed, standing, shown, node, now, SETTLE))


def last(reason: str, message: str, *, row: str = "N", status: str = "Unknown") -> tuple[Any, ...]:
    return row, status, reason, message, True


def soon(message: str) -> tuple[Any, ...]:
    return "N", "Unknown", "AdapterInterrupted", message, False


def interrupted(cause: str, adapter: str) -> tuple[Any, ...]:
    return last("AdapterInterrupted", f"{cause} before a verdict was known; adapter {adapter}")


def without_adapter(shown: Object) -> Object:
    shown["spec"]["containers"] = []
    return shown


GONE, SILENT = NodeLook.GONE, NodeLook.SILENT
NEVER = "Reporter did not start (its image cannot be pulled) before a verdict was known; "
NEVER += "adapter container has not started yet"
DEADLINE = "Adapter did not finish within the Job's activeDeadlineSeconds (10m0s)"
TAKEN = "Pod was disrupted: DeletionByPodGC: PodGC: node no longer exists"

WRITTEN: dict[str, tuple[Object, Object | None, NodeLook, tuple[Any, ...]]] = {
    "the Pod is gone and nothing was ever written": (
        job(ended()),
        None,
        NodeLook.ALIVE,
        interrupted("Pod is gone", "container cannot be observed"),
    ),
    "the Pod is gone, and the Job names the usual controller": (
        job(ended(), completions=1, managedBy="kubernetes.io/job-controller"),
        None,
        NodeLook.ALIVE,
        interrupted("Pod is gone", "container cannot be observed"),
    ),
    "the Pod is gone of a Job with another controller, and its reporter wrote here": (
        said(job(ended(), completions=0, managedBy="example.com/controller"), RUNS, **SEEN),
        None,
        NodeLook.ALIVE,
        interrupted("Pod is gone", "container is running"),
    ),
    "the Pod is gone while the adapter ran": (
        said(job(ended()), RUNS, **SEEN),
        None,
        NodeLook.ALIVE,
        interrupted("Pod is gone", "container is running"),
    ),
    "the Pod is gone after its adapter was last seen killed for memory": (
        said(job(ended()), RUNS, **OOM),
        None,
        NodeLook.ALIVE,
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "a deadline has taken the Pod, and nothing else is known": (
        job(ended(reason="DeadlineExceeded"), activeDeadlineSeconds=600),
        None,
        NodeLook.ALIVE,
        last("AdapterTimeout", DEADLINE, row="D", status="False"),
    ),
    "a deadline does not hide an image that cannot be pulled": (
        said(job(ended(reason="DeadlineExceeded"), activeDeadlineSeconds=600), PULL),
        None,
        NodeLook.ALIVE,
        last(
            "AdapterImagePullFailed",
            PULL.message + "; the Job's activeDeadlineSeconds (10m0s) passed",
            row="W1",
            status="False",
        ),
    ),
    "a deadline does not hide a reporter that never started": (
        said(job(ended(reason="DeadlineExceeded")), rows.Report("N", *soon(NEVER)[1:4])),
        None,
        NodeLook.ALIVE,
        last("AdapterInterrupted", NEVER),
    ),
    "the Job is complete, and its reporter was lost before it wrote": (
        job(ended("Complete", "")),
        pod(adapter_state=terminated(0), reporter=KILLED, phase="Succeeded"),
        NodeLook.ALIVE,
        interrupted("Reporter ended", "container ended with exit code 0"),
    ),
    "all processes of the Pod were killed": (
        said(job(ended()), RUNS),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        interrupted("Reporter ended", "container ended with exit code 137"),
    ),
    "an OOM kill shows, whatever became of the reporter": (
        said(job(ended()), RUNS),
        pod(adapter_state=terminated(137, "OOMKilled"), reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "the adapter could not be started": (
        job(ended()),
        pod(adapter_state=terminated(128, "StartError"), reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        last("AdapterStartFailed", "container 'adapter': StartError", row="W3", status="False"),
    ),
    "the container was lost": (
        job(ended()),
        pod(
            adapter_state=terminated(137, "ContainerStatusUnknown"),
            reporter=KILLED,
            phase="Failed",
        ),
        NodeLook.ALIVE,
        interrupted("Adapter container was lost", "container ended with exit code 137"),
    ),
    "the reporter's image cannot be pulled": (
        job(),
        pod(adapter_state=waiting(), reporter=IMAGE, phase="Pending"),
        NodeLook.ALIVE,
        soon(NEVER.replace("has not started yet", "is waiting: PodInitializing")),
    ),
    "the classic reporter never started, and the adapter has ended": (
        job(),
        pod(form="classic", adapter_state=terminated(0), reporter=IMAGE, phase="Pending"),
        NodeLook.ALIVE,
        soon(
            "Reporter did not start (its image cannot be pulled) before a verdict was known; "
            "adapter container ended with exit code 0"
        ),
    ),
    "the node is deleted, and its Pods are not yet": (
        said(job(), RUNS),
        pod(deleted=ENDED),
        GONE,
        soon("Pod was deleted before a verdict was known; adapter container is running"),
    ),
    "the node is deleted, and the API knows no more of its Pod": (
        said(job(), RUNS),
        pod(phase="Unknown"),
        GONE,
        soon("Node node1 was deleted before a verdict was known; adapter container is running"),
    ),
    "the node is silent, and the API knows no more of its Pod": (
        said(job(), RUNS),
        pod(phase="Unknown"),
        SILENT,
        soon(
            "Node node1 became unreachable before a verdict was known; adapter container is running"
        ),
    ),
    "the node is silent, and its Pods are being evicted": (
        said(job(), RUNS),
        pod(deleted=ENDED, conditions=(DELETED_BY_GC,)),
        SILENT,
        ("E", "Unknown", "AdapterEvicted", TAKEN, False),
    ),
    "the Job has ended, and a reporter that was cut off may come back": (
        said(job(ended()), RUNS),
        pod(deleted=ENDED, conditions=(DELETED_BY_GC,)),
        SILENT,
        ("E", "Unknown", "AdapterEvicted", TAKEN, False),
    ),
    "the Pod is gone after its reporter was told of the eviction": (
        said(job(ended()), EVICTED),
        None,
        NodeLook.ALIVE,
        last("AdapterEvicted", EVICTED.message, row="E"),
    ),
    "what the Pod shows counts more than what its reporter saw coming": (
        said(job(ended()), rows.interrupted("Pod was deleted", None)),
        pod(adapter_state=terminated(137, "OOMKilled"), reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "a result that was still open stays": (
        said(job(ended("Complete", "")), RESULT),
        None,
        NodeLook.ALIVE,
        last("AllChecked", "12 of 12", row="R", status="True"),
    ),
    "a result that was still open stays with the run that wrote it": (
        said(job(ended("Complete", "")), RESULT),
        pod(adapter_state=terminated(0), reporter=KILLED, phase="Succeeded"),
        NodeLook.ALIVE,
        last("AllChecked", "12 of 12", row="R", status="True"),
    ),
    "a result that was still open is not that of a later run": (
        said(job(ended()), RESULT),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed", restarts=1),
        NodeLook.ALIVE,
        interrupted("Reporter ended", "container ended with exit code 137"),
    ),
    "a reporter that could not read its settings has said so": (
        said(job(ended()), MISFIT),
        pod(adapter_state=waiting(), reporter=terminated(2), phase="Failed"),
        NodeLook.ALIVE,
        last("ReporterConfigError", MISFIT.message, row="M"),
    ),
    "a newer Pod was lost before its reporter wrote": (
        said(job(ended()), RUNS, pod="first", created="2030-01-01T11:59:00Z"),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        interrupted("Reporter ended", "container ended with exit code 137"),
    ),
    "the newest Pod is gone, and an older one is still there": (
        said(job(ended()), RUNS, pod="second", created="2030-01-01T12:01:00Z", **SEEN),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        interrupted("Pod is gone", "container is running"),
    ),
    "the Job has ended, and the Pod it leaves behind has no reporter any more": (
        job(ended()),
        pod(form="classic", reporter=KILLED),
        NodeLook.ALIVE,
        interrupted("Reporter ended", "container is running"),
    ),
    "no container is the adapter": (
        job(ended()),
        without_adapter(pod(reporter=KILLED, phase="Failed")),
        NodeLook.ALIVE,
        interrupted("Reporter ended", "container cannot be observed"),
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_written(name: str) -> None:
    """Row, status, reason, message, and whether it is final."""
    made, shown, node, expected = WRITTEN[name]
    found = judged(made, shown, node)

    assert isinstance(found, Reap), found
    assert expected == (
        found.report.row,
        found.report.status,
        found.report.reason,
        found.report.message,
        found.final,
    )


def deleting(made: Object) -> Object:
    made["metadata"]["deletionTimestamp"] = ENDED
    return made


FOREIGN = {"type": "Available", "status": "False", "reason": "Theirs", "message": "x"}
LEFT: dict[str, tuple[Object, Object | None, NodeLook, Why]] = {
    "a final verdict": (
        said(job(ended()), rows.out_of_memory(), final=True),
        None,
        NodeLook.ALIVE,
        Why.FINAL,
    ),
    "a final verdict of an earlier Pod": (
        said(job(ended()), RESULT, final=True, pod="first", created="2030-01-01T11:59:00Z"),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        Why.FINAL,
    ),
    "another writer's condition": (job(ended(), FOREIGN), None, NodeLook.ALIVE, Why.FOREIGN),
    "a Job that goes away": (deleting(job(ended())), None, NodeLook.ALIVE, Why.DELETED),
    "a Job that wants no Pod": (
        job(ended("Complete", ""), completions=0),
        None,
        NodeLook.ALIVE,
        Why.NEEDLESS,
    ),
    "a Job whose Pods may be in another cluster": (
        job(ended("Complete", ""), managedBy="kueue.x-k8s.io/multikueue"),
        None,
        NodeLook.ALIVE,
        Why.MANAGED,
    ),
    "a suspended Job": (job(suspend=True), None, NodeLook.ALIVE, Why.SUSPENDED),
    "a Job whose next Pod is still to come": (said(job(), RUNS), None, GONE, Why.NO_POD),
    "a Job that may start another Pod": (
        said(job(backoffLimit=3), RUNS),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        NodeLook.ALIVE,
        Why.ENDING,
    ),
    "a reporter at work": (said(job(), RUNS), pod(), NodeLook.ALIVE, Why.ALIVE),
    "a reporter at work while its Pod is deleted": (
        said(job(), RUNS),
        pod(deleted=ENDED),
        NodeLook.ALIVE,
        Why.ALIVE,
    ),
    "a reporter at work after its Job has ended": (job(ended()), pod(), NodeLook.ALIVE, Why.ALIVE),
    "a reporter that is restarted": (
        job(ended()),
        pod(reporter=KILLED),
        NodeLook.ALIVE,
        Why.ALIVE,
    ),
    "a reporter that waits for its start": (
        job(ended()),
        pod(reporter=waiting()),
        NodeLook.ALIVE,
        Why.ALIVE,
    ),
    "a Pod that waits for a node": (
        job(),
        pod(adapter_state=waiting(), reporter=waiting(), phase="Pending"),
        NodeLook.ALIVE,
        Why.ALIVE,
    ),
    "a reporter that crashes and is started again": (
        job(),
        pod(adapter_state=waiting(), reporter=waiting("CrashLoopBackOff"), phase="Pending"),
        NodeLook.ALIVE,
        Why.ALIVE,
    ),
    "a result whose reporter waits for the adapter's end, on a lost node": (
        said(job(), RESULT),
        pod(deleted=ENDED),
        SILENT,
        Why.RESULT,
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_left_alone(name: str) -> None:
    """Why nothing is written."""
    made, shown, node, expected = LEFT[name]

    assert expected is judged(made, shown, node)


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
        note = encode_note(found.attempt, found.report, found.evidence, final=True)
        standing = read_standing(made, "Available", decode_note(note))
        at = found.attempt.waiting_since_at

        assert UNKNOWN_POD == found.attempt.pod
        assert Owner.OLDER is owner(standing, Attempt("validate-0", "0", at, at))


def test_evidence() -> None:
    """What was seen; nothing of a file that nobody could see."""
    shown = pod(deleted=ENDED, conditions=(DELETED_BY_GC,))
    found = judged(said(job(), RUNS), shown, GONE)

    assert isinstance(found, Reap)
    assert {"observedAt", "pod", "adapter", "job", "reaper"} == set(found.evidence)
    assert {"name": "node1", "state": "deleted"} == found.evidence["reaper"]["node"]
    assert "running" == found.evidence["reaper"]["reporter"]["state"]
    note = encode_note(found.attempt, found.report, found.evidence, final=found.final)
    assert {} == problems("verdict.v1", json.loads(note))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (None, ""),
        (pod(), ""),
        (pod(deleted=ENDED), "node1"),
        (pod(phase="Unknown"), "node1"),
        (pod(conditions=(DELETED_BY_GC | {"reason": "TerminationByKubelet"},)), "node1"),
    ],
)
def test_node_in_doubt(shown: Object | None, expected: str) -> None:
    """Only where a Pod is taken away: nodes are not asked about for Pods that are well."""
    (owed,) = conditions_owed(make_job())

    assert expected == node_in_doubt(shown, owed)


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

    assert before == made
    if isinstance(found, Why):
        return
    assert '"final":true' not in made["metadata"].get("annotations", {}).get(KEY, "")
    assert found.report.row in {"O", "E", "D", "N", "W1", "W2", "W3", "M", "R"}
    assert over or not found.final
    again = deepcopy(made)
    conditions = again["status"]["conditions"]
    conditions[:] = [each for each in conditions if each["type"] != "Available"]
    note = encode_note(found.attempt, found.report, found.evidence, final=found.final)
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
