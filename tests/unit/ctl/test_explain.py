"""What `explain` says in each situation: the sentence a person needs, and what to do."""

import copy
import json

import pytest

from reporter.core import rows
from reporter.core.condition import Attempt
from reporter.core.explain.finding import Objects, Weight
from reporter.core.explain.job import findings, newest_pod, standing
from reporter.core.facts import Container, Running, Terminated, Waiting
from reporter.core.objects import epoch
from reporter.core.payloads import FileInvalid, Progress, ResultPayload
from reporter.wire.annotation import add_after, encode_note
from tests.fakekube import make_job, make_pod, running, terminated, waiting

NOW = epoch("2030-01-01T12:10:00Z")
POD = "validate-x7k2p"
FAILED = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "m"}
COMPLETE = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": ""}


def job(*reports, final=True, evidence=None, after=None, spec=None, pod=POD, **status):
    """A Job on which these reports stand, or none yet."""
    made = make_job()
    made["spec"] |= spec or {}
    made["status"] |= status
    conditions = list(made["status"].get("conditions", []))
    for number, report in enumerate(reports):
        kind = "Available" if number == 0 else f"Other{number}"
        note = encode_note(
            Attempt(pod, "uid", NOW - 600, NOW - 598),
            report,
            {"observedAt": "2030-01-01T12:00:30Z", **(evidence or {})},
            final=final,
        )
        note = add_after(note, after) if after else note
        made["metadata"].setdefault("annotations", {})[f"status-reporter.io/{kind}"] = note
        conditions.append(
            {
                "type": kind,
                "status": report.status,
                "reason": report.reason,
                "message": report.message,
                "lastTransitionTime": "2030-01-01T12:00:30Z",
            }
        )
    made["status"]["conditions"] = conditions
    return made


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


def explain(made, *pods, events=(), logs=None, unread=None):
    return findings(Objects(made, pods, NOW, events, logs or {}, unread or {}))


def setting(made, name, value):
    """Set a variable of the reporter in the template."""
    spec = made["spec"]["template"]["spec"]
    spec["initContainers"][0].setdefault("env", []).append({"name": name, "value": value})
    return made


GOOD = ResultPayload(True, "AllChecked", "12 of 12")
BAD = ResultPayload(False, "QuotaMissing", "no quota")
EXITED = Terminated(3, "Error")

