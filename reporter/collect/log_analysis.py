"""The gatherer `log-analysis`: what the logs that `logs` has kept say of the node's health.

It writes a report of the format `manual`, with a test for each entry of a table of patterns. Lines
of a log may come from anybody, and patterns from an operator: what they cost has a bound.
"""

import gzip
import json
import os
import re
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import Any, Final

from reporter.collect.gatherers import RECORD
from reporter.collect.logs import COMPLETE, PARTIAL, WRONG_HOURS, chosen_hours
from reporter.collect.snapshot.redact import redact_text
from reporter.common import schema
from reporter.common.kubernetes_yaml import read_documents
from reporter.common.text import clean
from reporter.common.yaml_text import to_yaml

REPORT: Final = "report.yaml"
TABLE: Final = Path(__file__).with_name("log_patterns.yaml")
_MOST_BYTES, _MOST_VALUES = 100 * 1024, 20_000  # of a table: a variable of 128 KiB starts nothing
_LONGEST: Final = 4096  # bytes of a line; the rest of one is nobody's line
_HALF_A_YEAR: Final = 183 * 86400.0
_PROGRAMS: Final = {"journal-kernel": "kernel", "dmesg": "kernel"}  # of others the name tells it
_HEAD = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} [ \d]\d [\d:]{8}) \S+ ([^\s:\[]{1,64})(?:\[\d+\])?: "
)
"""What the journal and syslog put before a message, with the program that it comes from."""
_TIME = re.compile(
    r'(?:time=")?(\d{4}-\d\d-\d\d)[T ]([\d:]{8})|([A-Z][a-z]{2} [ \d]\d) ([\d:]{8})'
    r"|[IWEF](\d{4}) ([\d:]{8})"
)
"""Of the journal, syslog, containerd; of syslog; of Kubernetes, the last two without a year."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """An entry of the table. Of a text, the parts between its `*` occur in a line in this order.

    Of its programs every node has lines where it is `built_in`.
    """

    name: str
    match: Sequence[str]
    unless: Sequence[str] = ()
    programs: Sequence[str] = ()
    minimum: int = 1
    minutes: int = 0
    fails: bool = True
    description: str = ""
    built_in: bool = False

    def concerns(self, program: str) -> bool:
        """Return whether lines of a program count."""
        return not self.programs or any(fnmatchcase(program, each) for each in self.programs)

    def found_in(self, text: str) -> bool:
        """Return whether a line says it."""
        said = any(_occurs(each, text) for each in self.match)
        return said and not any(_occurs(each, text) for each in self.unless)


def _occurs(written: str, text: str) -> bool:
    # No regular expression: a few characters of one could take hours for a line.
    at = 0
    for part in written.split("*"):
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def read_patterns(
    data: bytes, built_in: Mapping[str, Pattern] | None = None
) -> tuple[dict[str, Pattern], list[str]]:
    """Return the entries of a table by their names, over the built-in ones, and all mistakes.

    Without those it is their own table.
    """
    documents, mistakes = read_documents(data, _MOST_BYTES, _MOST_VALUES)
    found, seen = dict(built_in or {}), {"logs"}
    for document in documents:
        if not document.mistakes:
            for place, text in schema.violations("log-patterns.v1", document.value):
                document.say(place, text)
        for at, each in () if document.mistakes else enumerate(document.value):
            name, texts = each["name"], (*each.get("match", ()), *each.get("unless", ()))
            pattern = found.get(name) or Pattern(name, (), built_in=built_in is None)
            if name in seen:
                document.say((at, "name"), f"another test is named {name!r}")
            elif not pattern.match and "match" not in each:
                document.say((at, "match"), "is required")
            elif not all(text.strip("*") for text in texts):
                document.say((at,), "a text of * alone matches every line")
            else:
                found[name] = replace(pattern, **each)
            seen.add(name)
        mistakes += document.mistakes
    return found, [f"line {each.line}: {each}" for each in mistakes]


def read_settings(environ: Mapping[str, str]) -> tuple[int, list[Pattern], list[str]]:
    """Return the hours, all patterns, and what is wrong with the variables."""
    hours = chosen_hours(environ)
    problems = [] if hours else [WRONG_HOURS]
    patterns, _ = read_patterns(TABLE.read_bytes())
    if added := os.fsencode(environ.get("LOG_PATTERNS", "")):
        patterns, mistakes = read_patterns(added, patterns)
        problems += [f"LOG_PATTERNS: {each}" for each in mistakes]
    return hours or 24, list(patterns.values()), problems


def main(environ: Mapping[str, str]) -> int:
    """Write the report; return 0, or 1 where not all that was asked for could be analysed."""
    out = Path(environ.get("GATHER_OUT") or ".")
    end = float(environ.get("GATHER_DEADLINE") or time.time() + 60) - 10  # to write the report
    hours, patterns, problems = read_settings(environ)
    logs = out.absolute().parent / "logs"
    written = (logs / RECORD).read_bytes() if (logs / RECORD).exists() else b"{}"
    record = json.loads(written)
    if record.get("status") != "complete":
        why = f"the gatherer logs: {record.get('status', 'not run')}"
        problems.append(record.get("stderr", "").strip() or why)
    read = [
        _Log(path.stem, path, {each.name: _Found(path.stem) for each in patterns})
        for path in sorted(logs.glob("*.gz"))
        if time.time() - path.stat().st_mtime < hours * 3600
    ]
    problems += [f"out of time in {log.name}" for log in read if not log.read(patterns, hours, end)]
    items = [_item(each, [log.found[each.name] for log in read]) for each in patterns]
    if read or not problems:  # else it is known why there are no logs
        unknown = {each["name"] for each in items if each["status"] == "unknown"}
        problems += [f"no lines of {', '.join(p.programs)}" for p in patterns if p.name in unknown]
        back = max([0.0, *(log.newest - log.oldest for log in read)])
        # Not every minute has a line, and before it was started a node has none.
        if back < 0.9 * min(hours * 3600, time.clock_gettime(time.CLOCK_BOOTTIME)):
            problems.append(f"the logs go back only {back / 3600:.1f} of the last {hours} hours")
    message = clean("; ".join(dict.fromkeys(problems)), 1000)
    details = {"message": message, **{log.name: log.window for log in read}}
    print(message, *(f"{log.name}: {log.window}" for log in read), sep="\n", file=sys.stderr)
    status = "unknown" if message else "passed"
    items.insert(0, {"name": "logs", "status": status, "details": details})
    (out / REPORT).write_text(to_yaml({"name": "log-analysis", "items": items}), "utf-8")
    return PARTIAL if message else COMPLETE


def _item(pattern: Pattern, logs: Sequence["_Found"]) -> dict[str, Any]:
    """Return the test of a pattern. A line may be in several logs, so they are not added up."""
    most = max(logs, key=lambda each: (each.enough(pattern), each.count), default=_Found(""))
    status, details = "passed", {}
    if most.enough(pattern):
        status, last = "failed", clean(redact_text(most.last)[0], 500)
        message = f"{pattern.description} {_many(most.count)} in {most.log}, the last one: {last}"
        details = {"message": message.strip()}
    elif pattern.built_in and not any(each.seen for each in logs):
        status = "unknown"
    if status != "passed" and not pattern.fails:
        status = "skipped"
    return {"name": pattern.name, "status": status, "details": details}


@dataclass(slots=True)
class _Found:
    """The lines of a log that a pattern is found in; `seen` says that its programs have lines.

    They come from the oldest or from the newest on.
    """

    log: str
    seen: bool = False
    count: int = 0
    last: str = ""
    _began: float = inf
    _before: float = inf
    _longest: float = 0.0
    _newest: float = -inf

    def add(self, line: str, at: float, pause: float) -> None:
        """Take one more; after a longer pause it is another time that it happens."""
        if abs(at - self._before) > pause:
            self._began = at
        self._longest = max(self._longest, abs(at - self._began))
        self._before = at
        self.count += 1
        if at >= self._newest:
            self._newest, self.last = at, line

    def enough(self, pattern: Pattern) -> bool:
        """Return whether these are as many, and go on for as long, as it takes."""
        return self.count >= pattern.minimum and self._longest >= pattern.minutes * 60


@dataclass(slots=True)
class _Log:
    """A log, its lines that patterns were found in, and from when to when it has any."""

    name: str
    path: Path
    found: dict[str, _Found]
    lines: int = 0
    oldest: float = inf
    newest: float = -inf

    @property
    def window(self) -> str:
        """What was read of it; times are by the clock of the log."""
        if self.oldest == inf:
            return _many(self.lines)
        since, until = (datetime.fromtimestamp(each, UTC) for each in (self.oldest, self.newest))
        return f"{_many(self.lines)}, {since:%b %d %H:%M:%S} to {until:%b %d %H:%M:%S}"

    def read(self, patterns: Sequence[Pattern], hours: int, end: float) -> bool:
        """Read what is at most so many hours older than its end; return whether it was in time.

        A journal is read as a whole: it begins where it was asked to, and its newest line is first.
        """

        @lru_cache(1000)
        def concerned(program: str) -> list[tuple[Pattern, _Found]]:
            return [(each, self.found[each.name]) for each in patterns if each.concerns(program)]

        own, last, at = _PROGRAMS.get(self.name, self.name.partition(".")[0]), inf, 0.0
        for _, found in concerned(own):
            found.seen = True  # also of a kernel that has nothing to say
        if not self.name.startswith("journal"):
            for line in _lines(self.path):
                last = _seconds(line) or last
        for line in _lines(self.path):
            if time.time() > end:
                return False
            if now := _seconds(line):
                # Without a year both seem to be of the same one.
                at = now - 2 * _HALF_A_YEAR if now - last > _HALF_A_YEAR else now
            if last < inf and last - at > hours * 3600:
                continue
            self.lines += 1
            if now:
                self.oldest, self.newest = min(self.oldest, at), max(self.newest, at)
            head = _HEAD.match(line)
            text = line[head.end() :] if head else line
            for pattern, found in concerned(head[1] if head else own):
                found.seen = True
                if pattern.found_in(text):
                    found.add(line, at, pattern.minutes * 60 or inf)
        return True


def _many(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


def _lines(path: Path) -> Iterator[str]:
    """Yield the beginnings of the lines of a log, which may have been cut off anywhere."""
    with gzip.open(path) as file, suppress(EOFError, OSError, zlib.error):
        whole = True
        while data := file.readline(_LONGEST):
            if whole:
                yield data.decode(errors="replace")
            whole = data.endswith(b"\n")


def _seconds(line: str) -> float | None:
    """Return when a line was written by the clock of its log, in whatever zone; a year may lack."""
    found = _TIME.match(line)
    return _parsed(*filter(None, found.groups())) if found else None


@lru_cache(10_000)
def _parsed(day: str, clock: str) -> float | None:
    form = {10: "%Y-%m-%d", 6: "%Y%b %d"}.get(len(day), "%Y%m%d")
    full = f"{day if len(day) == 10 else f'2000{day}'} {clock}"
    with suppress(ValueError):
        return datetime.strptime(full, f"{form} %H:%M:%S").replace(tzinfo=UTC).timestamp()
    return None


if __name__ == "__main__":
    sys.exit(main(os.environ))
