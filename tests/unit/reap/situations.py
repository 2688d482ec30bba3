"""Situations in which something is written on a Job whose reporter is lost, or it is left alone."""

from __future__ import annotations

from typing import Any

from reporter.reap.decide import NodeLook, Why
from reporter.verdict import rows
from reporter.verdict.facts import ResultPayload
from tests.fakekube import terminated, waiting
from tests.unit.reap.scene import (
    DELETED_BY_GC,
    ENDED,
    IMAGE,
    KILLED,
    RESULT,
    RUNS,
    Object,
    ended,
    job,
    pod,
    said,
)

MISFIT = rows.misfit("no such container")
EVICTED = rows.evicted("EvictionByEvictionAPI", "drained")
PULL = rows.trouble(rows.Row.IMAGE, "container 'adapter': ErrImagePull: not found")
SEEN = {"adapter": {"container": "adapter", "restarts": 0, "state": "running"}}
OOM = {"adapter": {"container": "adapter", "restarts": 0, "state": "terminated"}}
OOM["adapter"] |= {"exitCode": 137, "reason": "OOMKilled"}


def last(reason: str, message: str, *, row: str = "N", status: str = "Unknown") -> tuple[Any, ...]:
    return row, status, reason, message, True


def soon(message: str) -> tuple[Any, ...]:
    return "N", "Unknown", "AdapterInterrupted", message, False


def interrupted(cause: str, adapter: str) -> tuple[Any, ...]:
    return last("AdapterInterrupted", f"{cause} before a verdict was known; adapter {adapter}")


def without_adapter(shown: Object) -> Object:
    shown["spec"]["containers"] = []
    return shown


def before(shown: Object, message: str) -> Object:
    """The Pod, with how the reporter's process before has ended."""
    own = shown["status"]["initContainerStatuses"][0]
    own |= {"restartCount": 1, "lastState": terminated(137, message=message)}
    return shown


FORBIDDEN = rows.last_words(
    rows.result(ResultPayload(False, "QuotaMissing", "no quota")),
    "jobs.batch is forbidden",
    forbidden=True,
)
GONE, SILENT = NodeLook.GONE, NodeLook.SILENT
NEVER = "Reporter did not start (its image cannot be pulled) before a verdict was known; "
NEVER += "adapter container has not started yet"
DEADLINE = "Adapter did not finish within the Job's activeDeadlineSeconds (10m0s)"
TAKEN = "Pod was disrupted: DeletionByPodGC: PodGC: node no longer exists"


def counted(made: Object, **status: int) -> Object:
    """The Job with what its controller has counted."""
    made["status"] |= {"active": 0, **status}
    return made


