"""A run as somebody outside reads it: the document of `/status`, its rows, counts and remarks.

Tolerant: the document may come from a newer aggregator, or be made from the annotations
(`pod_status.py`). Asking for it, and showing it, is not done here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import isfinite
from typing import Any, Final

from reporter.common.objects import items, number, section, text
from reporter.run.plan import GLOBAL
from reporter.run.results import NOT_PASSED, SKIPPED, ResultStatus
from reporter.run.state import Status, Step
from reporter.run.tar_upload import UploadState

DECIDED: Final = frozenset({"complete", "failed", "timed_out"})
BAD: Final = frozenset({"failed", "timed_out"})
LAST: Final = frozenset({"complete", "failed"})
"""What a run's status is in the end."""

COUNTS: Final = ("entries", "decided", "received", "failed", "unknown")

Document = Mapping[str, Any]


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
    is expected. `share` is the progress from 0 to 1 where both numbers are known. `held_up` is why
    its Pod does not run, `pod` the same in the cluster's words.
    """

    key: str
    plugin: str
    node: str
    status: str
    result: str
    tests: Mapping[str, int] = field(hash=False)
    progress: str
    share: float | None
    heard: int | None
    stale: bool
    detail: str
    attempts: int | None
    size: int | None
    received: str
    held_up: str
    pod: str

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
        return not self.bad and self.result not in NOT_PASSED


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
        progress, pod = section(entry, "progress"), section(entry, "pod")
        held_up = text(pod, "reason")
        says = _joined(text(pod, "phase"), held_up, text(pod, "message")) if held_up else ""
        total, completed = number(progress, "total"), number(progress, "completed")
        plugin, node = text(entry, "name"), text(entry, "node")
        status = text(entry, "status")
        yield Row(
            key=text(entry, "key") or f"{plugin}/{node or GLOBAL}",
            plugin=plugin,
            node=node,
            status=status,
            result=text(entry, "result_status"),
            tests=_tests(section(entry, "result_counts")),
            progress=_counted(completed, total, _failures(progress)),
            share=_share(completed, total),
            heard=None if status in DECIDED else number(entry, "last-heartbeat"),
            stale=entry.get("stale") is True,
            detail=_why(entry) or says or text(progress, "msg"),
            attempts=number(entry, "attempts"),
            size=number(entry, "bytes"),
            received=text(entry, "received_at"),
            held_up=held_up,
            pod=says,
        )


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


def upload_failed(document: Document) -> bool:
    """Whether the results could not be uploaded to where they were to go."""
    return text(section(document, "upload"), "state") == UploadState.FAILED


def uploaded(document: Document) -> bool:
    """Whether the results are where they were to be uploaded to."""
    return text(section(document, "upload"), "state") == UploadState.UPLOADED


def counts(document: Document) -> Mapping[str, int]:
    """Return how many entries are expected, decided, received, failed and unknown.

    As the document says it; counted where it does not.
    """
    return _told_counts(document) or counts_of(rows(document))


def counts_of(entries: Iterable[Row]) -> dict[str, int]:
    """Count the same among some entries."""
    found = dict.fromkeys(COUNTS, 0)
    for row in entries:
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
    """Return how much is decided, from 0 to 100, whatever is written; 100 only when all is."""
    share = document.get("percent_complete")
    if not isinstance(share, int | float):
        return 0
    return round(min(max(share, 0), 1) * 10_000) // 100


def _told_counts(document: Document) -> Mapping[str, int] | None:
    stated = section(document, "counts")
    return stated if all(number(stated, name) is not None for name in COUNTS) else None


def _why(entry: Mapping[str, Any]) -> str:
    """Return reason and message of an entry's verdict, or those of its error."""
    error = section(entry, "error")
    reason = text(entry, "reason") or text(error, "reason")
    message = text(entry, "message") or text(error, "text")
    return _joined(reason, message)


def _joined(*words: str) -> str:
    return ": ".join(filter(None, words))


def _failures(progress: Mapping[str, Any]) -> int:
    listed = progress.get("failures")
    return number(progress, "failures_total") or (len(listed) if isinstance(listed, list) else 0)


def _counted(completed: int | None, total: int | None, failures: int) -> str:
    if completed is None and total is None:
        return ""
    of = "" if total is None else f"/{total}"
    bad = f" ({failures} failed)" if failures else ""
    return f"{completed or 0}{of}{bad}"


def _tests(told: Mapping[str, Any]) -> dict[str, int]:
    found = {str(word): number(told, word) or 0 for word in told}
    return {word: many for word, many in found.items() if many > 0}


def _share(completed: int | None, total: int | None) -> float | None:
    if completed is None or not total or total < 0:
        return None
    return min(max(completed / total, 0.0), 1.0)


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


# -- remarks ---------------------------------------------------------------------------------------

REMOVING: Final = "removing the plugins"
FINISHING: Final = "finishing"
UPLOADING: Final = "uploading the results"


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
    error, upload = text(document, "error"), upload_words(document)
    found = [f"the aggregator itself failed: {error}"] if error else []
    return [*found, upload] if upload else found


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
