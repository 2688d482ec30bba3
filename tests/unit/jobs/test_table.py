"""Each finding that `explain` has, in a situation in which it is said."""

import re

import pytest

from reporter.jobs import finding
from reporter.run.names import RUN_LABEL
from reporter.verdict import rows
from reporter.verdict.facts import Running
from tests.fakekube import running, terminated, waiting
from tests.unit.jobs.world import (
    COMPLETE,
    FAILED,
    GOOD,
    POD,
    REFUSED,
    UNPULLED,
    bare,
    beside,
    classic,
    creating,
    deleted,
    disrupted,
    event,
    evicted,
    explain,
    failed,
    failed_pod,
    job,
    logged,
    looping,
    lost,
    pod,
    scheduled,
    setting,
    unseen,
    without_reporter,
)

DENIED = "An admission policy or webhook denies the change"
LATE = rows.timeout(300)
RUNNING = rows.running(Running(), None)
DELETING = job(rows.result(GOOD))
DELETING["metadata"]["deletionTimestamp"] = "2030-01-01T12:10:00Z"
OF_RUN = without_reporter(job())
OF_RUN["metadata"]["labels"] = {RUN_LABEL: "first"}
PULL = waiting("ImagePullBackOff", 'Back-off pulling image "x"')
UNREACHED = logged("No link to the aggregator: invalid settings", problems=["CA_CERT: ..."])
WHO = f"The reporter's container 'status-reporter' of Pod {POD} "
HELD = ". The adapter does not start before it."
PROBED = event("Killing", "Container status-reporter failed liveness probe")


def of(made, *pods, **more):
    """What is said of this Job."""
    return explain(made, *pods, **more)


def at(shown, **more):
    """What is said of this Pod before any condition is there."""
    return explain(job(), shown, **more)


def hears(failure):
    """What is said of a reporter whose last write has failed so."""
    return at(pod(), log=failed(failure, "no"))


def kept(change):
    return at(pod(terminated(0), change=change))


def until_the_deadline(made):
    beside(terminated(143, finished_at="2030-01-01T12:05:00Z"))(made)
    failed_pod("DeadlineExceeded")(made)