VERDICTS = {
    "success": (rows.result(GOOD), {}, "Available=True AllChecked: 12 of 12 (final)", ""),
    "failure": (
        rows.result(BAD),
        {},
        "Available=False QuotaMissing: no quota",
        "reported this itself",
    ),
    "hang until the wait time ends": (
        rows.timeout(300),
        {"adapter": {"container": "adapter", "restarts": 0, "state": "running"}},
        "Adapter did not produce results within 5m0s",
        "MAX_WAIT_TIME_SECONDS",
    ),
    "out of memory": (rows.out_of_memory(), {}, "OOMKilled", "resources.limits.memory"),
    "invalid JSON": (
        rows.invalid(FileInvalid("not JSON", None)),
        {"file": {"state": "invalid", "cause": "not JSON"}},
        "Failed to parse adapter result: not JSON",
        "status-ctl validate",
    ),
    "crash": (
        rows.exited(EXITED, result_required=True),
        {"adapter": {"container": "adapter", "restarts": 0, "state": "terminated", "exitCode": 3}},
        "exited with code 3",
        "adapter's log",
    ),
    "exit code 3 after a result": (
        rows.exited(EXITED, result_required=True),
        {"file": {"state": "valid", "resultReason": "AllChecked"}},
        "exited with code 3",
        "RESULT_TRUST=at-exit",
    ),
    "exit code 0 without a file": (
        rows.exited(Terminated(0, "Completed"), result_required=True),
        {"file": {"state": "absent"}},
        "did not produce a valid result file",
        "RESULT_REQUIRED=false",
    ),
    "exit code 0, no file needed": (
        rows.exited(Terminated(0), result_required=False),
        {},
        "AdapterSucceeded",
        "",
    ),
    "image": (
        rows.trouble("W1", "container 'adapter': ErrImageNeverPull: not there"),
        {},
        "AdapterImagePullFailed: container 'adapter': ErrImageNeverPull",
        "imagePullSecrets",
    ),
    "missing ConfigMap key": (
        rows.trouble("W2", 'configmap "x" not found'),
        {},
        'configmap "x" not found',
        "ConfigMap, Secret or key",
    ),
    "command not found": (
        rows.trouble("W3", "StartError: no such file"),
        {},
        "AdapterStartFailed: StartError",
        "command, working directory",
    ),
    "crash loop": (
        rows.crash_looping(Container("adapter", Waiting("CrashLoopBackOff"), EXITED, 4)),
        {},
        "last exit code 3, restarted 4 times",
        "--previous",
    ),
    "deadline": (
        rows.deadline("Job", 60),
        {},
        "within the Job's activeDeadlineSeconds (1m0s)",
        "Raise the activeDeadlineSeconds",
    ),
    "evicted": (
        rows.evicted("EvictionByEvictionAPI", "drained"),
        {"pod": {"look": "seen", "disruption": "EvictionByEvictionAPI: drained"}},
        "disrupted: EvictionByEvictionAPI: drained",
        "podFailurePolicy",
    ),
    "interrupted": (
        rows.interrupted("The Pod was deleted", Running()),
        {},
        "The Pod was deleted before a verdict was known",
        "run the Job again",
    ),
    "wrong container name": (
        rows.misfit("'x' is not a container of the Pod"),
        {},
        "'x' is not a container of the Pod",
        "Fix the reporter's settings",
    ),
    "running": (
        rows.running(Running(), Progress("step 3", 10, 3, (), ())),
        {},
        "3 of 10 completed, step 3",
        "",
    ),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_every_row_of_the_contract(name):
    """The condition in one line, its evidence, and what that row asks people to do."""
    report, evidence, said, todo = VERDICTS[name]
    first, *_ = explain(job(report, evidence=evidence), pod())

    assert "verdict" == first.code
    assert said in first.what
    assert todo in first.todo
    assert bool(todo) == bool(first.todo)
    good = report.status == "True" or report.row == "A"
    assert (Weight.INFO if good else Weight.PROBLEM) == first.weight


def test_the_evidence_is_told_in_words():
    """What the annotation holds, one fact a line."""
    evidence = {
        "file": {"state": "invalid", "cause": "not JSON"},
        "adapter": {
            "container": "adapter",
            "restarts": 2,
            "state": "waiting",
            "reason": "CrashLoopBackOff",
            "last": {"exitCode": 137, "maybeOutOfMemory": True},
        },
        "lastEndedRun": {"exitCode": 1, "reason": "Error"},
        "pod": {
            "look": "gone",
            "disruption": "Preempted: by x",
            "blockedBy": {"container": "init", "state": "terminated", "exitCode": 2},
        },
        "waitedSeconds": 12.3,
    }
    first, *_ = explain(job(rows.timeout(300), evidence=evidence), pod())

    assert (
        "result file: invalid (not JSON)",
        "adapter 'adapter': waiting (CrashLoopBackOff), restarted 2 times; previous run: exit "
        "code 137, killed, possibly out of memory",
        "its last run that ended: exit code 1 (Error)",
        "init container 'init' blocks it: exit code 2",
        "the Pod was disrupted: Preempted: by x",
        "reading the Pod: gone",
        f"waited 12 s; seen at 2030-01-01T12:00:30Z in Pod {POD}",
    ) == first.evidence


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

PODS = {
    "cannot be scheduled": (
        pod(change=scheduled("Unschedulable", "0/3 nodes are available: 3 Insufficient memory.")),
        {},
        "unschedulable",
        f"Pod {POD} is pending: it cannot be scheduled (0/3 nodes are available",
        "cpu, memory",
    ),
    "cannot be scheduled, by the event": (
        pod(change=scheduled("")),
        {"events": [event("FailedScheduling", "no luck", count=4)]},
        "unschedulable",
        "it cannot be scheduled (FailedScheduling: no luck (4 times))",
        "",
    ),
    "scheduling gate": (
        pod(change=scheduled("SchedulingGated")),
        {},
        "gated",
        "it has scheduling gates (example.com/wait)",
        "has to remove it",
    ),
    "image of the adapter": (
        pod(waiting("ImagePullBackOff", 'Back-off pulling image "x"'), phase="Pending"),
        {"events": [event("Failed", 'Failed to pull image "x": not found')]},
        "image-trouble",
        "Container 'adapter' of Pod validate-x7k2p cannot pull its image (ImagePullBackOff",
        "registry",
    ),
    "invalid image name": (
        pod(waiting("InvalidImageName", "couldn't parse"), phase="Pending"),
        {},
        "image-trouble",
        "InvalidImageName: couldn't parse",
        "name and tag",
    ),
    "image of the reporter": (
        pod(waiting(), reporter=waiting("ErrImagePull", "not found"), phase="Pending"),
        {},
        "image-trouble",
        "The reporter's container 'status-reporter' of Pod validate-x7k2p cannot pull its image "
        "(ErrImagePull: not found). The adapter does not start before it.",
        "registry",
    ),
    "missing ConfigMap key": (
        pod(waiting("CreateContainerConfigError", "couldn't find key a in ConfigMap b")),
        {},
        "config-trouble",
        "couldn't find key a in ConfigMap b",
        "Create the ConfigMap",
    ),
    "command not found": (
        pod(terminated(128, "StartError", message="no such file")),
        {},
        "start-trouble",
        "could not be started (StartError: no such file)",
        "command",
    ),
    "crash loop": (
        pod(waiting("CrashLoopBackOff"), last_state=terminated(3), restarts=5),
        {},
        "crash-loop",
        "keeps failing: exit code 3 (Error), restarted 5 times",
        "kubectl logs validate-x7k2p -c adapter --previous",
    ),
    "out of memory": (
        pod(terminated(137, "OOMKilled"), phase="Failed"),
        {},
        "oom-killed",
        "ran out of memory and was killed (OOMKilled, exit code 137)",
        "resources.limits.memory",
    ),
    "killed by somebody": (
        pod(terminated(137), phase="Failed"),
        {},
        "exited",
        "ended: exit code 137 (Error). It may have run out of memory.",
        "kubectl logs",
    ),
    "container lost": (
        pod(terminated(137, "ContainerStatusUnknown"), phase="Failed"),
        {},
        "lost",
        "the kubelet could not find it any more",
        "node",
    ),
    "settings of the reporter": (
        classic(running(), terminated(2)),
        {},
        "reporter-failed",
        "The reporter's container 'status-reporter' of Pod validate-x7k2p exited: exit code 2 "
        "(Error).",
        "Its settings are invalid",
    ),
    "the reporter failed": (
        classic(running(), terminated(1)),
        {},
        "reporter-failed",
        "exited: exit code 1 (Error).",
        "kubectl logs validate-x7k2p -c status-reporter",
    ),
    "a probe ends the reporter": (
        classic(running(), terminated(1)),
        {"events": [event("Killing", "Container status-reporter failed liveness probe")]},
        "reporter-failed",
        "was killed, because its liveness probe failed: exit code 1 (Error).",
        "Remove the probe",
    ),
    "the reporter cannot start": (
        pod(waiting(), reporter=waiting("CrashLoopBackOff")),
        {},
        "crash-loop",
        "The adapter does not start before it.",
        "kubectl logs validate-x7k2p -c status-reporter --previous",
    ),
    "missing rights": (
        pod(),
        {"logs": {POD: f'{{"message":"Started"}}\n{REFUSED}\n'}},
        "missing-rights",
        "The reporter lacks permissions",
        "jobs/status: get, patch",
    ),
    "the API server is out of reach": (
        pod(),
        {"logs": {POD: failed("unavailable", "timed out")}},
        "not-written",
        "The reporter's container 'status-reporter' of Pod validate-x7k2p could not write to the "
        "Job.",
        "NetworkPolicy",
    ),
    "a webhook refuses the write": (
        pod(),
        {"logs": {POD: failed("refused", "denied by policy")}},
        "not-written",
        "could not write to the Job.",
        "admission policy",
    ),
    "the reporter has another Job's name": (
        pod(),
        {"logs": {POD: logged("No such Job: check JOB_NAME and JOB_NAMESPACE", job="x")}},
        "not-written",
        "could not write to the Job.",
        "kubectl logs",
    ),
    "no link to the aggregator": (
        pod(),
        {
            "logs": {
                POD: logged(
                    "No link to the aggregator: invalid settings", problems=["CA_CERT: ..."]
                )
            }
        },
        "link",
        "has problems with the link to the aggregator. The condition on the Job does not depend",
        "AGGREGATOR_URL",
    ),
    "no scheduler": (
        pod(change=unseen),
        {},
        "no-scheduler",
        "Pod validate-x7k2p is pending: no scheduler has picked it up for 600 s.",
        "a scheduler named 'mine'",
    ),
    "another container goes on": (
        pod(terminated(0), change=beside(running())),
        {},
        "kept-alive",
        "The adapter of Pod validate-x7k2p has ended, but container 'istio-proxy' still runs",
        "native sidecar",
    ),
    "evicted by the API": (
        pod(change=evicted),
        {},
        "evicted",
        "Pod validate-x7k2p was disrupted (EvictionByEvictionAPI: Eviction API: evicting)",
        "drained",
    ),
    "evicted by the kubelet": (
        pod(change=failed_pod("Evicted", "The node was low on resource: memory.")),
        {},
        "evicted",
        "(Evicted: The node was low on resource: memory.)",
        "memory",
    ),
    "the Pod's deadline": (
        pod(change=failed_pod("DeadlineExceeded")),
        {},
        "deadline",
        "was terminated by its activeDeadlineSeconds",
        "make the work shorter",
    ),
    "being deleted": (
        pod(change=deleted("2030-01-01T12:10:20Z")),
        {},
        "deleted",
        "is being deleted",
        "",
    ),
    "a node that does not answer": (
        pod(change=deleted("2030-01-01T12:00:00Z")),
        {},
        "stuck-terminating",
        "should have been gone 600 s ago: its node node1",
        "kubectl get node",
    ),
    "volume": (
        pod(change=creating),
        {"events": [event("FailedMount", 'configmap "c" not found', count=9)]},
        "volume",
        'a volume cannot be mounted (FailedMount: configmap "c" not found (9 times))',
        "Create the ConfigMap",
    ),
    "network of the node": (
        pod(change=creating),
        {"events": [event("FailedCreatePodSandBox", "no CNI")]},
        "sandbox",
        "its node cannot create its sandbox (FailedCreatePodSandBox: no CNI)",
        "network plugin",
    ),
    "slow creation": (
        pod(change=creating),
        {},
        "creating",
        "has been creating its containers for 600 s",
        "kubectl describe pod",
    ),
}


@pytest.mark.parametrize("name", PODS)
def test_every_situation_of_a_pod(name):
    """Before any condition is there."""
    made, more, code, said, todo = PODS[name]
    found = {finding.code: finding for finding in explain(job(), made, **more)}

    assert code in found
    assert said in found[code].what
    assert todo in found[code].todo


def test_the_newest_log_line_that_tells_the_refusal_is_evidence():
    """So that the missing right can be read off; also where the reporter writes no JSON."""
    for line, said in (
        (REFUSED, "Request failed: ... is forbidden: User ..."),
        ("warning  403 Forbidden: jobs", "warning  403 Forbidden: jobs"),
    ):
        found = explain(job(), pod(), logs={POD: f"{line}\nnoise"})

        assert [(said,)] == [each.evidence for each in found if each.code == "missing-rights"]


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ([failed("unavailable", "e")], {"not-written"}),
        ([failed("unavailable", "e"), logged("Verdict", "info")], set()),
        ([logged("Condition written", "info"), failed("unavailable", "e")], {"not-written"}),
        ([REFUSED, logged("Condition written", "info")], set()),
        ([failed("forbidden", "403 Forbidden")], {"missing-rights"}),
        ([failed("unavailable", "e", request="pod")], set()),
        ([logged("Not delivered to the aggregator", text="x")], {"link"}),
        ([logged("Heartbeat not answered", "warning", plugin="e2e")], {"link"}),
        (
            [
                logged("Request to the aggregator failed, retrying"),
                logged("Delivered to the aggregator", "info"),
            ],
            set(),
        ),
        ([logged("Linked to an aggregator", "info", plugin="e2e")], set()),
        (["no JSON"], set()),
    ],
)
def test_what_the_log_of_a_running_reporter_tells(lines, codes):
    """Its newest word counts: what worked later is no trouble any more."""
    made = job(rows.running(Running(), None), final=False)
    found = {each.code for each in explain(made, pod(), logs={POD: "\n".join(lines)})}

    assert codes == found & {"not-written", "missing-rights", "link"}