WRITTEN: dict[str, tuple[Any, ...]] = {
    # The Job, its newest Pod, what became of that one's node if it is not alive, what is written.
    "the reporter ended and was not allowed to write": (
        job(ended()),
        pod(adapter_state=terminated(0), phase="Failed", reporter=terminated(0, message=FORBIDDEN)),
        last("AdapterInterrupted", f"Reporter ended; {FORBIDDEN}"),
    ),
    "the reporter was restarted, and the process before was not allowed to write": (
        job(ended()),
        before(pod(adapter_state=terminated(0), phase="Failed", reporter=KILLED), FORBIDDEN),
        last("AdapterInterrupted", f"Reporter ended; {FORBIDDEN}"),
    ),
    "the reporter cannot be started again, and the process before was not allowed to write": (
        job(ended()),
        before(
            pod(adapter_state=terminated(0), phase="Failed", reporter=waiting("ErrImagePull")),
            FORBIDDEN,
        ),
        last("AdapterInterrupted", f"Reporter ended; {FORBIDDEN}"),
    ),
    "the reporter ended and could not write, and the adapter ran out of memory": (
        job(ended()),
        pod(
            adapter_state=terminated(137, "OOMKilled"),
            phase="Failed",
            reporter=terminated(1, message=FORBIDDEN),
        ),
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "the Pod is gone and nothing was ever written": (
        job(ended()),
        None,
        interrupted("Pod is gone", "container cannot be observed"),
    ),
    "the Pod is gone, and the controller that counted its failure forgot the Job's end": (
        said(counted(job(), failed=1, terminating=0), RUNS, **SEEN),
        None,
        interrupted("Pod is gone", "container is running"),
    ),
    "the Pod is gone, and the Job names the usual controller": (
        job(ended(), completions=1, managedBy="kubernetes.io/job-controller"),
        None,
        interrupted("Pod is gone", "container cannot be observed"),
    ),
    "the Pod is gone of a Job with another controller, and its reporter wrote here": (
        said(job(ended(), completions=0, managedBy="example.com/controller"), RUNS, **SEEN),
        None,
        interrupted("Pod is gone", "container is running"),
    ),
    "the Pod is gone while the adapter ran": (
        said(job(ended()), RUNS, **SEEN),
        None,
        interrupted("Pod is gone", "container is running"),
    ),
    "the Pod is gone after its adapter was last seen killed for memory": (
        said(job(ended()), RUNS, **OOM),
        None,
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "a deadline has taken the Pod, and nothing else is known": (
        job(ended(reason="DeadlineExceeded"), activeDeadlineSeconds=600),
        None,
        last("AdapterTimeout", DEADLINE, row="D", status="False"),
    ),
    "a deadline does not hide an image that cannot be pulled": (
        said(job(ended(reason="DeadlineExceeded"), activeDeadlineSeconds=600), PULL),
        None,
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
        last("AdapterInterrupted", NEVER),
    ),
    "the Job is complete, and its reporter was lost before it wrote": (
        job(ended("Complete", "")),
        pod(adapter_state=terminated(0), reporter=KILLED, phase="Succeeded"),
        interrupted("Reporter ended", "container ended with exit code 0"),
    ),
    "all processes of the Pod were killed": (
        said(job(ended()), RUNS),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        interrupted("Reporter ended", "container ended with exit code 137"),
    ),
    "an OOM kill shows, whatever became of the reporter": (
        said(job(ended()), RUNS),
        pod(adapter_state=terminated(137, "OOMKilled"), reporter=KILLED, phase="Failed"),
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "the adapter could not be started": (
        job(ended()),
        pod(adapter_state=terminated(128, "StartError"), reporter=KILLED, phase="Failed"),
        last("AdapterStartFailed", "container 'adapter': StartError", row="W3", status="False"),
    ),
    "the container was lost": (
        job(ended()),
        pod(
            adapter_state=terminated(137, "ContainerStatusUnknown"),
            reporter=KILLED,
            phase="Failed",
        ),
        interrupted("Adapter container was lost", "container ended with exit code 137"),
    ),
    "the reporter's image cannot be pulled": (
        job(),
        pod(adapter_state=waiting(), reporter=IMAGE, phase="Pending"),
        soon(NEVER.replace("has not started yet", "is waiting: PodInitializing")),
    ),
    "the classic reporter never started, and the adapter has ended": (
        job(),
        pod(form="classic", adapter_state=terminated(0), reporter=IMAGE, phase="Pending"),
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
        last("AdapterEvicted", EVICTED.message, row="E"),
    ),
    "what the Pod shows counts more than what its reporter saw coming": (
        said(job(ended()), rows.interrupted("Pod was deleted", None)),
        pod(adapter_state=terminated(137, "OOMKilled"), reporter=KILLED, phase="Failed"),
        last("AdapterOOMKilled", rows.out_of_memory().message, row="O", status="False"),
    ),
    "a result that was still open stays": (
        said(job(ended("Complete", "")), RESULT),
        None,
        last("AllChecked", "12 of 12", row="R", status="True"),
    ),
    "a result that was still open stays with the run that wrote it": (
        said(job(ended("Complete", "")), RESULT),
        pod(adapter_state=terminated(0), reporter=KILLED, phase="Succeeded"),
        last("AllChecked", "12 of 12", row="R", status="True"),
    ),
    "a result that was still open is not that of a later run": (
        said(job(ended()), RESULT),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed", restarts=1),
        interrupted("Reporter ended", "container ended with exit code 137"),
    ),
    "a reporter that could not read its settings has said so": (
        said(job(ended()), MISFIT),
        pod(adapter_state=waiting(), reporter=terminated(2), phase="Failed"),
        last("ReporterConfigError", MISFIT.message, row="M"),
    ),
    "a newer Pod was lost before its reporter wrote": (
        said(job(ended()), RUNS, pod="first", created="2030-01-01T11:59:00Z"),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        interrupted("Reporter ended", "container ended with exit code 137"),
    ),
    "the newest Pod is gone, and an older one is still there": (
        said(job(ended()), RUNS, pod="second", created="2030-01-01T12:01:00Z", **SEEN),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        interrupted("Pod is gone", "container is running"),
    ),
    "the Job has ended, and the Pod it leaves behind has no reporter any more": (
        job(ended()),
        pod(form="classic", reporter=KILLED),
        interrupted("Reporter ended", "container is running"),
    ),
    "no container is the adapter": (
        job(ended()),
        without_adapter(pod(reporter=KILLED, phase="Failed")),
        interrupted("Reporter ended", "container cannot be observed"),
    ),
}


def deleting(made: Object) -> Object:
    made["metadata"]["deletionTimestamp"] = ENDED
    return made


FOREIGN = {"type": "Available", "status": "False", "reason": "Theirs", "message": "x"}
LEFT: dict[str, tuple[Any, ...]] = {
    "a final verdict": (said(job(ended()), rows.out_of_memory(), final=True), None, Why.FINAL),
    "a final verdict of an earlier Pod": (
        said(job(ended()), RESULT, final=True, pod="first", created="2030-01-01T11:59:00Z"),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        Why.FINAL,
    ),
    "another writer's condition": (job(ended(), FOREIGN), None, Why.FOREIGN),
    "a Job that goes away": (deleting(job(ended())), None, Why.DELETED),
    "a Job that wants no Pod": (job(ended("Complete", ""), completions=0), None, Why.NEEDLESS),
    "a Job whose Pods may be in another cluster": (
        job(ended("Complete", ""), managedBy="kueue.x-k8s.io/multikueue"),
        None,
        Why.MANAGED,
    ),
    "a suspended Job": (job(suspend=True), None, Why.SUSPENDED),
    "a Job whose next Pod is still to come": (said(job(), RUNS), None, GONE, Why.NO_POD),
    "a Job that may start another Pod": (
        said(job(backoffLimit=3), RUNS),
        pod(adapter_state=KILLED, reporter=KILLED, phase="Failed"),
        Why.ENDING,
    ),
    "a Job whose last Pod still ends": (
        said(counted(job(), failed=1, terminating=1), RUNS),
        None,
        Why.NO_POD,
    ),
    "a Job with a failure to spare": (
        said(counted(job(backoffLimit=1), failed=1), RUNS),
        None,
        Why.NO_POD,
    ),
    "a reporter at work": (said(job(), RUNS), pod(), Why.ALIVE),
    "a reporter at work while its Pod is deleted": (
        said(job(), RUNS),
        pod(deleted=ENDED),
        Why.ALIVE,
    ),
    "a reporter at work after its Job has ended": (job(ended()), pod(), Why.ALIVE),
    "a reporter that is restarted": (job(ended()), pod(reporter=KILLED), Why.ALIVE),
    "a reporter that waits for its start": (job(ended()), pod(reporter=waiting()), Why.ALIVE),
    "a Pod that waits for a node": (
        job(),
        pod(adapter_state=waiting(), reporter=waiting(), phase="Pending"),
        Why.ALIVE,
    ),
    "a reporter that crashes and is started again": (
        job(),
        pod(adapter_state=waiting(), reporter=waiting("CrashLoopBackOff"), phase="Pending"),
        Why.ALIVE,
    ),
    "a result whose reporter waits for the adapter's end, on a lost node": (
        said(job(), RESULT),
        pod(deleted=ENDED),
        SILENT,
        Why.RESULT,
    ),
}
