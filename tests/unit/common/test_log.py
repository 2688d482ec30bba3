"""Logging: one JSON object a line, and no way for a log line to hurt."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import pty
import subprocess
import sys
import threading
import time
import warnings
from datetime import datetime
from pathlib import Path

import pytest

from reporter.common import log
from reporter.jobs.reporter_log import unreached


@pytest.fixture(autouse=True)
def _own_logging(monkeypatch):
    """Give every test the logging of a fresh program, and the test run its own back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    log.configure(fd=1)
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def written(tmp_path):
    """Configure logging to a file; returns a function that reads its lines."""
    path = tmp_path / "out"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)

    def configure(style="json", level="info"):
        log.configure(style, level, fd=descriptor)
        return lambda: path.read_text().split("\n")[:-1]

    yield configure
    os.close(descriptor)


class Unprintable:
    """A value whose every text fails."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


def nested(depth):
    """A list in a list in a list."""
    value = []
    for _ in range(depth):
        value = [value]
    return value


def cycle():
    """A list that holds itself."""
    value = []
    value.append(value)
    return value


def test_an_event_is_one_json_object(written):
    """Time in UTC with milliseconds, level, message, then the fields in the order given."""
    lines = written()
    log.get(jobName="check").info("Condition written", exit_code=1, final=True, rule="X")

    (line,) = lines()
    event = json.loads(line)
    assert ["time", "level", "message", "jobName", "exitCode", "final", "rule"] == list(event)
    assert "info" == event["level"]
    assert "Condition written" == event["message"]
    assert (1, True, "X") == (event["exitCode"], event["final"], event["rule"])
    assert event["time"].endswith("Z")
    assert len("2026-01-02T03:04:05.678Z") == len(event["time"])
    assert abs(datetime.fromisoformat(event["time"]).timestamp() - time.time()) < 60


@pytest.mark.parametrize(
    "value",
    [
        "line\nbreak\r\n",
        "separators \u2028\u2029\x85\x0b\x0c",
        "bidi \u202e and escape \x1b[31m",
        "lone surrogate \ud800",
        float("nan"),
        float("inf"),
        b"bytes",
        {"a", "b"},
        Path("/results"),
        ValueError("two\nlines"),
        Unprintable(),
        {1: {2: Unprintable()}},
        {(1, 2): "a key that is no string"},
        10**5000,
        cycle(),
        nested(100_000),
        object(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_makes_one_line_of_valid_json(written, value):
    """Whatever is logged, the other fields survive and nothing is raised."""
    lines = written()
    log.get().warning("Something odd", odd=value, fine={"yes": 1})

    (line,) = lines()
    assert line.isascii()
    assert line.isprintable()
    event = json.loads(line, parse_constant=pytest.fail)
    assert ("Something odd", {"yes": 1}) == (event["message"], event["fine"])


@pytest.mark.parametrize("value", ["\x1b[2J", "a\nb", "\u202e", Unprintable(), nested(100_000)])
def test_the_console_shows_nothing_raw(written, value):
    """Text from a result file cannot move the cursor of whoever reads along."""
    lines = written("console")
    log.get().info("Result read", odd=value)

    (line,) = lines()
    assert "Result read" in line
    assert line.isprintable()


def test_a_field_cannot_replace_the_events_own_names(written):
    """What people search for stays what it is."""
    lines = written()
    log.get().info("Verdict", message="from the file", level="x", time="y")

    event = json.loads(lines()[0])
    assert ("Verdict", "info") == (event["message"], event["level"])
    assert "y" != event["time"]


def test_levels_below_the_configured_one_are_not_written(written):
    """LOG_LEVEL holds, also for a logger that was handed out before."""
    early = log.get(source="early", more=1)
    lines = written(level="warning")
    for logger in (early, log.get()):
        logger.debug("d")
        logger.info("i")
        logger.warning("w")
        logger.error("e")

    levels = [json.loads(line)["level"] for line in lines()]
    assert ["warning", "error"] * 2 == levels


def test_an_exception_is_one_line_with_its_traceback(written):
    """Crashes are events too."""
    lines = written()
    try:
        raise ValueError("bad\nthing")
    except ValueError:
        log.get().exception("It broke")

    (line,) = lines()
    event = json.loads(line)
    assert "error" == event["level"]
    assert "ValueError: bad\nthing" in event["exception"]


def test_library_warnings_arrive_as_events(written):
    """urllib3 and friends speak through the same renderer, and only from warning on."""
    lines = written(level="debug")
    logging.getLogger("urllib3.connectionpool").warning("Retrying\n(%s)", "a")
    logging.getLogger("urllib3.connectionpool").debug("GET /secret")
    logging.getLogger("client.rest").info("response body: ...")
    logging.getLogger("broken").error("%d", "not a number")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old ways", UserWarning, stacklevel=1)

    first, second, third = (json.loads(line) for line in lines())
    assert ("Message from a library", "warning") == (first["message"], first["level"])
    assert ("urllib3.connectionpool", "Retrying (a)") == (first["logger"], first["text"])
    assert ("error", "unreadable: TypeError") == (second["level"], second["text"])
    assert "py.warnings" == third["logger"]


def test_uncaught_errors_arrive_as_events(tmp_path):
    """A crash of the program or of a thread is no bare traceback."""
    code = (
        "import threading\n"
        "from reporter.common import log\n"
        "log.configure(); log.report_crashes()\n"
        "t = threading.Thread(target=lambda: 1 / 0, name='watch'); t.start(); t.join()\n"
        "raise ValueError('main')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    thread, main = (json.loads(line) for line in done.stdout.splitlines())
    assert ("Unexpected error", "watch") == (thread["message"], thread["thread"])
    assert "ZeroDivisionError" in thread["exception"]
    assert "ValueError: main" in main["exception"]
    assert (1, "") == (done.returncode, done.stderr)


def closed_reader():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def closed_descriptor():
    writer = closed_reader()
    os.close(writer)
    return writer


def full_disk():
    return os.open("/dev/full", os.O_WRONLY)


@pytest.mark.parametrize("place", [closed_reader, closed_descriptor, full_disk])
def test_what_cannot_be_written_costs_only_the_lines(place):
    """EPIPE, EBADF and ENOSPC are counted, never raised."""
    log.configure(fd=place())
    before = log.dropped()
    log.get().info("Nobody listens")
    log.get().info("Still nobody")

    assert before + 2 == log.dropped()


@pytest.mark.parametrize("blocking", [True, False])
def test_a_reader_that_stalls_costs_lines_but_no_time(blocking):
    """A full pipe does not hold the program; when it is read again, lines are whole again."""
    reader, writer = os.pipe()
    os.set_blocking(writer, blocking)
    log.configure(fd=writer)
    before = log.dropped()
    done = threading.Event()

    def chatter():
        for number in range(300):
            log.get().info("Chatter", number=number, filling="x" * 10_000)
        done.set()

    thread = threading.Thread(target=chatter, daemon=True)
    thread.start()
    assert done.wait(30)
    lost = log.dropped() - before
    assert 280 < lost < 300

    os.set_blocking(reader, False)
    text = b""
    with contextlib.suppress(BlockingIOError):
        while chunk := os.read(reader, 65536):
            text += chunk
    log.get().info("Back again")
    text += os.read(reader, 65536)
    os.close(writer)
    os.close(reader)

    whole = []
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            whole.append(json.loads(line)["message"])
    assert 300 - lost == whole.count("Chatter")
    assert "Back again" == whole[-1]
    assert before + lost == log.dropped()


def test_a_program_started_without_standard_output_writes_nowhere(tmp_path):
    """Descriptor 1 may be a socket by then: a log line there would go to the API server."""
    victim = tmp_path / "victim"
    code = (
        "import os\n"
        "from reporter.common import log\n"
        f"fd = os.open({str(victim)!r}, os.O_CREAT | os.O_WRONLY)\n"
        "log.configure(); log.get().info('Hello')\n"
        "os._exit(0 if (fd, log.dropped()) == (1, 1) else 3)\n"
    )
    closed = "import os, sys; os.close(1); os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", closed, sys.executable, "-c", code], check=False, cwd=Path.cwd()
    )

    assert 0 == done.returncode
    assert "" == victim.read_text()


def test_threads_do_not_mix_their_lines():
    """Long lines of many threads stay whole on a pipe."""
    reader, writer = os.pipe()
    log.configure(fd=writer)
    received = []

    def drain():
        while chunk := os.read(reader, 65536):
            received.append(chunk)

    drainer = threading.Thread(target=drain)
    drainer.start()

    def chatter(name):
        for number in range(20):
            log.get().info("Chatter", name=name, number=number, filling="x" * 9000)

    threads = [threading.Thread(target=chatter, args=(name,)) for name in "abcd"]
    before = log.dropped()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.close(writer)
    drainer.join()
    os.close(reader)

    events = [json.loads(line) for line in b"".join(received).splitlines()]
    seen = {(event["name"], event["number"]) for event in events}
    assert 80 - (log.dropped() - before) == len(seen)
    assert len(events) == len(seen)


@pytest.mark.parametrize(
    ("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_only_on_a_terminal_that_wants_them(monkeypatch, environ, coloured):
    """NO_COLOR and dumb terminals are honoured."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    terminal, program = pty.openpty()
    log.configure("console", fd=program)
    log.get().info("Hello")
    text = os.read(terminal, 65536)
    os.close(terminal)
    os.close(program)

    assert coloured == (b"\x1b[" in text)


