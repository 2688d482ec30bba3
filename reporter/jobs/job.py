"""The whole diagnosis of a Job: what is on it, what became of it, what is in its way."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reporter.common.objects import items, moment, section, text
from reporter.jobs.events import last_event
from reporter.jobs.finding import Finding, Object, Objects, info, problem, warning
from reporter.jobs.kept_running import kept_alive
from reporter.jobs.of_run import of_run
from reporter.jobs.pod import diagnose_pod
from reporter.jobs.repeats import repeats
from reporter.jobs.setting import find_setup, judge
from reporter.jobs.written_verdict import WrittenVerdict, tell, written_verdicts

_OVER = ("Complete", "Failed")
_REASONS = {
    "BackoffLimitExceeded": "its Pods failed more often than backoffLimit allows",
    "DeadlineExceeded": "it ran longer than its activeDeadlineSeconds",
    "PodFailurePolicy": "a rule of its podFailurePolicy ended it",
    "FailedIndexes": "some of its indexes failed",
    "MaxFailedIndexesExceeded": "more indexes failed than maxFailedIndexes allows",
}
_HIDDEN = frozenset({"W1", "W2", "W3", "O", "I", "X"})  # what a deadline would have hidden
_TROUBLES = {"W1": "image-trouble", "W2": "config-trouble", "W3": "start-trouble"}
_NOT_CREATED = frozenset({"FailedCreate", "FailedValidation"})


def standing(job: Object) -> list[WrittenVerdict]:
    """Return the verdicts on a Job, also one of an older reporter if a reporter is set up."""
    setup = find_setup(section(job, "spec", "template", "spec"))
    return written_verdicts(job, setup.condition if setup else "")


def findings(objects: Objects) -> list[Finding]:
    """Return what happened and what to do, beginning with the verdicts on the Job. Never raises."""
    job = objects.job
    setup = find_setup(section(job, "spec", "template", "spec"))
    newest = newest_pod(objects.pods)
    found = written_verdicts(job, setup.condition if setup else "")
    said: list[Finding] = []
    for verdict in found:
        said += [tell(verdict), *_doubts(verdict, objects, newest)]
    said += repeats(job, found)
    if newest is not None and setup is None:
        # Something may put it into Pods that the template does not show.
        setup = find_setup(section(newest, "spec"))
    run = list(of_run(job))
    said += run
    if setup is not None or not (found or run):
        said += judge(job, setup)
    said += _job(objects)
    if newest is not None:
        name = text(section(newest, "metadata"), "name")
        # An older reporter says neither of which Pod its word is nor whether it is the last.
        judged = any(
            each.final is not False and not each.running and each.pod in {"", name}
            for each in found
        )
        hidden = any(each.final and each.pod == name and each.row in _HIDDEN for each in found)
        log = objects.logs.get(name, "")
        said += diagnose_pod(
            newest, setup, objects.events, log, objects.now, judged=judged, hidden=hidden
        )
        if setup is not None:
            said += kept_alive(newest, setup)
        said = _once(said, found, name)
    else:
        said += _no_pod(objects)
    unexplained = not found and not _has_cause(said)
    if unexplained and newest is not None and setup is not None and setup.writes:
        said.append(_silent(newest, setup.name))
    said += [
        warning("unread", f"The {what} could not be read: {why}")
        for what, why in objects.unread.items()
    ]
    return said


def _once(said: list[Finding], found: list[WrittenVerdict], pod: str) -> list[Finding]:
    """Drop what the verdict on this Pod already says of a container, but keep the causes."""
    for verdict in found:
        code = _TROUBLES.get(verdict.row)
        adapter = text(section(verdict.evidence or {}, "adapter"), "container")
        repeated = [
            each
            for each in said
            if each.code == code
            and verdict.pod == pod
            and (each.about == adapter or repr(each.about) in verdict.message)
        ]
        causes = tuple(cause for each in repeated for cause in each.evidence)
        own = tell(verdict)
        said = [
            replace(each, evidence=each.evidence + causes) if each == own else each
            for each in said
            if each not in repeated
        ]
    return said


def _doubts(verdict: WrittenVerdict, objects: Objects, newest: Object | None) -> Iterator[Finding]:
    """Yield when a verdict is not about the present."""
    over = newest is None or text(section(newest, "status"), "phase") in {"Succeeded", "Failed"}
    if verdict.running and (over or ended(objects.job)) and "pods" not in objects.unread:
        yield problem(
            "reporter-gone",
            "It says that work is in progress, but nothing is running: the reporter was killed "
            "together with its Pod and could not write the outcome.",
            "Nothing more is known; run the Job again if you need its outcome. "
            "`status-ctl reap` makes the condition final.",
        )
    name = text(section(newest or {}, "metadata"), "name")
    if verdict.pod and name and verdict.pod != name:
        yield info(
            "earlier-attempt",
            f"This verdict belongs to an earlier attempt (Pod {verdict.pod}); "
            f"there is now Pod {name}.",
        )
    if text(section(verdict.evidence or {}, "pod"), "look") == "forbidden":
        yield problem(
            "missing-rights",
            "The reporter is not allowed to read its Pod, so only the result file counts.",
            "Bind the Role of deploy/base to the Pod's service account (pods: get, watch).",
        )


def _job(objects: Objects) -> Iterator[Finding]:
    job = objects.job
    if section(job, "spec").get("suspend") is True:
        name = text(section(job, "metadata"), "name")
        yield problem(
            "suspended",
            "The Job is suspended: it has no Pods until it is resumed.",
            f'kubectl patch job {name} -p \'{{"spec":{{"suspend":false}}}}\'',
        )
    if "deletionTimestamp" in section(job, "metadata"):
        yield info("deleting", "The Job is being deleted.")
    for condition in items(section(job, "status"), "conditions"):
        if text(condition, "status") != "True" or text(condition, "type") not in _OVER:
            continue
        if text(condition, "type") == "Complete":
            yield info("job-complete", "The Job itself is complete.")
            continue
        reason = text(condition, "reason")
        why = _REASONS.get(reason, text(condition, "message") or "without a reason")
        yield info("job-failed", f"The Job itself has failed ({reason}): {why}.")


def _no_pod(objects: Objects) -> Iterator[Finding]:
    job = objects.job
    leaving = "deletionTimestamp" in section(job, "metadata")
    if "pods" in objects.unread or leaving or section(job, "spec").get("suspend") is True:
        return
    if ended(job):
        yield info(
            "pods-gone",
            "Its Pods are gone, and their logs with them: the conditions above are all that is "
            "left.",
        )
    elif why := last_event(objects.events, _NOT_CREATED):
        yield problem(
            "no-pod",
            f"The Job cannot create its Pod ({why}).",
            "A quota, an admission policy or a missing service account prevents it: see the "
            "message.",
        )
    else:
        yield problem(
            "no-pod",
            "The Job has no Pod.",
            "If this lasts longer than a few seconds, check that the controller manager is "
            "running: kubectl describe job",
        )


def _silent(pod: Object, reporter: str) -> Finding:
    name = text(section(pod, "metadata"), "name")
    return problem(
        "no-condition",
        f"The reporter has written nothing on the Job yet (Pod {name}).",
        f"If this lasts, see what it is waiting for: kubectl logs {name} -c {reporter}",
    )


_CAUSES = frozenset(
    {"missing-rights", "unschedulable", "gated", "image-trouble", "config-trouble", "start-trouble"}
) | {
    "crash-loop",
    "reporter-failed",
    "volume",
    "sandbox",
    "creating",
    "settings",
    "evicted",
    "lost",
    "not-written",
    "no-scheduler",
}


def _has_cause(said: list[Finding]) -> bool:
    return any(finding.code in _CAUSES for finding in said)


def ended(job: Object) -> bool:
    """Return whether the Job itself is over: complete or failed."""
    return any(
        text(condition, "type") in _OVER and text(condition, "status") == "True"
        for condition in items(section(job, "status"), "conditions")
    )


def newest_pod(pods: Sequence[Object]) -> Object | None:
    """Return the Pod that counts: the newest; of the same second, the one with the greater UID."""
    return max(pods, key=_created, default=None)


def _created(pod: Object) -> tuple[float, str]:
    metadata = section(pod, "metadata")
    return moment(metadata, "creationTimestamp") or 0.0, text(metadata, "uid")
