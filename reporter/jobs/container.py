"""What is wrong with one container of a Pod: its status, its events, the reporter's log."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from reporter.common.objects import number, section, text
from reporter.jobs.events import last_event
from reporter.jobs.finding import Finding, Object, info, problem, warning
from reporter.jobs.reporter_log import complaints, link_trouble, not_written, refused, words
from reporter.jobs.setting import Setup
from reporter.verdict.facts import Form
from reporter.verdict.not_starting import CONFIG, IMAGE, START

_TODO: Final = {
    "image": "Check the image's name and tag, that the registry can be reached from the node, and "
    "imagePullSecrets.",
    "config": "Create the ConfigMap, Secret or key that is named, or fix the reference.",
    "start": "Check the container's command, working directory, mounts and hooks.",
}
_UNWRITTEN: Final = {
    "": "Its log says more: kubectl logs.",
    "not_found": "Set JOB_NAME and JOB_NAMESPACE to this Job's.",
    "refused": "An admission policy or webhook denies the change: see the message.",
    "denied": "An admission policy or webhook denies the change: see the message.",
    "unauthorized": "The Pod's token is not accepted: check that its service account still exists.",
    "unavailable": "Check that the Pod can reach the API server: a NetworkPolicy, a proxy or a "
    "service mesh may block its requests.",
}
_NOT_STARTED: Final = frozenset({"StartError", "ContainerCannotRun"})
_FROM_OUTSIDE: Final = _NOT_STARTED | {"OOMKilled", "ContainerStatusUnknown"}


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside a container's status: its Pod's name and events, the reporter's log.

    `judged` says that this Pod's reporter has written its final verdict, `hidden` that the verdict
    names a cause that a deadline would have hidden, `stopped` that the whole Pod was ended from
    outside, `over` that it has ended, `held` that no regular container has started yet.
    """

    setup: Setup | None
    pod: str
    events: Sequence[Object]
    log: str
    judged: bool
    hidden: bool
    stopped: bool
    over: bool
    held: bool


def diagnose_container(container: Object, around: Around) -> Iterator[Finding]:
    """Yield what is wrong with the container."""
    name = text(container, "name")
    setup, pod = around.setup, around.pod
    ours = setup is not None and name == setup.name
    who = f"The reporter's container {name!r}" if ours else f"Container {name!r}"
    tail = ""
    if ours and around.held and setup is not None and setup.form is Form.NATIVE:
        tail = " The adapter does not start before it."
    waiting, ended = (
        section(container, "state", "waiting"),
        section(container, "state", "terminated"),
    )
    reason, message = text(waiting, "reason"), text(waiting, "message")
    sorts = (("image", IMAGE), ("config", CONFIG), ("start", START))
    sort = next((word for word, known in sorts if reason in known), "")
    if sort and around.hidden and around.stopped and around.over:
        yield _not_running(who, pod)
    elif sort:
        said = f"{reason}: {message}" if message else reason
        hint = _pull(around.events, message) if sort == "image" else ""
        what = {"image": "cannot pull its image", "config": "is missing part of its configuration"}
        found = problem(
            f"{sort}-trouble",
            f"{who} of Pod {pod} {what.get(sort, 'cannot be started')} ({said}).{tail}",
            _TODO[sort],
            hint,
        )
        yield replace(found, about=name)
    elif reason == "CrashLoopBackOff":
        last = section(container, "lastState", "terminated")
        yield problem(
            "crash-loop",
            f"{who} of Pod {pod} keeps failing: {_ended(last, ours=ours)}, restarted "
            f"{number(container, 'restartCount') or 0} times."
            f"{_no_verdict(last) if ours else ''}{tail}",
            _todo(last, f"kubectl logs {pod} -c {name} --previous", ours=ours),
            *(complaints(text(last, "message") or around.log) if ours else ()),
        )
    elif ended and ours and text(ended, "reason") not in _FROM_OUTSIDE:
        yield from _own_end(container, who, around, tail)
    elif ended:
        yield from _terminated(ended, who, name, around)
    if ours and not around.judged:
        yield from _unwritten(
            around.log,
            who,
            around.pod,
            failed=bool(waiting) or number(ended, "exitCode") not in {None, 0},
        )
    if ours and (trouble := link_trouble(around.log)):
        yield warning(
            "link",
            f"{who} of Pod {pod} has problems with the link to the aggregator. The condition on "
            "the Job does not depend on it.",
            "Check AGGREGATOR_URL, the certificates and that the Pod can reach the aggregator "
            "(`status-reporter --check` checks the settings).",
            trouble,
        )


