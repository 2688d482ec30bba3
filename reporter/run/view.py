"""A run as people are shown it, read from the document of `/status`: states, counts and words.

The command asks for all of it; what the page shows is written into the document itself (`display`).
Tolerant: the document may come from a newer aggregator, or be made from the annotations
(`pod_status.py`). Asking for it is not done here.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from reporter.common.objects import items, number, section, text
from reporter.run.plan import GLOBAL
from reporter.run.results import NOT_PASSED, SKIPPED, ResultStatus
from reporter.run.state import UNREACHABLE, Status, Step
from reporter.run.tar_upload import UploadState
from reporter.verdict.facts import Waiting
from reporter.verdict.not_starting import waiting_row

DECIDED: Final = frozenset({"complete", "failed", "timed_out"})
BAD: Final = frozenset({"failed", "timed_out"})
LAST: Final = frozenset({"complete", "failed"})
"""What a run's status is in the end."""

COUNTS: Final = ("entries", "decided", "received", "failed", "unknown")

Document = Mapping[str, Any]


class EntryState(StrEnum):
    """What status, verdict and heartbeats of an entry add up to; what needs attention first."""

    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CHECK_FAILED = "check_failed"  # its result is there, and says so
    UNKNOWN = "unknown"
    STALE = "stale"
    RETRYING = "retrying"
    WAITING = "waiting"  # its plugin has not begun
    RUNNING = "running"
    COMPLETE = "complete"


_REJECTED: Final = frozenset(
    {EntryState.FAILED, EntryState.TIMED_OUT, EntryState.CHECK_FAILED, EntryState.UNKNOWN}
)
MOST_SAID: Final = 5  # lines about what hinders a run, where they are not all asked for


class ReadOutcome(StrEnum):
    """How reading the status ended."""

    OK = "ok"
    UNREACHABLE = "unreachable"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    POD_NOT_RUNNING = "pod_not_running"
    NO_STATUS = "no_status"
    BAD_STATUS = "bad_status"


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a run: its document, only when the outcome is ok, else what is in the way."""

    outcome: ReadOutcome
    document: Document | None = None
    detail: str = ""
    warning: str = ""

    @property
    def trouble(self) -> str:
        """What is in the way, and in a word of which sort that is, unless the detail says that."""
        if self.outcome is ReadOutcome.NOT_FOUND:
            return self.detail
        return f"{self.detail} ({self.outcome.replace('_', ' ')})"


@dataclass(frozen=True, slots=True)
class Row:
    """One entry, ready to be shown.

    `tests` are its tests by status. `heard` is the age of the last heartbeat in seconds, while one
    is expected. `held_up` is why its Pod does not run, `pod` the same in the cluster's words.
    """

    key: str
    plugin: str
    node: str
    status: str
    result: str
    tests: Mapping[str, int] = field(hash=False)
    state: EntryState
    progress: str
    heard: int | None
    detail: str
    attempts: int | None
    size: int | None
    received: str
    held_up: str
    pod: str

    @property
    def stuck(self) -> bool:
        """Whether waiting seldom helps: its image, configuration or start, or no way to us."""
        known = waiting_row(Waiting(self.held_up)) or self.held_up == "InitContainerFailed"
        waits = self.state is EntryState.WAITING and bool(known)
        return waits or self.held_up == UNREACHABLE

    @property
    def decided(self) -> bool:
        """Whether it needs no more waiting."""
        return self.status in DECIDED

    @property
    def bad(self) -> bool:
        """Whether its results are missing."""
        return self.status in BAD

    @property
    def passed_of(self) -> str:
        """How many of its tests have passed, where there are several.

        What was skipped is no test that could have.
        """
        whole = sum(self.tests.values()) - self.tests.get(SKIPPED, 0)
        return f"{self.tests.get(ResultStatus.PASSED, 0)} of {whole} passed" if whole > 1 else ""

    @property
    def passed(self) -> bool:
        """Whether nothing speaks against it: its result may be open, or of a kind nobody judges."""
        return self.state not in _REJECTED


def read_document(data: bytes) -> Document | None:
    """Read the document of `/status`, maybe without its entries; None for anything else."""
    found = plain_object(data.decode(errors="replace"))
    plugins = found.get("plugins", [] if _told_counts(found) else None)
    whole = isinstance(plugins, list) and all(isinstance(entry, dict) for entry in plugins)
    return found if whole and known_status(found) else None


def plain_object(written: str) -> dict[str, Any]:
    """Decode a JSON object; an empty one for anything else."""
    try:
        found = plain_json(written)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def known_status(found: Document) -> bool:
    """Whether it tells the status of a run."""
    return found.get("status") in tuple(Status)


def rows(document: Document) -> Iterator[Row]:
    """Yield the entries in the order they come."""
    for entry in items(document, "plugins"):
        pod = section(entry, "pod")
        plugin, node = text(entry, "name"), text(entry, "node")
        status, state = text(entry, "status"), _state(entry)
        yield Row(
            key=text(entry, "key") or f"{plugin}/{node or GLOBAL}",
            plugin=plugin,
            node=node,
            status=state if state is EntryState.WAITING else status,
            result=text(entry, "result_status"),
            tests=_tests(section(entry, "result_counts")),
            state=state,
            progress=_progress(entry),
            heard=None if status in DECIDED else number(entry, "last-heartbeat"),
            detail=_detail(entry),
            attempts=number(entry, "attempts"),
            size=number(entry, "bytes"),
            received=text(entry, "received_at"),
            held_up=text(pod, "reason"),
            pod=_held_up(pod),
        )


def entry_display(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return what `/status` says of how an entry is shown."""
    return {"state": _state(entry), "progress": _progress(entry), "detail": _detail(entry)}


