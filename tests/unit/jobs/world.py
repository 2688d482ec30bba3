"""Jobs, Pods and Events in each situation that `explain` knows."""

import copy
import json

from reporter.common.objects import epoch
from reporter.jobs.check_job import Look, findings
from reporter.jobs.job import JobView
from reporter.verdict import rows
from reporter.verdict.facts import ResultPayload, Terminated
from tests.fakekube import make_job, make_pod, terminated, waiting
from tests.verdicts import with_verdicts

NOW = epoch("2030-01-01T12:10:00Z")


POD = "validate-x7k2p"


FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}


COMPLETE = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": ""}


def job(*reports, final=True, evidence=None, after=None, late=None, spec=None, pod=POD, **status):
    """A Job on which these reports stand, or none yet."""
    seen_at = "2030-01-01T12:00:30Z"
    return with_verdicts(
        *reports,
        final=final,
        attempt={
            "pod": pod,
            "podUID": "uid",
            "podCreatedAt": "2030-01-01T12:00:00Z",
            "waitingSince": "2030-01-01T12:00:02Z",
            "adapterRestarts": 0,
        },
        since=seen_at,
        details={"observedAt": seen_at, **(evidence or {})},
        after=after,
        late=late,
        spec=spec,
        status=status,
    )


def pod(state=None, *, change=None, reporter=None, **fields):
    """The Job's Pod; `reporter` is the state of its container."""
    made = make_pod(make_job(), adapter_state=state, **fields)
    if reporter is not None:
        made["status"]["initContainerStatuses"][0] |= {"state": reporter}
    if change is not None:
        change(made)
    return made


def event(reason, message, name=POD, **more):
    return {
        "reason": reason,
        "message": message,
        "involvedObject": {"name": name},
        "lastTimestamp": "2030-01-01T12:05:00Z",
        **more,
    }


def explain(made, *pods, events=(), log="", unread=None):
    return findings(Look(JobView(made), pods, NOW, events, log, unread or {}))


def setting(made, name, value):
    """Set a variable of the reporter in the template."""
    spec = made["spec"]["template"]["spec"]
    spec["initContainers"][0].setdefault("env", []).append({"name": name, "value": value})
    return made


GOOD = ResultPayload(True, "AllChecked", "12 of 12")


BAD = ResultPayload(False, "QuotaMissing", "no quota")


EXITED = Terminated(3, "Error")


def scheduled(status_reason, message=""):
    def change(made):
        made["spec"].pop("nodeName")
        made["status"] = {
            "phase": "Pending",
            "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": status_reason}
                | ({"message": message} if message else {})
            ],
        }
        made["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]

    return change


def failed_pod(reason, message=""):
    def change(made):
        made["status"] |= {"phase": "Failed", "reason": reason, "message": message}

    return change


def disrupted(made):
    made["status"]["conditions"].append(
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
    )


def evicted(made):
    disrupted(made)
    made["metadata"]["deletionTimestamp"] = "2030-01-01T12:10:20Z"


def deleted(at):
    def change(made):
        made["metadata"]["deletionTimestamp"] = at

    return change


def creating(made):
    for kind in ("initContainerStatuses", "containerStatuses"):
        made["status"][kind][0]["state"] = waiting("ContainerCreating")
    made["status"]["phase"] = "Pending"


def classic(state, reporter):
    made = make_pod(make_job(), form="classic", adapter_state=state)
    made["status"]["containerStatuses"][1]["state"] = reporter
    return made


def looping(last):
    made = pod(waiting(), reporter=waiting("CrashLoopBackOff"))
    made["status"]["initContainerStatuses"][0]["lastState"] = last
    return made


def unseen(made):
    made["spec"].pop("nodeName")
    made["spec"]["schedulerName"] = "mine"
    made["status"] = {"phase": "Pending"}


def beside(state):
    """Another regular container, in this state."""

    def change(made):
        made["spec"]["containers"].append({"name": "istio-proxy"})
        made["status"]["containerStatuses"].append({"name": "istio-proxy", "state": state})

    return change


def logged(message, level="error", **fields):
    return json.dumps({"message": message, "level": level, **fields})


def failed(failure, error, request="job"):
    return logged("Request failed", "warning", request=request, failure=failure, error=error)


REFUSED = '{"message":"Request failed","failure":"forbidden","error":"... is forbidden: User ..."}'


def without_reporter(made):
    made = copy.deepcopy(made)
    made["spec"]["template"]["spec"].pop("initContainers")
    return made


def bare(made):
    made["spec"].pop("initContainers")
    made["status"].pop("initContainerStatuses")


def lost(made):
    """How the kubelet shows a container that did not run when it ended the Pod."""
    failed_pod("DeadlineExceeded")(made)
    made["status"]["containerStatuses"][0]["state"] = terminated(137, "ContainerStatusUnknown")


UNPULLED = rows.after_deadline(
    rows.trouble(rows.Row.IMAGE, "container 'adapter': ErrImagePull"), "Pod", 30
)