def _unwritten(log: str, who: str, pod: str, *, failed: bool) -> Iterator[Finding]:
    """Yield why the reporter's verdict is not on the Job, as far as its log says."""
    if line := refused(log):
        yield problem(
            "missing-rights",
            "The reporter lacks permissions: the API server denies its requests.",
            "Bind the Role of deploy/base to the Pod's service account (jobs/status: get, patch; "
            "pods: get, watch).",
            line,
        )
    elif not failed and (found := not_written(log)):
        yield problem(
            "not-written",
            f"{who} of Pod {pod} could not write to the Job.",
            _UNWRITTEN.get(text(found, "failure"), _UNWRITTEN[""]),
            words(found),
        )


def _pull(events: Sequence[Object], known: str) -> str:
    """Return the event with the cause, where the status only says that the kubelet waits."""
    causes = [
        event
        for event in events
        if (parts := text(event, "message").partition(": "))[0].startswith("Failed to pull")
        and parts[2] not in known
    ]
    return last_event(causes, frozenset({"Failed"}))


def _own_end(container: Object, who: str, around: Around, tail: str) -> Iterator[Finding]:
    """Yield what is wrong with how the reporter's container ended.

    In the classic form most verdicts go with exit code 1 (EXIT_POLICY). A native reporter that
    waits for its next start is shown as ended, too.
    """
    name, ended = text(container, "name"), section(container, "state", "terminated")
    code, restarts = number(ended, "exitCode") or 0, number(container, "restartCount") or 0
    if code == 0 or (code == 1 and around.judged):
        return
    how = _ended(ended, ours=True) + (f", restarted {restarts} times" if restarts else "")
    probes = [
        event for event in around.events if f"{name} failed liveness" in text(event, "message")
    ]
    if probe := last_event(probes, frozenset({"Killing"})):
        yield problem(
            "reporter-failed",
            f"{who} of Pod {around.pod} was killed, because its liveness probe failed: {how}.",
            "Remove the probe: it costs verdicts. /readyz shows the reporter's health.",
            probe,
        )
        return
    yield problem(
        "reporter-failed",
        f"{who} of Pod {around.pod} exited: {how}.{_no_verdict(ended)}{tail}",
        _todo(ended, f"kubectl logs {around.pod} -c {name}", ours=True),
        *complaints(text(ended, "message") or around.log),
    )


def _terminated(ended: Object, who: str, name: str, around: Around) -> Iterator[Finding]:
    reason, code, pod = text(ended, "reason"), number(ended, "exitCode") or 0, around.pod
    if reason == "OOMKilled":
        yield problem(
            "oom-killed",
            f"{who} of Pod {pod} ran out of memory and was killed (OOMKilled, exit code {code}).",
            "Raise its resources.limits.memory, or reduce its memory use.",
        )
    elif reason in _NOT_STARTED:
        found = problem(
            "start-trouble",
            f"{who} of Pod {pod} could not be started ({reason}: {text(ended, 'message')}).",
            _TODO["start"],
        )
        yield replace(found, about=name)
    elif reason == "ContainerStatusUnknown" and around.hidden:
        yield _not_running(who, pod)
    elif reason == "ContainerStatusUnknown":
        yield problem(
            "lost",
            f"{who} of Pod {pod} was lost: the kubelet could not find it any more.",
            "Check the node: it or its container runtime was restarted.",
        )
    elif code:
        # A grace period that ends leaves 137, too.
        suspect = code == 137 and not around.stopped
        maybe = " It may have run out of memory." if suspect else ""
        yield info(
            "exited",
            f"{who} of Pod {pod} ended: {_ended(ended)}.{maybe}",
            f"kubectl logs {pod} -c {name}",
        )


def _not_running(who: str, pod: str) -> Finding:
    """Return that a container did not run when its Pod ended.

    Whether the kubelet shows it as waiting or as ContainerStatusUnknown is a race.
    """
    return info("not-running", f"{who} of Pod {pod} was not running when the Pod was terminated.")


def _ended(run: Object, *, ours: bool = False) -> str:
    """Return in words how a run ended.

    Our own message is left out: it is the end of the log, which is shown elsewhere.
    """
    message = "" if ours else text(run, "message").strip()
    said = ": ".join(filter(None, (text(run, "reason"), message)))
    return f"exit code {number(run, 'exitCode') or 0}" + (f" ({said})" if said else "")


def _no_verdict(run: Object) -> str:
    """Return that no verdict follows if settings are invalid: every restart ends the same way."""
    wrong = number(run, "exitCode") == 2
    return " No verdict will come until the setting is fixed." if wrong else ""


def _todo(run: Object, log: str, *, ours: bool) -> str:
    if not ours:
        return log
    if number(run, "exitCode") == 2:
        return "Its settings are invalid: its log and `status-reporter --check` list them."
    return f"For the cause, see its log: {log}"