def run_display(document: Document) -> dict[str, Any]:
    """Return what `/status` says of how a run is shown."""
    return {
        "state": run_state(document),
        "headline": headline(document),
        "summary": how_far(document),
        "percent": percent(document),
        "problems": _problems(document),
    }


def failed(document: Document) -> bool:
    """Whether results are missing, be it for now, or the aggregator itself failed."""
    return text(document, "status") == Status.FAILED


def passed(document: Document) -> bool:
    """Whether nothing has failed: all results that were due came, and none of them says otherwise.

    A verdict that says neither is no pass; a result in a format that nobody judges is no failure.
    """
    rejected = text(document, "result_status") == ResultStatus.FAILED
    counted = counts(document)
    bad = failed(document) or rejected or counted["failed"] or counted["unknown"]
    return not (bad or empty(document))


def empty(document: Document) -> bool:
    """Whether the run is over and expected no result at all: then it has checked nothing."""
    return over(document) and not counts(document)["entries"]


def good(document: Document, *, delivery_only: bool = False) -> bool:
    """Whether nothing has failed: no delivery and, unless only these count, no check.

    The upload of the results is one of the deliveries.
    """
    if _upload_failed(document):
        return False
    return not failed(document) if delivery_only else passed(document)


def _upload_failed(document: Document) -> bool:
    return text(section(document, "upload"), "state") == UploadState.FAILED


def uploaded(document: Document) -> bool:
    """Whether the results are where they were to be uploaded to."""
    return text(section(document, "upload"), "state") == UploadState.UPLOADED


def counts(document: Document) -> Mapping[str, int]:
    """Return how many entries are expected, decided, received, failed and unknown.

    As the document says it; counted where it does not.
    """
    if told := _told_counts(document):
        return told
    found = dict.fromkeys(COUNTS, 0)
    for row in rows(document):
        unknown = row.result == ResultStatus.UNKNOWN
        found["entries"] += 1
        found["decided"] += row.decided
        found["received"] += row.status == "complete"
        found["failed"] += not row.passed and not unknown
        found["unknown"] += unknown
    return found


def over(document: Document) -> bool:
    """Whether nothing will change any more.

    Who says nothing of that, as the proposal's own fields do not, ends with its last word.
    """
    said = document.get("final")
    return said if isinstance(said, bool) else text(document, "status") in LAST