SITUATIONS = [
    ("no-reporter", of(without_reporter(job()), pod(change=bare))),
    (
        "wait-beyond-deadline",
        of(setting(job(spec={"activeDeadlineSeconds": 60}), "MAX_WAIT_TIME_SECONDS", "120"), pod()),
        "may wait 2m0s, but the Job's activeDeadlineSeconds ends all work after 1m0s",
        "at most 50, or the deadline to at least 130",
    ),
    (
        "wait-beyond-deadline",
        of(job(spec={"activeDeadlineSeconds": 300}), pod()),
        "may wait 5m0s, but the Job's activeDeadlineSeconds ends all work after 5m0s",
        "at most 290, or the deadline to at least 310",
    ),
    (
        "wait-beyond-deadline",
        of(job(spec={"activeDeadlineSeconds": 6}), pod()),
        "Set the deadline to at least 310.",
    ),
    ("settings/poll", of(setting(job(), "POLL_INTERVAL_SECONDS", "300"), pod()), "_SECONDS (300)"),
    (
        "settings/job",
        of(setting(job(), "JOB_NAME", "other"), pod()),
        "has JOB_NAME=other, but this Job's name is validate",
        "Set JOB_NAME to validate",
    ),
    (
        "settings/adapter",
        of(setting(job(), "ADAPTER_CONTAINER_NAME", "main"), pod()),
        "'main' is not a container of the Pod; containers: adapter",
    ),
    ("parallel", of(job(spec={"parallelism": 3}), pod())),
    (
        "suspended",
        of(job(spec={"suspend": True})),
        'kubectl patch job validate -n default -p \'{"spec":{"suspend":false}}\'',
    ),
    (
        "no-pod/refused",
        of(job(), events=[event("FailedCreate", "exceeded quota", name="validate")]),
        "(FailedCreate: exceeded quota)",
    ),
    ("no-pod", of(job())),
    ("pods-gone", of(job(rows.result(GOOD), conditions=[COMPLETE]))),
    ("job-complete", of(job(rows.result(GOOD), conditions=[COMPLETE]))),
    (
        "job-failed",
        of(job(LATE, conditions=[FAILED])),
        "(BackoffLimitExceeded): its Pods failed more often",
    ),
    ("no-condition", of(job(), pod()), f"kubectl logs {POD} -n default -c status-reporter"),
    ("reporter-gone", of(job(RUNNING, final=False, conditions=[FAILED]))),
    (
        "earlier-attempt",
        of(job(LATE, pod="validate-old"), pod()),
        f"to an earlier attempt (Pod validate-old); there is now Pod {POD}",
    ),
    ("missing-rights/pod", of(job(LATE, evidence={"pod": {"look": "forbidden"}}), pod())),
    ("repeated", of(job(LATE, spec={"backoffLimit": 1}), pod())),
    ("of-run", of(OF_RUN, pod(change=bare)), "status-ctl status first -n default"),
    ("deleting", of(DELETING, pod())),
    ("unread", of(job(), unread={"pods": "forbidden"}), "The pods could not be read: forbidden"),
    ("evicted", at(pod(change=evicted)), "(EvictionByEvictionAPI: Eviction API: evicting)"),
    (
        "evicted",
        at(pod(change=failed_pod("Evicted", "The node was low on resource: memory."))),
        "(Evicted: The node was low on resource: memory.)",
    ),
    ("disruption-announced", at(pod(change=disrupted)), "Eviction API: evicting"),
    ("deadline", at(pod(change=failed_pod("DeadlineExceeded")))),
    ("deadline/named", of(job(UNPULLED), pod(change=lost))),
    (
        "stuck-terminating",
        at(pod(change=deleted("2030-01-01T12:00:00Z"))),
        "gone 600 s ago: its node node1",
    ),
    ("deleted", at(pod(change=deleted("2030-01-01T12:10:20Z")))),
    ("gated", at(pod(change=scheduled("SchedulingGated"))), "(example.com/wait)"),
    ("no-scheduler", at(pod(change=unseen)), "for 600 s", "a scheduler named 'mine'"),
    (
        "unschedulable",
        at(pod(change=scheduled("Unschedulable", "0/3 nodes are available: 3 taints."))),
        "it cannot be scheduled (0/3 nodes are available: 3 taints.).",
    ),
    (
        "unschedulable",
        at(pod(change=scheduled("")), events=[event("FailedScheduling", "no luck", count=4)]),
        "it cannot be scheduled (FailedScheduling: no luck (4 times)).",
    ),
    (
        "volume",
        at(pod(change=creating), events=[event("FailedMount", 'configmap "c" not found', count=9)]),
        '(FailedMount: configmap "c" not found (9 times))',
    ),
    (
        "sandbox",
        at(pod(change=creating), events=[event("FailedCreatePodSandBox", "no CNI")]),
        "(FailedCreatePodSandBox: no CNI)",
    ),
    ("creating", at(pod(change=creating)), "for 600 s", f"kubectl describe pod {POD} -n default"),
    ("kept-alive", kept(beside(running())), f"of Pod {POD}", "'istio-proxy' still runs"),
    ("kept-alive", kept(until_the_deadline), "'istio-proxy' ran until the deadline"),
    (
        "image-trouble",
        at(pod(PULL, phase="Pending")),
        f"Container 'adapter' of Pod {POD} cannot pull its image (ImagePullBackOff: Back-off",
    ),
    (
        "image-trouble",
        at(pod(waiting("InvalidImageName", "couldn't parse"), phase="Pending")),
        "(InvalidImageName: couldn't parse)",
    ),
    (
        "image-trouble",
        at(pod(waiting(), reporter=waiting("ErrImagePull", "not found"), phase="Pending")),
        f"{WHO}cannot pull its image (ErrImagePull: not found){HELD}",
    ),
    (
        "config-trouble",
        at(pod(waiting("CreateContainerConfigError", "couldn't find key a in ConfigMap b"))),
        "couldn't find key a in ConfigMap b",
    ),
    ("start-trouble", at(pod(waiting("RunContainerError", "no such file"))), "no such file"),
    (
        "start-trouble/ended",
        at(pod(terminated(128, "StartError", message="no such file"), phase="Failed")),
        "could not be started (StartError: no such file)",
    ),
    (
        "crash-loop",
        at(pod(waiting("CrashLoopBackOff"), last_state=terminated(3), restarts=5)),
        "keeps failing: exit code 3 (Error), restarted 5 times.",
        f"kubectl logs {POD} -n default -c adapter --previous",
    ),
    (
        "crash-loop/reporter",
        at(looping(terminated(1))),
        f"{WHO}keeps failing: exit code 1 (Error), restarted 0 times{HELD}",
        f"its log: kubectl logs {POD} -n default -c status-reporter --previous",
    ),
    ("crash-loop/settings", at(looping(terminated(2))), "setting is fixed. The adapter does not"),
    ("oom-killed", at(pod(terminated(137, "OOMKilled"), phase="Failed")), "exit code 137)"),
    (
        "exited",
        at(pod(terminated(137), phase="Failed")),
        "ended: exit code 137 (Error). It may have run out of memory.",
    ),
    ("lost", at(pod(terminated(137, "ContainerStatusUnknown"), phase="Failed"))),
    ("not-running", of(job(UNPULLED), pod(change=lost))),
    (
        "reporter-failed",
        at(classic(running(), terminated(1))),
        f"{WHO}exited: exit code 1 (Error).",
        f"kubectl logs {POD} -n default -c status-reporter",
    ),
    ("reporter-failed/settings", at(classic(running(), terminated(2))), "exited: exit code 2"),
    (
        "reporter-failed/probe",
        at(classic(running(), terminated(1)), events=[PROBED]),
        "its liveness probe failed: exit code 1 (Error).",
    ),
    ("missing-rights", at(pod(), log=f'{{"message":"Started"}}\n{REFUSED}\n')),
    ("not-written", at(pod(), log=logged("No such Job: check JOB_NAME and JOB_NAMESPACE"))),
    ("not-written/not_found", hears("not_found"), "Set JOB_NAME and JOB_NAMESPACE"),
    ("not-written/refused", hears("refused"), DENIED),
    ("not-written/denied", hears("denied"), DENIED),
    ("not-written/unauthorized", hears("unauthorized"), "token is not accepted"),
    ("not-written/unavailable", hears("unavailable"), "NetworkPolicy"),
    ("link", at(pod(), log=UNREACHED)),
]
OF_CRON_JOBS = {"cron-suspended", "not-due", "no-runs"} | {
    name for name in finding.rows() if name.partition("/")[0] == "run"
}
"""Those of tests/unit/jobs/test_cron_job.py."""


@pytest.mark.parametrize(("name", "said", "words"), [(n, s, w) for n, s, *w in SITUATIONS])
def test_what_is_said(name, said, words):
    """Its text and its advice have the values of the situation."""
    found = [f"{each.what} {each.todo}" for each in said if each.name == name]

    assert found
    assert all(any(each in line for line in found) for each in words)


def test_the_table_has_nothing_else():
    """A text that nobody can get would stay wrong for ever."""
    assert set(finding.rows()) == OF_CRON_JOBS | {name for name, *_ in SITUATIONS}


def test_every_command_names_the_namespace():
    """Whoever copies it may be in another one; nodes are in none."""
    texts = [row.get("todo", "") for _, row in finding.rows().values()]
    texts += finding.advice().values()
    commands = [
        each for text in texts for each in re.findall("(?:kubectl|status-ctl) [^;)`]+", text)
    ]
    elsewhere = ("kubectl get node ", "kubectl describe node", "status-ctl validate FILE")

    assert commands
    assert [] == [
        each for each in commands if " -n " not in each and not each.startswith(elsewhere)
    ]