def test_no_colours_in_a_file(written):
    """A redirected console log is plain text."""
    lines = written("console")
    log.get(jobName="check").warning("Hello")

    (line,) = lines()
    assert all(part in line for part in ("Hello", "jobName='check'", "warning"))
    assert line.isprintable()


def test_events_can_be_captured_as_dicts(written):
    """Tests assert on names and fields, never on rendered text; nothing is written meanwhile."""
    lines = written(level="error")
    early = log.get(source="early", more=1)
    with log.capture() as events:
        early.debug("Looked", exit_code=3)
        log.get().error("Broke", error=ValueError)
    log.get().error("After")

    expected = [
        {"level": "debug", "message": "Looked", "source": "early", "more": 1, "exitCode": 3},
        {"level": "error", "message": "Broke", "error": ValueError},
    ]
    assert expected == events
    assert ["After"] == [json.loads(line)["message"] for line in lines()]


def test_the_launcher_understands_what_a_worker_says_of_its_way(written):
    """It looks for the last word; the fields of the sidecar's link stand before."""
    lines = written()
    log.link_event("unreachable", {"error": "cannot resolve r"}, plugin="e2e", node="global")
    assert "cannot resolve r" == unreached("\n".join(lines()))
    log.link_event("reached", {})
    assert "" == unreached("\n".join(lines()))
