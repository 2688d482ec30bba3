"""The newest of the events that say why."""

from collections.abc import Sequence

from reporter.common.defaults import REPORTER
from reporter.common.objects import epoch, number, section, text
from reporter.jobs.finding import Object


def last_event(events: Sequence[Object], reasons: frozenset[str]) -> str:
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
    newest = max(fitting, key=_when)
    times = number(newest, "count") or number(section(newest, "series"), "count") or 1
    often = f" ({times} times)" if times > 1 else ""
    return f"{text(newest, 'reason')}: {text(newest, 'message')}{often}"


def _when(event: Object) -> float:
    stamps = (text(event, "lastTimestamp"), text(event, "eventTime"), text(event, "firstTimestamp"))
    return next((at for stamp in stamps if (at := epoch(stamp))), 0.0)