@pytest.mark.parametrize(
    ("state", "told"),
    [(running(), True), (terminated(0), True), (terminated(1), False)],
    ids=["it runs", "it ended in the native form", "its end is told with its log"],
)
def test_a_job_that_the_reporter_never_saw(state, told):
    """Native, it idles and ends well; classic, its exit code is told with the same words."""
    line = logged("No such Job: check JOB_NAME and JOB_NAMESPACE", job="nobody")
    found = explain(job(), pod(terminated(0), reporter=state), logs={POD: line})
    codes = {each.code for each in found}

    assert told == ("not-written" in codes)
    assert told == ("reporter-failed" not in codes)


def test_the_last_word_of_a_reporter_needs_no_rights_any_more():
    """With a link its log is read after the verdict, too; old refusals are no news then."""
    made = job(rows.timeout(300))
    logs = {POD: "\n".join([REFUSED, logged("Not delivered to the aggregator", text="late")])}
    found = {each.code: each for each in explain(made, pod(terminated(1)), logs=logs)}

    assert "missing-rights" not in found
    assert ("Not delivered to the aggregator: late",) == found["link"].evidence


@pytest.mark.parametrize(
    ("made", "kept"),
    [
        (pod(terminated(0), change=beside(running())), True),
        (pod(terminated(3), change=beside(running())), True),
        (pod(running(), change=beside(running())), False),
        (pod(terminated(0), change=beside(terminated(0))), False),
        (pod(terminated(0)), False),
        (classic(terminated(0), running()), False),
    ],
    ids=["success", "failure", "at work", "both ended", "alone", "only the reporter"],
)
def test_what_keeps_a_job_alive(made, kept):
    """The adapter is done; neither the reporter nor anything else of ours is to blame."""
    assert kept == ("kept-alive" in {each.code for each in explain(job(), made)})


