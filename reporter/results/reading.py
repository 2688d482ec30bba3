"""Reading a result's files and writing its items, in the process that is there for it."""

import os
from collections.abc import Iterable, Iterator
from typing import IO

from reporter.results.listing import lines
from reporter.results.not_passed import NotPassed, Places
from reporter.results.parsers import PARSERS
from reporter.results.report import FileReport, Findings, selects
from reporter.results.task import Task
from reporter.results.tree import NOTHING, FirstFailure, Item, Room
from reporter.untar import ACCEPTED, Archive, Kind

_PIECE = 256 * 1024
_TEXT = 8 * 2**20  # characters of all files together
_OTHERS = 20_000  # items of all files together, beside those that have passed
_PASSED = 40_000


class UnpackedTooMuch(Exception):
    """There is more to unpack than the task allows."""


def read(task: Task, body: IO[bytes], listing: IO[str] | None) -> tuple[Findings, int]:
    """Read a result; its items go to `listing`, if there is one. Return also what was unpacked.

    Without a listing the findings have the tests that did not pass. Raises OSError, `BadArchive`,
    `UnpackedTooMuch`.
    """
    findings, places, files = Findings(), Places(), _Files(task, body)
    shared = Room(_PASSED, _OTHERS, _TEXT)
    kept: dict[str, tuple[Item, FirstFailure | None, str, NotPassed | None]] = {}
    for path, pieces in files:
        room = NOTHING if listing is None else _part(shared)
        free = (room.passed, room.others, room.text)
        told = NotPassed(places) if listing is None else None
        name = os.path.basename(path)  # noqa: PTH119
        report = FileReport(PARSERS[task.result_format], name, path, room, told)
        for piece in pieces:
            report.feed(piece)
        item = report.item()
        shared.passed -= free[0] - max(room.passed, 0)
        shared.others -= free[1] - max(room.others, 0)
        shared.text -= free[2] - max(room.text, 0)
        kept[path] = item, report.first, report.note, told  # of two, the last one wins
    for path in sorted(kept):
        item, first, note, told = kept[path]
        findings.add(item, first, note)
        if told is not None:
            findings.not_passed.extend(told)
        if listing is not None:
            listing.writelines(lines(item, task.depth, counted=task.counted))
    wanted = " or ".join(task.files) or f"file of the format {task.result_format}"
    findings.end(f"no {wanted} found")
    return findings, files.unpacked


def _part(shared: Room) -> Room:
    plain = Room()
    return Room(
        min(plain.passed, shared.passed),
        min(plain.others, shared.others),
        min(plain.text, shared.text),
    )


class _Files:
    """The files of a result that count, each with its pieces; `unpacked` are the bytes so far."""

    def __init__(self, task: Task, body: IO[bytes]) -> None:
        self._task, self._body = task, body
        self.unpacked = 0

    def __iter__(self) -> Iterator[tuple[str, Iterable[bytes]]]:
        task, body = self._task, self._body
        if not task.archive:
            if not task.files or task.name in task.files:
                self._unpack(task.size)
                yield f"{task.home}/{task.name}", iter(lambda: body.read(_PIECE), b"")
            return
        archive = Archive(body, task.size, ACCEPTED)
        for member in archive:
            self._unpack(member.size)  # also what is only passed over
            if member.kind is Kind.FILE and selects(
                task.result_format, task.files, _shown(member.path[-1])
            ):
                path = "/".join(_shown(part) for part in member.path)
                yield f"{task.home}/{path}", map(bytes, archive.content())

    def _unpack(self, size: int) -> None:
        self.unpacked += size
        if self.unpacked > self._task.unpacked:
            raise UnpackedTooMuch


def _shown(name: bytes) -> str:
    return name.decode("utf-8", "replace")
