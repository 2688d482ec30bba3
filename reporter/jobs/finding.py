"""A finding of `explain`, the table of all of them, and words that several share."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from reporter.common.defaults import REPORTER
from reporter.common.objects import Object, epoch, number, section, text


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("findings.toml").read_text("utf-8"))


def advice() -> Mapping[str, str]:
    """Return what to do about each kind of verdict."""
    found: Mapping[str, str] = _table()["advice"]
    return found


def failures() -> Mapping[str, str]:
    """Return the Job controller's reasons in words."""
    found: Mapping[str, str] = _table()["failures"]
    return found


class Weight(StrEnum):
    """How much a finding matters."""

    PROBLEM = "problem"
    WARNING = "warning"
    INFO = "info"


@cache
def rows() -> Mapping[str, tuple[Weight, Mapping[str, str]]]:
    """Return the table: each finding's weight and words, by its name."""
    return {name: (weight, row) for weight in Weight for name, row in _table()[weight].items()}


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
    weight, row = rows()[name]
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


def log_command(pod: str, namespace: str, container: str) -> str:
    """Return the command that shows a container's log; without its name, of the usual one."""
    return f"kubectl logs {pod} -n {namespace}" + (f" -c {container}" if container else "")


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
