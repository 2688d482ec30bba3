"""The process that reads one result, and what it is told and answers.

Its arguments are the task with the seconds it may take, and the descriptor that items are written
to, empty for none. Its body is standard input, the answer standard output. The limits on it bound
what strangers' reports can take; of one without the memory for it, what was read before counts.
"""

import contextlib
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import IO, Final, Self

from reporter.results.items import lines, not_passed
from reporter.results.report import Report, Room
from reporter.run.plan import Plugin
from reporter.run.record import Record
from reporter.run.results import ResultStatus, sum_of
from reporter.untar import ACCEPTED, Archive, Kind

MEMORY: Final = 96 * 2**20  # address space beyond what is there at the start
_PIECE: Final = 256 * 2**10
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "junit": (".xml",),
    "e2e": (".xml",),
    "gojson": (".json",),
    "manual": (".yaml", ".yml"),
}
PARSED: Final = frozenset(_SUFFIXES)
"""Formats whose files are read; of the others it is known without what they say."""


@dataclass(frozen=True, slots=True)
class Task:
    """A body to be read. `size` is in bytes, `name` that of the file it becomes if it is none.

    `home` is its directory in the tarball, below the plugin's. `depth` is that of the list
    its items are written to; `counted`: the statuses of branches are counts.
    """

    result_format: str
    files: Collection[str]
    archive: bool
    size: int
    name: str
    home: str
    depth: int = 0
    counted: bool = False

    @classmethod
    def of(
        cls, plugin: Plugin, record: Record, home: str, *, depth: int = 0, counted: bool = False
    ) -> Self:
        """Return what there is to read in a plugin's result."""
        return cls(
            plugin.result_format,
            plugin.result_files,
            record.archive,
            record.size,
            record.filename,
            home,
            depth,
            counted,
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a result says: how many tests have which status, what failed first, and a note.

    The note says why something is unknown. Not `complete`: the process ended before its time.
    `seconds` is what it took. `not_passed` is JSON as `items.not_passed` writes it, of a result
    that was judged only.
    """

    counts: Mapping[str, int] = field(default_factory=lambda: {"unknown": 1})
    failed: str = ""
    text: str = ""
    note: str = ""
    complete: bool = True
    seconds: float = field(default=0.0, compare=False)
    not_passed: bytes = field(default=b"", compare=False, repr=False)


def main() -> None:
    """Read, answer, end. An error ends it."""
    task, seconds = json.loads(sys.argv[1])
    limit(seconds)
    began = time.process_time()
    with (
        open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as body,
        os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")
        if sys.argv[2]
        else contextlib.nullcontext() as listing,
    ):
        found = read(Task(**task), body, listing)
    answer = {**asdict(found), "seconds": time.process_time() - began}
    shown = answer.pop("not_passed")
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + shown)


def limit(seconds: float) -> None:
    """Bound what this process may still take. A limit that is lower already stays."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    # The soft limit of the processor ends it with a signal of its own, the hard one with SIGKILL.
    for kind, most, more in (
        (resource.RLIMIT_AS, used + MEMORY, 0),
        (resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds), 10),
    ):
        _, hard = resource.getrlimit(kind)
        last = most + more if hard == resource.RLIM_INFINITY else min(most + more, hard)
        resource.setrlimit(kind, (min(most, last), last))
    os.nice(5)  # requests and the disk go first
    # Where the kernel ends one process of a container and not all, it is to be this one.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")


def selects(result_format: str, files: Collection[str], name: str) -> bool:
    """Whether a file of an archive is part of the result: it is named, or its name fits."""
    if files:
        return name in files
    return name.endswith(_SUFFIXES.get(result_format, ("",)))


def read(task: Task, body: IO[bytes], listing: IO[str] | None) -> Judgement:
    """Read a result; its items go to `listing`, if there is one, else the page's are returned.

    Raises OSError and BadArchive.
    """
    room = Room.of_page() if listing is None else Room.of_list()
    parse = _parser(task.result_format)
    found: dict[str, Report] = {}
    for path, pieces in _files(task, body):
        found[path] = report = Report(path, room)  # of two, the last one wins
        report.read(parse, pieces)
    reports = [found[path] for path in sorted(found)]
    if listing is not None:
        for report in reports:
            listing.writelines(lines(report.item, task.depth, counted=task.counted))
    counts = sum_of(report.item.counts for report in reports)
    notes = (f"{report.item.name}: {report.note}" for report in reports if report.note)
    wanted = " or ".join(task.files) or f"file of the format {task.result_format}"
    note = next(notes, "") if reports else f"no {wanted} found"
    counts = counts or {ResultStatus.UNKNOWN: 1}
    failed, text = next(filter(None, (report.first for report in reports)), ("", ""))
    return Judgement(
        counts,
        failed,
        text,
        note,
        not_passed=not_passed([test for report in reports for test in report.shown], counts),
    )


def _parser(result_format: str) -> Callable[[Iterator[bytes], Report], None]:
    # Each is loaded only where it is needed: YAML alone costs more than the rest.
    if result_format == "gojson":
        from reporter.results.gojson import parse
    elif result_format == "manual":
        from reporter.results.manual import parse
    else:
        from reporter.results.junit import parse
    return parse


def _files(task: Task, body: IO[bytes]) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield the files of a result that count, each with its pieces."""
    if not task.archive:
        if not task.files or task.name in task.files:
            yield f"{task.home}/{task.name}", iter(lambda: body.read(_PIECE), b"")
        return
    archive = Archive(body, task.size, ACCEPTED)
    for member in archive:
        path = b"/".join(member.path).decode("utf-8", "replace")
        name = path.rpartition("/")[2]
        if member.kind is Kind.FILE and selects(task.result_format, task.files, name):
            pieces = map(bytes, archive.content())
            yield f"{task.home}/{path}", pieces
            for _ in pieces:  # what was not read of it
                pass