def percent(document: Document) -> int:
    """Return how much is decided, from 0 to 100, whatever is written."""
    share = document.get("percent_complete")
    if not isinstance(share, int | float):
        return 0
    return round(min(max(share, 0), 1) * 10_000) // 100


def _told_counts(document: Document) -> Mapping[str, int] | None:
    stated = section(document, "counts")
    return stated if all(number(stated, name) is not None for name in COUNTS) else None


def _state(entry: Mapping[str, Any]) -> EntryState:
    status, result = text(entry, "status"), text(entry, "result_status")
    if result == ResultStatus.UNKNOWN:
        return EntryState.UNKNOWN
    if status in BAD:
        return EntryState(status)
    if result in NOT_PASSED:
        return EntryState.CHECK_FAILED
    if status in DECIDED:
        return EntryState.COMPLETE
    if entry.get("stale") is True:
        return EntryState.STALE
    if text(entry, "retry_until"):
        return EntryState.RETRYING
    pod = section(entry, "pod")
    begun = not text(pod, "reason") or text(pod, "phase") not in {"", "Pending"}
    return EntryState.RUNNING if begun else EntryState.WAITING


def _detail(entry: Mapping[str, Any]) -> str:
    """Say why the entry is as it is: its verdict or error, else what it waits for or is doing."""
    error = section(entry, "error")
    reason = text(entry, "reason") or text(error, "reason")
    message = text(entry, "message") or text(error, "text")
    if why := _joined(reason, message) or text(error, "cause").replace("_", " "):
        return why
    if until := text(entry, "retry_until"):
        tries = number(entry, "attempts") or 0
        return f"failed uploads: {tries}, may be retried until {until[:19]}Z"
    return _held_up(section(entry, "pod")) or text(section(entry, "progress"), "msg")


def _held_up(pod: Mapping[str, Any]) -> str:
    reason = text(pod, "reason")
    return _joined(text(pod, "phase"), reason, text(pod, "message")) if reason else ""


def _joined(*words: str) -> str:
    return ": ".join(filter(None, words))


def _progress(entry: Mapping[str, Any]) -> str:
    progress = section(entry, "progress")
    completed, total = number(progress, "completed") or 0, number(progress, "total") or 0
    listed = progress.get("failures")
    failures = number(progress, "failures_total") or (
        len(listed) if isinstance(listed, list) else 0
    )
    of = f"/{total}" if total > 0 else ""
    bad = f" ({failures} failed)" if failures else ""
    return f"{completed}{of}{bad}" if completed or of or bad else ""


def _tests(told: Mapping[str, Any]) -> dict[str, int]:
    found = {str(word): number(told, word) or 0 for word in told}
    return {word: many for word, many in found.items() if many > 0}


def plain_json(written: str) -> Any:
    """Decode JSON. Raises ValueError for anything else, and for numbers without a value.

    NaN and infinity are no JSON, though Python reads and writes them.
    """
    return json.loads(written, parse_constant=_finite, parse_float=_finite)


def _finite(written: str) -> float:
    found = float(written)
    if not isfinite(found):
        raise ValueError(f"not a number: {written}")
    return found


# -- words about the run ---------------------------------------------------------------------------

REMOVING: Final = "removing the plugins"
FINISHING: Final = "finishing"
UPLOADING: Final = "uploading the results"


def headline(document: Document) -> str:
    """Say how the run is, whether it goes on all the same, and what did not pass."""
    counted, told = counts(document), [text(document, "status")]
    if failed(document) and not over(document):
        told.append("still running")
    if empty(document):
        told.append("no results expected")
    for word in ("failed", "unknown"):
        if counted[word]:
            told.append(f"{counted[word]} of {counted['entries']} {word}")
    if _upload_failed(document):
        told.append("upload failed")
    return ", ".join(told)