@pytest.mark.parametrize(("finished", "kept"), [("12:05:00", True), ("12:00:31", False)])
def test_what_kept_a_job_alive_until_the_deadline(finished, kept):
    """The adapter had ended long before it, and its verdict may well be good."""

    def change(made):
        beside(terminated(143, finished_at=f"2030-01-01T{finished}Z"))(made)
        failed_pod("DeadlineExceeded")(made)

    found = {
        each.code: each
        for each in explain(job(rows.result(GOOD)), pod(terminated(0), change=change))
    }

    assert kept == ("kept-alive" in found)
    if kept:
        assert "container 'istio-proxy' ran until the deadline" in found["kept-alive"].what


def test_a_restart_is_no_end():
    """Under OnFailure the adapter runs again."""
    for code, kept in ((0, True), (1, False)):
        made = pod(terminated(code), change=beside(running()))
        made["spec"]["restartPolicy"] = "OnFailure"

        assert kept == ("kept-alive" in {each.code for each in explain(job(), made)})


@pytest.mark.parametrize("age", [5, 20])
def test_a_pod_that_is_seconds_old_has_a_scheduler(age):
    """It may not have come to it yet."""

    def change(made):
        unseen(made)
        made["metadata"]["creationTimestamp"] = f"2030-01-01T12:09:{60 - age:02}Z"

    codes = {each.code for each in explain(job(), pod(change=change))}

    assert (age > 10) == ("no-scheduler" in codes)
    assert (age < 10) == ("unschedulable" in codes)


