"""Logging: one JSON object a line on standard output, or lines for people.

The only place of structlog. Events are static sentences; what varies goes into fields, which may
be given in Python's spelling and appear in lowerCamelCase. A log line never costs anybody their
verdict: what standard output does not take in time is dropped and counted. No decision may depend
on what is logged here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import sys
import threading
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from datetime import UTC, datetime
from math import inf
from typing import Any, Literal, cast

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from reporter.common.defaults import REACHED, UNREACHED

Event = MutableMapping[str, Any]

_PATIENCE_MS = 200
_ATOMIC = 4096
"""A pipe that polls writable takes this many bytes without blocking (PIPE_BUF on Linux)."""


class _Output:
    """Writes lines to a file descriptor without ever raising, and without blocking for long.

    structlog's own loggers wait for whoever reads standard output, and raise when nobody does.
    """

    def __init__(self) -> None:
        # Without an open standard output descriptor 1 may become a socket or a file later.
        self.fd = 1 if sys.__stdout__ is not None else -1
        self.dropped = 0
        # Re-entrant: a warning raised by the garbage collector may log in the middle of a line.
        self._lock = threading.RLock()
        self._stalled = False
        self._torn = False

    def write(self, line: str) -> None:
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        with self._lock:
            if self._torn:
                data = b"\n" + data
            try:
                written = self._push(data)
            except (OSError, ValueError):
                written = 0
            self._stalled = written < len(data)
            if self._stalled:
                self.dropped += 1
                self._torn = written > 0 or self._torn
            else:
                self._torn = False

    def _push(self, data: bytes) -> int:
        if self.fd < 0:
            return 0
        poll = select.poll()
        poll.register(self.fd, select.POLLOUT)
        # A reader that has stalled once gets no second chance to hold us up, until it reads again.
        patience = 0 if self._stalled else _PATIENCE_MS
        written = 0
        while written < len(data) and poll.poll(patience):
            try:
                written += os.write(self.fd, data[written : written + _ATOMIC])
            except OSError:
                break
        return written

    debug = info = warning = error = critical = write


_output = _Output()


_kept: Callable[[str], object] | None = None


def keep(write: Callable[[str], object] | None) -> None:
    """Give every event, as JSON on one line, to `write` as well; None ends that.

    It must neither raise nor wait.
    """
    global _kept  # noqa: PLW0603 - there is one log
    _kept = write


def dropped() -> int:
    """Number of events that standard output did not take since the program started."""
    return _output.dropped


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _shape(_: Any, __: str, event: Event) -> Event:
    """Order the fields and name them in lowerCamelCase; one called as one of our own three is lost.

    structlog's TimeStamper and EventRenamer leave the order, and the foreign names, as they are.
    """
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    own: dict[str, Any] = {
        "time": now,
        "level": event.pop("level"),
        "message": event.pop("event", ""),
    }
    return own | {_camel(key): value for key, value in event.items()} | own


def _text(value: object) -> object:
    """Say a value that JSON does not know as one that it does."""
    try:
        if isinstance(value, BaseException):
            return f"{type(value).__name__}: {value}"
        if isinstance(value, (set, frozenset)):
            return sorted(map(str, value))
        return str(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


# ASCII only: lone surrogates, U+2028 and every control character become escapes, so that one
# event is one line.
_render = structlog.processors.JSONRenderer(default=_text, allow_nan=False, separators=(",", ":"))


def _json(logger: Any, method: str, event: Event) -> str:
    try:
        line = _render(logger, method, event)
    except Exception:
        # NaN, a cycle, a key that is no string: find the culprit and keep the rest.
        plain: Event = {}
        for key, value in event.items():
            try:
                _render(logger, method, {"": value})
            except Exception:
                plain[str(key)] = _text(value)
            else:
                plain[str(key)] = value
        line = _render(logger, method, plain)
    return cast("str", line)


def _keep(logger: Any, method: str, event: Event) -> Event:
    if _kept is not None:
        _kept(_json(logger, method, event))
    return event


def _console(colours: bool) -> Processor:
    render = structlog.dev.ConsoleRenderer(
        colors=colours,
        event_key="message",
        timestamp_key="time",
        sort_keys=False,
        # Quoted, so that text from a result file cannot move the cursor of whoever reads along.
        repr_native_str=True,
        exception_formatter=structlog.dev.plain_traceback,
    )

    def to_line(logger: Any, method: str, event: Event) -> str:
        try:
            return render(logger, method, dict(event))
        except Exception:
            return _json(logger, method, event)

    return to_line


def _from(level: str, *last: Processor) -> None:
    """Take events from a level on, and end with these processors; for loggers handed out too."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            _shape,
            _keep,
            *last,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_: _output,
        cache_logger_on_first_use=False,
    )


_from("info", _json)


def get(**fields: Any) -> FilteringBoundLogger:
    """Return a logger whose events carry `fields`. It follows later calls of `configure`."""
    return cast("FilteringBoundLogger", structlog.get_logger(**fields))