def run_state(document: Document) -> str:
    """Return its status, `failed` or `unknown`: a failed check is as bad as a missing result."""
    if good(document):
        return text(document, "status")
    bad = not good(document, delivery_only=True) or counts(document)["failed"]
    return Status.FAILED if bad else ResultStatus.UNKNOWN


def how_far(document: Document) -> str:
    """Say how much is done, whether that can change, and what is done now."""
    counted = counts(document)
    parts = [f"{counted['decided']} of {counted['entries']} done ({percent(document)}%)"]
    doing, packed = ending(document), bool(section(document, "tar-info"))
    if over(document):
        parts.append("final")
    elif failed(document) and not (doing or packed or text(document, "error")):
        parts.append("may still change if a late result arrives")
    if doing:
        parts.append(doing)
    return ", ".join(parts)


def ending(document: Document) -> str:
    """Say what is done after the last decision; nothing where nothing is, or it is not told.

    The annotations do not tell of the launcher.
    """
    counted, step = counts(document), text(section(document, "launcher"), "step")
    if over(document):
        return REMOVING if step == Step.REMOVING else ""
    if counted["decided"] < counted["entries"]:
        return ""
    if text(section(document, "upload"), "state") == UploadState.UPLOADING:
        return UPLOADING
    if "launcher" not in document or section(document, "tar-info"):
        return ""
    packing = not step and text(document, "status") == Status.POST_PROCESSING
    return FINISHING if packing or step in {Step.REMOVING, Step.DONE} else ""


def own_words(document: Document) -> list[str]:
    """Say what the aggregator tells of itself: its own failure, and how the upload stands."""
    return [*filter(None, (_own_failure(document), upload_words(document)))]


def _own_failure(document: Document) -> str:
    error = text(document, "error")
    return f"the aggregator itself failed: {error}" if error else ""


def _problems(document: Document) -> list[str]:
    """Say what is wrong with the run as a whole, and where its plugins do not run."""
    upload = upload_words(document) if text(section(document, "upload"), "error") else ""
    said = hindrances(document)
    more = f"{len(said) - MOST_SAID} more" if len(said) > MOST_SAID else ""
    return [*filter(None, (_own_failure(document), upload, *said[:MOST_SAID], more))]


def upload_words(document: Document) -> str:
    """Say how the upload of the results stands; nothing where none was asked for."""
    upload = section(document, "upload")
    host, error = text(upload, "host"), text(upload, "error")
    match text(upload, "state"):
        case UploadState.WAITING:
            doubt = f"; this may fail: {error}" if error else ""
            return f"the results will be uploaded to {host}{doubt}"
        case UploadState.UPLOADING:
            again = f"; it is tried again: {error}" if error else ""
            return f"{UPLOADING} to {host}{again}"
        case UploadState.UPLOADED:
            return f"the results were uploaded to {host}"
        case UploadState.FAILED:
            return f"the results could not be uploaded to {host}: {error}"
        case _:
            return ""


def hindrances(document: Document) -> list[str]:
    """What the launcher has to say of the whole run: its trouble, what stays, who was left out."""
    launcher = section(document, "launcher")
    found = [trouble] if (trouble := launcher_trouble(document)) else []
    found += [
        f"{text(each, 'object')} could not be removed: {text(each, 'reason')}"
        for each in items(launcher, "stays")
    ]
    found += [
        f"plugin {text(each, 'name')} skips node {text(each, 'node')}: {text(each, 'reason')}"
        for each in items(document, "skipped")
    ]
    return found


def launcher_trouble(document: Document) -> str:
    """Say what holds the launcher up, and since when; nothing where nothing does."""
    trouble = section(document, "launcher", "degraded")
    since, reason = text(trouble, "since")[:19], text(trouble, "reason")
    return f"the launcher has been blocked since {since}Z: {reason}" if reason else ""


def launcher_at_work(document: Document) -> bool:
    """Whether there is a launcher that has not ended and that nothing holds up.

    One that has ended tells of no trouble, whether it was over or not.
    """
    step = text(section(document, "launcher"), "step")
    return step not in ("", Step.DONE) and not launcher_trouble(document)
