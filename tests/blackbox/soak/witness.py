"""What is seen of a reporter and its Job beside the verdict: requests, log, other writers."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.blackbox.scenarios.jobs import REPORTER, Object
from tests.blackbox.scenarios.recorder import Seen
from tests.blackbox.scenarios.run import ANNOTATION, FIELDS, Shown, condition
from tests.blackbox.soak.found import Contradiction
from tests.blackbox.soak.model import Attempt

POD_NAME = "authentication.kubernetes.io/pod-name"
FOREIGN = {"type": "Foreign", "status": "True", "reason": "Before", "message": "not yours"}
FOREIGN_NOTE = {"foreign.example/note": "not yours"}
MARK = {"metadata": {"annotations": FOREIGN_NOTE}, "status": {"conditions": [FOREIGN]}}
LINES_A_MINUTE = 60
COMES_BACK = 12.0
NOTED_LATER = ("after", "late")


class Audit:
    """Who asked what of the API server; its log is read on from where it was read to."""

    def __init__(self, file: Path) -> None:
        self._file, self._read_to = file, 0
        self._lock = threading.Lock()
        self._asked: dict[str, dict[str, str]] = defaultdict(dict)

    def requests_of(self, pod: str) -> Counter[str]:
        """What a Pod's token has asked for: verb, resource and the answer's code."""
        with self._lock:
            with self._file.open("rb") as file:
                file.seek(self._read_to)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._read_to += len(whole + newline)
            for line in whole.splitlines():
                self._take(json.loads(line))
            return Counter(self._asked[pod].values())

    def _take(self, event: dict[str, Any]) -> None:
        for pod in event["user"].get("extra", {}).get(POD_NAME, ()):
            code = event.get("responseStatus", {}).get("code", "")
            target = event.get("objectRef", {})
            what = "/".join(target[key] for key in ("resource", "subresource") if key in target)
            self._asked[pod][event["auditID"]] = f"{event['verb']} {what} {code}"


def busiest_minute(moments: Iterable[float]) -> int:
    """The most of these moments (Unix seconds, in order) that lie within a minute."""
    most, window = 0, list[float]()
    for moment in moments:
        window = [each for each in window if each > moment - 60] + [moment]
        most = max(most, len(window))
    return most


def check_others(versions: Sequence[Seen]) -> None:
    """Nothing of another writer has changed since the Job was marked."""
    marked = next(i for i, v in enumerate(versions) if condition(v.object, "Foreign"))
    for before, after in pairwise(versions[marked:]):
        if _foreign(before.object) != _foreign(after.object):
            raise Contradiction(
                f"something of another writer was changed: {_foreign(before.object)},"
                f" then {_foreign(after.object)}"
            )
        kept = after.object["status"].get("conditions", [])
        for each in before.object["status"]["conditions"]:
            if each["type"] not in {"Available", "Suspended"} and each not in kept:
                raise Contradiction(f"another writer's condition was changed: {each}")
            if each["type"] == "Available" and not condition(after.object, "Available"):
                raise Contradiction(f"our condition is gone: {each}")


def check_shown(history: Sequence[Shown]) -> None:
    """What the Job shows is whole, and a final verdict stays until another Pod's."""
    newest, before, said = "", set[str](), dict[str, Shown]()
    for each in history:
        pod = each.note["attempt"]["pod"]
        if set(each.condition) != FIELDS or not each.reason or not each.condition["message"]:
            raise Contradiction(f"a condition with a part missing: {each.condition}")
        if pod in said and _settled(said[pod]) != _settled(each):
            raise Contradiction(f"a final verdict was replaced: {said[pod]}, then {each}")
        if pod != newest and pod in before:
            raise Contradiction(f"an older attempt wrote after a newer one: {each}")
        newest = pod
        before.add(pod)
        if each.final:
            said[pod] = each
    for one, other in pairwise(history):
        stayed = one.condition["status"] == other.condition["status"]
        moved = one.condition["lastTransitionTime"] != other.condition["lastTransitionTime"]
        if stayed and moved:
            raise Contradiction(f"lastTransitionTime moved without a change: {one}, then {other}")


def check_events(events: Iterable[Object], history: Sequence[Shown]) -> None:
    """What was announced is a final verdict of that Pod, and each only once."""
    said = {(each.note["attempt"]["pod"], each.reason) for each in history if each.final}
    for event in events:
        announced = event["reportingInstance"], event["reason"]
        if event["reportingComponent"] != REPORTER or event["reason"] == "LateResult":
            continue
        if announced not in said:
            raise Contradiction(f"announced, but not said, or twice: {announced}")
        said.remove(announced)


def delay(attempt: Attempt, at: float) -> float:
    """The longest time between the adapter's own end and its verdict when nothing was away.

    After that everybody has a moment to come back.
    """
    ended = attempt.runs[-1].ended if attempt.runs else None
    if ended is None or attempt.removed is not None:
        return 0.0
    calm, longest = ended, 0.0
    for began, until in sorted(attempt.downs):
        longest = max(longest, min(began, at) - calm)
        calm = max(calm, until + COMES_BACK) if until >= ended else calm
    return max(longest, at - calm)


def _settled(shown: Shown) -> tuple[object, object]:
    """What must not change any more."""
    return shown.condition, {k: v for k, v in shown.note.items() if k not in NOTED_LATER}


def _foreign(job: Object) -> tuple[object, ...]:
    metadata, spec = job["metadata"], {k: v for k, v in job["spec"].items() if k != "suspend"}
    notes = {k: v for k, v in metadata.get("annotations", {}).items() if k != ANNOTATION}
    return notes, metadata.get("labels"), metadata.get("ownerReferences"), spec
