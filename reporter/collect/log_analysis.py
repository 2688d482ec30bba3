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
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from reporter.collect.gatherers import RECORD
from reporter.collect.logs import COMPLETE, PARTIAL, chosen_hours
from reporter.collect.snapshot.redact import redact_text
from reporter.common import schema
from reporter.common.kubernetes_yaml import read_documents
from reporter.common.text import clean
from reporter.common.yaml_text import to_yaml

REPORT: Final = "report.yaml"
TABLE: Final = Path(__file__).with_name("log_patterns.yaml")
_MOST_BYTES, _MOST_VALUES = 1024 * 1024, 20_000  # of a table
_LONGEST: Final = 4096  # bytes of a line; what follows is a line without a beginning
_MOST_LINES: Final = 1000  # that are kept of a log for a pattern
_SHOWN: Final = 500  # bytes of a line
_RESERVE: Final = 10.0  # seconds to write the report in
_HALF_A_YEAR: Final = 183 * 86400.0
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
    """An entry of the table. Of a text, the parts between its `*` occur in a line in this order."""

    name: str
    match: tuple[tuple[str, ...], ...]
    unless: tuple[tuple[str, ...], ...]
    programs: tuple[str, ...]
    minimum: int
    description: str

    def concerns(self, program: str) -> bool:
        """Return whether lines of a program count."""
        return not self.programs or any(fnmatchcase(program, each) for each in self.programs)

    def found_in(self, text: str) -> bool:
        """Return whether a line says it."""
        return any(_occur(each, text) for each in self.match) and not any(
            _occur(each, text) for each in self.unless
        )


def _occur(parts: Sequence[str], text: str) -> bool:
    # No regular expression: a few characters of one could take hours for a line.
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def read_patterns(data: bytes) -> tuple[dict[str, Pattern], list[str]]:
    """Return the entries of a table by their names, and all mistakes in it."""
    documents, mistakes = read_documents(data, _MOST_BYTES, _MOST_VALUES)
    found: dict[str, Pattern] = {}
    for document in documents:
        if not document.mistakes:
            for place, text in schema.violations("log-patterns.v1", document.value):
                document.say(place, text)
        mistakes += document.mistakes
        for each in () if document.mistakes else document.value:
            found[each["name"]] = Pattern(
                name=each["name"],
                match=_parts(each["match"]),
                unless=_parts(each.get("unless", ())),
                programs=tuple(each.get("programs", ())),
                minimum=each.get("minimum", 1),
                description=each.get("description", ""),
            )
    return found, [f"line {each.line}: {each}" for each in mistakes]


def _parts(texts: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(each.split("*")) for each in texts)


def main(environ: Mapping[str, str]) -> int:
    """Write the report; return 0, or 1 where not all that was asked for could be analysed."""
    out = Path(environ.get("GATHER_OUT") or ".")
    end = float(environ.get("GATHER_DEADLINE") or time.time() + 60) - _RESERVE
    hours, problems = 24, list[str]()
    try:
        hours = chosen_hours(environ)
    except ValueError as error:
        problems.append(str(error))
    patterns, _ = read_patterns(TABLE.read_bytes())
    if added := os.fsencode(environ.get("LOG_PATTERNS", "")):
        more, mistakes = read_patterns(added)
        patterns |= more
        problems += [f"LOG_PATTERNS: {each}" for each in mistakes]
    logs = out.absolute().parent / "logs"
    problems += _not_kept(logs)
    found, missing = _search(logs, list(patterns.values()), hours, end)
    about: dict[str, Any] = {"name": "logs", "status": "passed"}
    if problems := [*problems, *missing]:
        message = clean("; ".join(problems), 1000)
        print(message, file=sys.stderr)
        about |= {"status": "unknown", "details": {"message": message}}
    items = [about, *(_item(each, *found[name]) for name, each in patterns.items())]
    (out / REPORT).write_text(to_yaml({"name": "log-analysis", "items": items}), "utf-8")
    return PARTIAL if problems else COMPLETE