def configure(
    format: Literal["json", "console"] = "json",  # noqa: A002 - the setting's own name
    level: str = "info",
    fd: int | None = None,
) -> None:
    """Set how and from which level on events are written; libraries' warnings go the same way.

    `level` is debug, info, warning or error; `fd` the descriptor, standard output by default.
    """
    if fd is not None:
        _output.fd = fd
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    colours = not plain and os.isatty(_output.fd)
    _from(level, _json if format == "json" else _console(colours))
    root = logging.getLogger()
    root.handlers[:] = [_Bridge()]
    # Never lower: the Kubernetes client logs whole answers at debug.
    root.setLevel(logging.WARNING)
    logging.captureWarnings(True)


class _Bridge(logging.Handler):
    """Turns a library's log record into an event of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = " ".join(record.getMessage().split())[:512]
        except Exception as error:
            text = f"unreadable: {type(error).__name__}"
        write = get().error if record.levelno >= logging.ERROR else get().warning
        write("Message from a library", logger=record.name, text=text)


def crashed(error: BaseException | None) -> None:
    """Log an exception that nobody expected, with its traceback."""
    lines = "".join(traceback.format_exception(error))
    get().critical("Unexpected error", exception=lines, thread=threading.current_thread().name)


def report_crashes() -> None:
    """Log what would end the program or a thread as an event instead of a bare traceback."""
    sys.excepthook = lambda _kind, error, _trace: crashed(error)
    threading.excepthook = lambda args: crashed(args.exc_value)


EVERY = 60.0
_MOST_LINES = 20
"""Lines of one event in that time, whatever they are about: a worker may have many names."""
_REMEMBERED = 1_024
"""Different things; peers choose some of them, so there is an end to what is kept."""


class RateLimitedLog:
    """Says the same thing at most once a minute: trouble that lasts must not fill the log."""

    def __init__(self, every: float = EVERY) -> None:
        self._every = every
        self._said: OrderedDict[object, tuple[float, int]] = OrderedDict()
        self._lines: dict[str, tuple[float, int]] = {}

    def say(
        self,
        now: float,
        write: Callable[..., Any],
        event: str,
        *,
        about: object = None,
        **fields: Any,
    ) -> None:
        """Log `event` by `write`, unless it was said about the same thing a moment ago.

        `now` is monotonic. The next one has the number of those that were left out as `repeated`.
        """
        known = (event, about)
        last, swallowed = self._said.get(known, (-inf, 0))
        began, lines = self._lines.get(event, (-inf, 0))
        if now - began >= self._every:
            began, lines = now, 0
        if now - last < self._every or lines >= _MOST_LINES:
            self._said[known] = (last, swallowed + 1)
        else:
            if swallowed:
                fields["repeated"] = swallowed
            write(event, **fields)
            self._said[known], self._lines[event] = (now, 0), (began, lines + 1)
            self._said.move_to_end(known)
        while len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)


_LINK_EVENTS = {
    "unreachable": ("warning", UNREACHED),
    "reached": ("info", REACHED),
    "retry": ("warning", "Request to the aggregator failed, retrying"),
    "another_result_held": ("warning", "The aggregator already has a different result"),
    "checked_by_hand": ("info", "The aggregator has a Sonobuoy-style certificate"),
    "certificate_expires": ("warning", "The client certificate expires soon or has expired"),
    "relay_listens": ("info", "Progress relay listening"),
    "relay_gave_up": ("error", "Progress relay gave up on a connection"),
    "relay_port_taken": ("warning", "Progress relay not listening yet: port already in use"),
    "progress_not_delivered": ("warning", "Progress not delivered"),
    "progress_unwanted": ("warning", "The aggregator does not accept progress from this worker"),
    "heartbeat_unanswered": ("warning", "Heartbeat not answered"),
    "heartbeat_refused": ("warning", "The aggregator rejects heartbeats"),
    "heartbeats_end": ("info", "No more heartbeats: the aggregator does not accept them"),
}


def link_event(event: str, facts: Mapping[str, Any], **fields: Any) -> None:
    """Log what the link to an aggregator says in one word; `fields` go before its facts."""
    level, sentence = _LINK_EVENTS.get(event, ("info", event))
    getattr(get(**fields), level)(sentence, **facts)


@contextlib.contextmanager
def capture() -> Iterator[list[dict[str, Any]]]:
    """Collect events as dicts instead of writing them; for tests.

    Each has `level`, `message` and the fields as they would be logged, without `time`.
    """
    events: list[dict[str, Any]] = []

    def collect(_: Any, __: str, event: Event) -> Event:
        events.append({key: value for key, value in event.items() if key != "time"})
        raise structlog.DropEvent

    before = structlog.get_config()
    _from("debug", collect)
    try:
        yield events
    finally:
        structlog.configure(**before)