@pytest.mark.parametrize(
    ("report", "state", "code"),
    [
        (
            rows.trouble("W1", "ErrImagePull: not found"),
            waiting("ImagePullBackOff"),
            "image-trouble",
        ),
        (
            rows.trouble("W2", "CreateContainerConfigError: no key"),
            waiting("CreateContainerConfigError", "no key"),
            "config-trouble",
        ),
        (
            rows.trouble("W3", "StartError: no such file"),
            terminated(128, "StartError", message="no such file"),
            "start-trouble",
        ),
    ],
)
def test_trouble_that_the_verdict_names_is_not_told_twice(report, state, code):
    """Its cause, which only an event has, stands below the verdict."""
    evidence = {"adapter": {"container": "adapter", "restarts": 0, "state": "waiting"}}
    events = [event("Failed", 'Failed to pull image "x": no such manifest')]
    made = job(report, evidence=evidence, final=False)
    first, *rest = explain(made, pod(state, phase="Pending"), events=events)

    assert code not in {each.code for each in rest}
    cause = 'Failed: Failed to pull image "x": no such manifest'
    assert (code == "image-trouble") == (cause in first.evidence)
    # Another Pod's, or another container's, is news.
    older = job(report, evidence=evidence, final=False, pod="validate-old")
    assert code in {each.code for each in explain(older, pod(state, phase="Pending"))}
    other = job(report, evidence={}, final=False)
    assert code in {each.code for each in explain(other, pod(state, phase="Pending"))}


TAIL = """\
atus":"Unknown","reason":"AdapterRunning","level":"error","message":"cut off"}
{"level":"info","message":"Adapter state"}
{"level":"error","message":"Invalid setting","problem":"A=1"}
{"level":"error","message":"Invalid setting","problem":"A=1"}
{"level":"error","message":"No such Job","job":"nobody","hint":"check JOB_NAME"}
{"level":"error"}
[]
"""


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (TAIL, ("Invalid setting: A=1", "No such Job: nobody (check JOB_NAME)")),
        ("first\nTraceback: last\n", ("Traceback: last",)),
        ('{"level":"info","message":"Adapter state"}', ()),
    ],
)
def test_what_a_reporter_said_before_it_ended_is_told_in_words(tail, said):
    """The kubelet keeps 2 KiB of its log, most of which nobody wants to read."""
    for state, code in (
        (classic(running(), terminated(1, message=tail)), "reporter-failed"),
        (looping(terminated(1, message=tail)), "crash-loop"),
    ):
        (found,) = [each for each in explain(job(), state) if each.code == code]

        assert "exit code 1 (Error)" in found.what
        assert "Adapter state" not in found.what
        assert said == found.evidence


@pytest.mark.parametrize("pod_of_verdict", [POD, "validate-old"])
@pytest.mark.parametrize("final", [True, False])
def test_a_reporter_that_ends_after_its_word(final, pod_of_verdict):
    """In the classic form exit code 1 goes with most final verdicts: nothing is wrong with it."""
    made = job(rows.timeout(300), final=final, pod=pod_of_verdict)
    codes = [each.code for each in explain(made, classic(running(), terminated(1)))]

    assert (not final or pod_of_verdict != POD) == ("reporter-failed" in codes)


def test_a_reporter_with_bad_settings_after_its_word():
    """Exit code 2 is never a verdict's."""
    made = job(rows.timeout(300))

    assert "reporter-failed" in [
        each.code for each in explain(made, classic(running(), terminated(2)))
    ]


@pytest.mark.parametrize(
    "change",
    [deleted("2030-01-01T12:10:20Z"), failed_pod("DeadlineExceeded"), evicted],
    ids=["deleted", "deadline", "evicted"],
)
def test_an_adapter_that_was_killed_with_its_pod(change):
    """137 is what the end of the grace period leaves, too: memory is not suspected."""
    (found,) = [
        each
        for each in explain(job(), pod(terminated(137), change=change))
        if each.code == "exited"
    ]

    assert "ended: exit code 137 (Error)." in found.what
    assert "memory" not in found.what