def _search(
    logs: Path, patterns: Sequence[Pattern], hours: int, end: float
) -> tuple[dict[str, tuple[str, Sequence[str]]], list[str]]:
    """Return for each pattern the log that has it most often, and those lines of the last hours.

    A line may be in several logs, so they are not added up. Also returns why that is not all.
    """
    found: dict[str, tuple[str, Sequence[str]]] = {each.name: ("", ()) for each in patterns}
    lines = 0
    for path in sorted(logs.glob("*.gz")):
        journal = path.name.startswith("journal")  # it begins where it was asked to
        if not journal and time.time() - path.stat().st_mtime > hours * 3600:
            continue
        log = _Log(path, patterns)
        in_time = log.read(end)
        lines += log.lines
        for name, (_, most) in found.items():
            told = log.found(name, None if journal else hours)
            if len(told) > len(most):
                found[name] = path.stem, told
        if not in_time:
            return found, [f"out of time in {path.stem}"]
    return found, [] if lines else [f"no log has lines of the last {hours} hours"]


def _not_kept(logs: Path) -> Iterator[str]:
    """Yield why there is not every log, as the record of `logs` has it."""
    try:
        record = json.loads((logs / RECORD).read_bytes())
    except OSError:
        yield "the gatherer logs has not run"
        return
    if record["status"] != "complete":
        yield record.get("stderr") or f"the gatherer logs: {record['status']}"


def _item(pattern: Pattern, log: str, lines: Sequence[str]) -> dict[str, Any]:
    if len(lines) < pattern.minimum:
        return {"name": pattern.name, "status": "passed"}
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    count = f"at least {count}" if len(lines) == _MOST_LINES else count
    last = clean(redact_text(lines[-1])[0], _SHOWN)
    message = f"{pattern.description} {count} in {log}, the last one: {last}".strip()
    return {"name": pattern.name, "status": "failed", "details": {"message": message}}


class _Log:
    """A log, and its lines that patterns were found in."""

    def __init__(self, path: Path, patterns: Sequence[Pattern]) -> None:
        self.lines = 0
        self._path = path
        self._found = {each.name: deque[str](maxlen=_MOST_LINES) for each in patterns}
        self._last = ""
        self._concerned = lru_cache(1000)(
            lambda program: [each for each in patterns if each.concerns(program)]
        )

    def read(self, end: float) -> bool:
        """Read it; return whether that was done by `end`."""
        own = self._path.name.partition(".")[0]
        own = "kernel" if own == "dmesg" else own
        with gzip.open(self._path) as file, suppress(EOFError, OSError, zlib.error):
            while data := file.readline(_LONGEST):
                self.lines += 1
                if not self.lines % 1000 and time.time() > end:
                    return False
                line = data.decode(errors="replace")
                head = _HEAD.match(line)
                text = line[head.end() :] if head else line
                for each in self._concerned(head[1] if head else own):
                    if each.found_in(text):
                        self._found[each.name].append(line)
                if _TIME.match(line):
                    self._last = line
        return True

    def found(self, name: str, hours: int | None) -> Sequence[str]:
        """Return the lines with a pattern, of the last hours before the end of the log."""
        last = None if hours is None else _seconds(self._last)
        if last is None or hours is None:
            return self._found[name]
        return [each for each in self._found[name] if _age(each, last) <= hours * 3600]


def _age(line: str, last: float) -> float:
    at = _seconds(line)
    age = 0.0 if at is None else last - at
    # Without a year both seem to be of the same one.
    return age if age > -_HALF_A_YEAR else age + 2 * _HALF_A_YEAR


def _seconds(line: str) -> float | None:
    """Return when a line was written by the clock of its log, in whatever zone; a year may lack."""
    found = _TIME.match(line)
    if found is None:
        return None
    day, clock = filter(None, found.groups())
    form = {10: "%Y-%m-%d", 6: "%Y%b %d"}.get(len(day), "%Y%m%d")
    day = day if len(day) == 10 else f"2000{day}"
    with suppress(ValueError):
        return (
            datetime.strptime(f"{day} {clock}", f"{form} %H:%M:%S").replace(tzinfo=UTC).timestamp()
        )
    return None


if __name__ == "__main__":
    sys.exit(main(os.environ))
