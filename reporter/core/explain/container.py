"""What is wrong with one container of a Pod: its status, its events, the reporter's log."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from reporter.core.explain.events import last_event
from reporter.core.explain.finding import Finding, Object, info, problem
from reporter.core.explain.setting import Setup
from reporter.core.facts import Form
from reporter.core.objects import number, section, text
from reporter.core.trouble import CONFIG, IMAGE, START

_REFUSED = re.compile(r"\bforbidden\b", re.IGNORECASE)
_TODO: Final = {
    "image": "Check the image's name and tag, that the registry can be reached from the node, and "
    "imagePullSecrets.",
    "config": "Create the ConfigMap, Secret or key that is named, or mend the reference.",
    "start": "Check the container's command, working directory, mounts and hooks.",
}


def explain_container(
    container: Object, setup: Setup | None, pod: str, events: Sequence[Object], log: str
) -> Iterator[Finding]:
    """Say what is wrong with it; `log` is the reporter's, for the reporter's own container."""
    name = text(container, "name")
    ours = setup is not None and name == setup.name
    who = f"The reporter's container {name!r}" if ours else f"Container {name!r}"
    tail = ""
    if ours and setup is not None and setup.form is Form.NATIVE:
        tail = " The adapter does not start before it."
    waiting, ended = (
        section(container, "state", "waiting"),
        section(container, "state", "terminated"),
    )
    reason, message = text(waiting, "reason"), text(waiting, "message")
    sorts = (("image", IMAGE), ("config", CONFIG), ("start", START))
    sort = next((word for word, known in sorts if reason in known), "")
    if sort:
        said = f"{reason}: {message}" if message else reason
        hint = last_event(events, frozenset({"Failed"})) if reason == "ImagePullBackOff" else ""
        what = {"image": "has no image", "config": "lacks a part of its configuration"}
        yield problem(
            f"{sort}-trouble",
            f"{who} of Pod {pod} {what.get(sort, 'cannot be started')} ({said}).{tail}",
            _TODO[sort],
            hint,
        )
    elif reason == "CrashLoopBackOff":
        last = section(container, "lastState", "terminated")
        yield problem(
            "crash-loop",
            f"{who} of Pod {pod} keeps failing: {_ended(last)}, restarted "
            f"{number(container, 'restartCount') or 0} times.{tail}",
            _reporter_todo(last) if ours else f"kubectl logs {pod} -c {name} --previous",
        )
    elif ended:
        yield from _terminated(ended, who, name, pod, ours=ours)
    if ours and (line := refused(log)):
        yield problem(
            "missing-rights",
            "The reporter is not allowed to do its work: the API server refuses it.",
            "Bind the Role of deploy/base to the Pod's service account (jobs/status: get, patch; "
            "pods: get, watch).",
            line,
        )


def _terminated(ended: Object, who: str, name: str, pod: str, *, ours: bool) -> Iterator[Finding]:
    reason, code = text(ended, "reason"), number(ended, "exitCode") or 0
    if reason == "OOMKilled":
        yield problem(
            "oom-killed",
            f"{who} of Pod {pod} was killed for memory (OOMKilled, exit code {code}).",
            "Raise its resources.limits.memory, or find what uses so much.",
        )
    elif reason in {"StartError", "ContainerCannotRun"}:
        yield problem(
            "start-trouble",
            f"{who} of Pod {pod} could not be started ({reason}: {text(ended, 'message')}).",
            _TODO["start"],
        )
    elif reason == "ContainerStatusUnknown":
        yield problem(
            "lost",
            f"{who} of Pod {pod} was lost: the kubelet found it gone.",
            "Look at the node: it was restarted, or its runtime was.",
        )
    elif ours and code:
        yield problem(
            "reporter-failed",
            f"{who} of Pod {pod} ended by itself: {_ended(ended)}.",
            _reporter_todo(ended),
        )
    elif code:
        maybe = " It may have been killed for memory." if code == 137 else ""
        yield info(
            "exited",
            f"{who} of Pod {pod} ended: {_ended(ended)}.{maybe}",
            f"kubectl logs {pod} -c {name}",
        )


def refused(log: str) -> str:
    """Return the newest line of a reporter's log that says what it may not do, or nothing."""
    return next((line for line in reversed(log.splitlines()) if _REFUSED.search(line)), "")


def _ended(run: Object) -> str:
    said = ": ".join(filter(None, (text(run, "reason"), text(run, "message").strip())))
    return f"exit code {number(run, 'exitCode') or 0}" + (f" ({said})" if said else "")


def _reporter_todo(run: Object) -> str:
    if number(run, "exitCode") == 2:
        return "Its settings are wrong: its log names each (status-reporter --check does, too)."
    return "Its log says why: kubectl logs POD -c status-reporter --previous"