def lost(made):
    """How the kubelet shows a container that did not run when it ended the Pod."""
    failed_pod("DeadlineExceeded")(made)
    made["status"]["containerStatuses"][0]["state"] = terminated(137, "ContainerStatusUnknown")


UNPULLED = rows.after_deadline(rows.trouble("W1", "container 'adapter': ErrImagePull"), "Pod", 30)


@pytest.mark.parametrize(
    ("report", "final", "pod_of_verdict", "expected"),
    [
        pytest.param(UNPULLED, True, POD, ["info deadline", "info not-running"], id="cause"),
        pytest.param(
            UNPULLED, False, POD, ["problem deadline", "problem lost"], id="may still change"
        ),
        pytest.param(
            UNPULLED, True, "validate-old", ["problem deadline", "problem lost"], id="other Pod"
        ),
        pytest.param(
            rows.deadline("Pod", 30), True, POD, ["problem deadline", "problem lost"], id="deadline"
        ),
        pytest.param(
            rows.exited(Terminated(1), result_required=True),
            True,
            POD,
            ["info deadline", "info not-running"],
            id="failed runs",
        ),
    ],
)
def test_a_longer_deadline_is_no_advice_where_the_verdict_names_the_cause(
    report, final, pod_of_verdict, expected
):
    """Nor was a container lost that did not run."""
    said = explain(job(report, final=final, pod=pod_of_verdict), pod(change=lost))
    codes = {"deadline", "lost", "not-running"}

    assert expected == [f"{each.weight} {each.code}" for each in said if each.code in codes]
    longer = [each.todo for each in said if "make the work shorter" in each.todo]
    assert bool(longer) == ("problem deadline" in expected)


def still_waiting(made):
    """How it may also be shown: the kubelet ended the Pod before it looked at the container."""
    failed_pod("DeadlineExceeded")(made)
    made["status"]["containerStatuses"][0]["state"] = {
        "waiting": {"reason": "CreateContainerConfigError", "message": "no key"}
    }


def test_a_container_that_waited_when_its_pod_was_ended_is_told_like_one_that_is_unknown():
    unpulled = job(UNPULLED, final=True, pod=POD)

    either, other = (explain(unpulled, pod(change=change)) for change in (lost, still_waiting))

    assert [each.what for each in either] == [each.what for each in other]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param([], "disruption-announced", id="announced"),
        pytest.param([deleted("2030-01-01T12:10:20Z")], "evicted", id="deleted"),
        pytest.param([failed_pod("Evicted")], "evicted", id="evicted by the kubelet"),
        pytest.param([failed_pod("")], "disruption-announced", id="ended by itself before"),
    ],
)
def test_a_disruption_that_was_only_announced_took_nothing_away(changes, code):
    """The adapter may well end first."""

    def change(made):
        for each in (disrupted, *changes):
            each(made)

    codes = {"disruption-announced", "evicted"}
    said = explain(job(), pod(running(), change=change))

    assert [code] == [each.code for each in said if each.code in codes]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ('Failed to pull image "x": dial tcp: refused', ()),
        ("Error: ImagePullBackOff", ()),
        ('Failed to pull image "x": no such manifest', ("no such manifest",)),
    ],
)
def test_an_event_tells_of_an_image_only_what_the_container_does_not(message, said):
    """The kubelet writes an event for every try, and two for the same cause."""
    state = waiting("ImagePullBackOff", 'Back-off pulling image "x": dial tcp: refused')
    events = [event("Failed", message)]
    (found,) = [
        each
        for each in explain(job(), pod(state, phase="Pending"), events=events)
        if each.code == "image-trouble"
    ]

    assert len(said) == len(found.evidence)
    assert all(words in line for words, line in zip(said, found.evidence, strict=True))


def test_an_adapter_that_slipped_past_a_failing_reporter():
    """The kubelet starts it when it sees the reporter run, be it for a moment."""
    for state, held in ((waiting(), True), (running(), False), (terminated(0), False)):
        for reporter in (waiting("CrashLoopBackOff"), terminated(2)):
            said = explain(job(), pod(state, reporter=reporter))
            (found,) = [each for each in said if each.code in {"crash-loop", "reporter-failed"}]

            assert held == found.what.endswith("The adapter does not start before it.")


def test_a_native_reporter_that_waits_for_its_next_try():
    """The kubelet shows it as ended, not as waiting, with the number of its restarts."""
    made = pod(waiting(), reporter=terminated(2))
    made["status"]["initContainerStatuses"][0]["restartCount"] = 3
    (found,) = [each for each in explain(job(), made) if each.code == "reporter-failed"]

    assert (
        "exited: exit code 2 (Error), restarted 3 times. No verdict will come until the setting "
        "is fixed. The adapter" in found.what
    )


