"""A finding of `explain`, the table of all of them, and words that several share."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from reporter.common.defaults import REPORTER
from reporter.common.objects import Object, epoch, items, number, section, text

_TABLE: Final = tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))
ADVICE: Final[Mapping[str, str]] = _TABLE["advice"]
FAILURES: Final[Mapping[str, str]] = _TABLE["failures"]


class Weight(StrEnum):
    """How much a finding matters."""

    PROBLEM = "problem"
    WARNING = "warning"
    INFO = "info"


ROWS: Final[Mapping[str, tuple[Weight, Mapping[str, str]]]] = {
    name: (weight, row) for weight in Weight for name, row in _TABLE[weight].items()
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth knowing: what is so, what it is based on, and what to do about it.

    `name` is that in the table. `todo` is empty where nothing needs to be done. `about` is the
    container concerned, if it is one.
    """

    name: str
    weight: Weight
    what: str
    todo: str = ""
    evidence: tuple[str, ...] = ()
    about: str = ""

    @property
    def code(self) -> str:
        """A stable word for programs."""
        return self.name.partition("/")[0]


def say(name: str, /, *evidence: str, about: str = "", **values: object) -> Finding:
    """Return what `findings.toml` has under a name, its braces filled with these values."""
    weight, row = ROWS[name]
    return Finding(
        name,
        weight,
        row["what"].format(**values),
        row.get("todo", "").format(**values),
        tuple(filter(None, evidence)),
        about,
    )


def joined(*words: str) -> str:
    """Return a reason and its message as one text, whichever of them there is."""
    return ": ".join(filter(None, words))


def exit_words(code: int | None, reason: str, message: str) -> str:
    """Return in words how a run ended."""
    said = joined(reason, message)
    return f"exit code {code or 0}" + (f" ({said})" if said else "")


def true_condition(found: Object, *kinds: str) -> Object:
    """Return the first condition of these types that is true; an empty one without."""
    for condition in items(section(found, "status"), "conditions"):
        if text(condition, "type") in kinds and text(condition, "status") == "True":
            return condition
    return {}


def last_event(events: Sequence[Object], *reasons: str) -> str:
    """Return the newest event with one of these reasons in words, or an empty string.

    The reporter's own Events are skipped: their reasons may be the adapter's.
    """
    fitting = [
        event
        for event in events
        if text(event, "reason") in reasons and text(event, "reportingComponent") != REPORTER
    ]
    if not fitting:
        return ""
    newest = max(fitting, key=event_time)
    times = number(newest, "count") or number(section(newest, "series"), "count") or 1
    often = f" ({times} times)" if times > 1 else ""
    return f"{text(newest, 'reason')}: {text(newest, 'message')}{often}"


def event_time(event: Object) -> float:
    """Return when an Event was last seen, in epoch seconds; 0 where it does not say."""
    stamps = (text(event, "lastTimestamp"), text(event, "eventTime"), text(event, "firstTimestamp"))
    return next((at for stamp in stamps if (at := epoch(stamp))), 0.0)