def test_the_newest_of_pods_of_one_second():
    """By UID, as reporters take turns; the shell reads the same Pod's events and log."""
    first, second = pod(), pod()
    first["metadata"] |= {"name": "validate-a", "uid": "9"}
    second["metadata"] |= {"name": "validate-b", "uid": "1"}

    assert first is newest_pod([first, second])
    assert first is newest_pod([second, first])
    assert newest_pod([]) is None
    said = [each.what for each in explain(job(rows.timeout(300)), second, first)]
    assert any("now there is Pod validate-a" in what for what in said)


def without_reporter(made):
    made = copy.deepcopy(made)
    made["spec"]["template"]["spec"].pop("initContainers")
    return made


def bare(made):
    made["spec"].pop("initContainers")
    made["status"].pop("initContainerStatuses")


JOBS = {
    "no reporter at all": (
        without_reporter(job()),
        [pod(change=bare)],
        "no-reporter",
        "No status reporter runs in this Job's Pods",
        "kustomize component",
    ),
    "wait time beyond the Job's deadline": (
        setting(job(spec={"activeDeadlineSeconds": 60}), "MAX_WAIT_TIME_SECONDS", "120"),
        [pod()],
        "wait-beyond-deadline",
        "may wait 2m0s, but the Job's activeDeadlineSeconds ends all work after 1m0s",
        "at most 50, or the deadline to at least 130",
    ),
    "default wait time beyond the deadline": (
        job(spec={"activeDeadlineSeconds": 300}),
        [pod()],
        "wait-beyond-deadline",
        "may wait 5m0s, but the Job's activeDeadlineSeconds ends all work after 5m0s",
        "at most 290, or the deadline to at least 310",
    ),
    "poll interval beyond the wait time": (
        setting(job(), "POLL_INTERVAL_SECONDS", "300"),
        [pod()],
        "settings",
        "POLL_INTERVAL_SECONDS (300) has to be less than MAX_WAIT_TIME_SECONDS (300)",
        "shorter interval",
    ),
    "another Job's name": (
        setting(job(), "JOB_NAME", "other"),
        [pod()],
        "settings",
        "has JOB_NAME=other, but this Job's name is validate",
        "Set JOB_NAME to validate",
    ),
    "no such container": (
        setting(job(), "ADAPTER_CONTAINER_NAME", "main"),
        [pod()],
        "settings",
        "finds no adapter: 'main' is not a container of the Pod; containers: adapter",
        "ADAPTER_CONTAINER_NAME",
    ),
    "several Pods at once": (
        job(spec={"parallelism": 3}),
        [pod()],
        "parallel",
        "only the verdict of the newest one counts",
        "one Job for each",
    ),
    "deadline that leaves no time to wait": (
        job(spec={"activeDeadlineSeconds": 6}),
        [pod()],
        "wait-beyond-deadline",
        "ends all work after 6s",
        "Set the deadline to at least 310.",
    ),
    "suspended": (
        job(spec={"suspend": True}),
        [],
        "suspended",
        "The Job is suspended",
        'kubectl patch job validate -p \'{"spec":{"suspend":false}}\'',
    ),
    "no Pod can be made": (
        job(),
        [],
        "no-pod",
        "cannot create its Pod (FailedCreate: exceeded quota)",
        "quota",
    ),
    "no Pod yet": (job(), [], "no-pod", "The Job has no Pod.", "controller manager"),
    "Pods are gone": (
        job(rows.result(GOOD), conditions=[COMPLETE]),
        [],
        "pods-gone",
        "Its Pods are gone, and their logs with them",
        "",
    ),
    "back-off limit": (
        job(rows.timeout(300), conditions=[FAILED]),
        [],
        "job-failed",
        "(BackoffLimitExceeded): its Pods failed more often",
        "",
    ),
    "nothing written": (job(), [pod()], "no-condition", "has written nothing", "kubectl logs"),
    "the reporter died with its Pod": (
        job(rows.running(Running(), None), final=False, conditions=[FAILED]),
        [],
        "reporter-gone",
        "the reporter was killed together with its Pod",
        "run the Job again",
    ),
    "a verdict of an earlier Pod": (
        job(rows.timeout(300), pod="validate-old"),
        [pod()],
        "earlier-attempt",
        "of an earlier attempt (Pod validate-old); now there is Pod validate-x7k2p",
        "",
    ),
    "Pods refused to the reporter": (
        job(rows.timeout(300, refused=True), evidence={"pod": {"look": "forbidden"}}),
        [pod()],
        "missing-rights",
        "is not allowed to read its Pod",
        "pods: get, watch",
    ),
}


@pytest.mark.parametrize("name", JOBS)
def test_every_situation_of_a_job(name):
    """What is said beside the verdict, or instead of one."""
    made, pods, code, said, todo = JOBS[name]
    quota = [event("FailedCreate", "exceeded quota", name="validate")]
    events = quota if name == "no Pod can be made" else []
    found = [each for each in explain(made, *pods, events=events) if each.code == code]

    assert found, code
    assert any(said in each.what and todo in each.todo for each in found)


def test_a_good_verdict_alone_is_all_that_is_said():
    """No advice where nothing is wrong."""
    done = pod(terminated(0), phase="Succeeded")
    found = explain(job(rows.result(GOOD), conditions=[COMPLETE]), done)

    assert ["verdict", "job-complete"] == [each.code for each in found]
    assert {Weight.INFO} == {each.weight for each in found}


def test_a_success_that_was_contradicted():
    """It is a warning, and tells how the adapter ended."""
    after = {"exitCode": 137, "reason": "OOMKilled"}
    first, *_ = explain(job(rows.result(GOOD), after=after), pod())

    assert Weight.WARNING == first.weight
    assert "after that the adapter ended: exit code 137 (OOMKilled)" in first.evidence


def test_a_condition_of_an_older_reporter():
    """Without an annotation it counts by its type; whether it is final nobody knows."""
    made = job()
    made["status"]["conditions"] = [
        {"type": "Available", "status": "False", "reason": "AdapterTimeout", "message": "m"}
    ]
    (verdict,) = standing(made)
    first, *_ = explain(made, pod())

    assert (None, "") == (verdict.final, verdict.row)
    assert "Available=False AdapterTimeout: m" == first.what
    assert "MAX_WAIT_TIME_SECONDS" in first.todo


def test_a_foreign_condition_is_not_ours():
    """Neither the Job controller's nor somebody else's."""
    made = without_reporter(job(conditions=[COMPLETE, {"type": "Mine", "status": "True"}]))

    assert [] == standing(made)


def test_a_reporter_that_was_put_in_later():
    """An injector changes Pods, not the template: what runs counts."""
    found = explain(without_reporter(job()), pod())

    assert "no-reporter" not in {each.code for each in found}


def test_a_verdict_whose_reporter_is_nowhere_to_be_seen():
    """It was there when it wrote: nothing is said of the template."""
    made = without_reporter(job(rows.result(GOOD), conditions=[COMPLETE]))

    assert ["verdict", "job-complete"] == [
        each.code for each in explain(made, pod(terminated(0), change=bare, phase="Succeeded"))
    ]


def test_a_job_that_is_being_deleted():
    """Said, beside its verdict."""
    made = job(rows.result(GOOD))
    made["metadata"]["deletionTimestamp"] = "2030-01-01T12:10:00Z"

    assert "deleting" in [each.code for each in explain(made, pod())]


def test_a_job_that_is_being_deleted_has_no_pod_to_wait_for():
    """Its Pod goes before it: nobody has to look for a controller manager."""
    made = job(rows.result(GOOD))
    made["metadata"]["deletionTimestamp"] = "2030-01-01T12:10:00Z"

    assert ["verdict", "deleting"] == [each.code for each in explain(made)]


def test_a_pod_that_was_evicted_and_is_being_deleted():
    """The cause is told, not twice that it goes."""

    def change(made):
        disrupted(made)
        deleted("2030-01-01T12:10:20Z")(made)

    assert ["evicted"] == [
        each.code
        for each in explain(job(), pod(change=change))
        if each.code in {"evicted", "deleted"}
    ]


@pytest.mark.parametrize("reason", ["AdapterExitedWithError", "AdapterMissingResults", "Odd"])
def test_the_row_of_a_condition_without_an_annotation(reason):
    """By its reason; another one is the adapter's own word."""
    made = job()
    made["status"]["conditions"] = [
        {"type": "Available", "status": "False", "reason": reason, "message": "m"}
    ]
    first, *_ = explain(made, pod())
    todo = {"AdapterExitedWithError": "log", "AdapterMissingResults": "RESULT_REQUIRED"}

    assert todo.get(reason, "reported this itself") in first.todo


def test_what_could_not_be_read_is_said():
    """And nothing is concluded from its absence."""
    found = explain(job(), unread={"pods": "forbidden"})

    assert {"unread": "The pods could not be read: forbidden"} == {
        each.code: each.what for each in found
    }


def test_progress_of_a_second_verdict():
    """Two reporters with two types: both are told."""
    found = explain(job(rows.result(GOOD), rows.timeout(12)), pod())

    assert ["Available=True", "Other1=False"] == [
        each.what.split()[0] for each in found if each.code == "verdict"
    ]


@pytest.mark.parametrize(
    "made", [{}, {"metadata": None, "status": []}, {"metadata": {"annotations": {"a": 1}}}]
)
def test_rubbish_is_no_reason_to_fail(made):
    """Whatever a server answers."""
    assert explain(made, {}, {"status": {"containerStatuses": [{"state": {"waiting": 5}}]}})


def test_an_annotation_that_is_not_ours():
    """Not JSON, or of another shape: the condition counts as one without."""
    made = job()
    made["metadata"]["annotations"] = {
        "status-reporter.io/Available": "{",
        "status-reporter.io/run-status": json.dumps({"status": "running"}),
    }

    assert [] == standing(made)
