"""`sonobuoy_results.yaml` of each plugin: every entry's items, as Sonobuoy lays them out.

Reports are read once more while they are packed; what was counted when they came is what counts.
Blocks: for threads.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

from reporter.aggregator.judging import FAILED_TESTS
from reporter.aggregator.tarball.content import Content, Folder
from reporter.collect.snapshot.redact import BLANK, redact
from reporter.common.objects import json_object
from reporter.results.child import PARSED, Judgement, Task, selects
from reporter.results.items import (
    Item,
    adapter_item,
    error_item,
    head,
    lines,
    raw_item,
    unread_item,
)
from reporter.results.process import USED_UP, Budget, Judge
from reporter.run.error_report import INVALID, NO_RESULTS, UNREAD
from reporter.run.plan import Plugin
from reporter.run.record import TIMEOUTS, Rank, Record
from reporter.run.results import ResultStatus, count_in, custom, without_result
from reporter.run.state import Snapshot

RESULTS: Final = b"sonobuoy_results.yaml"
DEFINITION: Final = b"definition.json"
_RAW_LISTED: Final = 10_000  # files of one entry
_MOST_DOCUMENT: Final = 64 * 1024  # bytes of an error's document whose members are shown


class Summaries:
    """Collects the items of a plugin while its directory is written, one plugin at a time.

    `definitions` are documents by plugin, `open_blob` opens a blob by its name, `unfinished`
    is a directory for files without a name.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        judge: Judge,
        definitions: Mapping[str, Mapping[str, Any]],
        open_blob: Callable[[str], IO[bytes]],
        unfinished: Path,
    ) -> None:
        self._snapshot, self._judge, self._definitions = snapshot, judge, definitions
        self._open_blob, self._unfinished = open_blob, unfinished
        self._files = contextlib.ExitStack()
        self._good: IO[bytes] | None = None
        self._bad: IO[bytes] | None = None
        self._budget = Budget()

    def close(self) -> None:
        """Give up what is begun."""
        self._good, self._bad, self._budget = None, None, Budget()
        self._files.close()

    def seen(self, path: bytes, record: Record, opened: Folder) -> None:
        """Take an entry of the plugin whose directory is being written. Raises OSError."""
        _, name, kind, node = path.decode().split("/")
        plugin = self._snapshot.plan.plugin(name)
        assert plugin is not None, "an entry that is not in the plan"
        if self._good is None or self._bad is None:
            self._good, self._bad = self._file(), self._file()
        out = self._good if record.rank is Rank.RESULT else self._bad
        counted = custom(self._counts(plugin))
        if plugin.nodes:
            above = Item(node, meta={"type": "node"}, counts=dict(_counts(record)))
            _write(out, [*lines(above, 0, counted=counted), "  items:\n"])
        self._items(out, plugin, f"{kind}/{node}", record, opened, counted=counted)

    @contextlib.contextmanager
    def finished(self, path: bytes) -> Iterator[Folder]:
        """Give what comes into a plugin's directory once all else is in it."""
        name = path.rpartition(b"/")[2].decode()
        plugin = self._snapshot.plan.plugin(name)
        if self._good is None or self._bad is None or plugin is None:
            yield Folder()
            return
        whole = self._file()
        counts = self._counts(plugin)
        _write(whole, [head(name, counts, counted=custom(counts)), "items:\n"])
        for part in (self._good, self._bad):
            part.seek(0)
            shutil.copyfileobj(part, whole)
        found = Folder({RESULTS: Content(whole, 0, whole.tell())})
        if name in self._definitions:
            text = self._file()
            _write(text, [_shown(self._definitions[name])])
            found[DEFINITION] = Content(text, 0, text.tell())
        try:
            yield found
        finally:
            self.close()

    def _counts(self, plugin: Plugin) -> dict[str, int]:
        counts: dict[str, int] = {}
        for key in plugin.keys:
            record = self._snapshot.entries[key].record
            if record is not None:
                count_in(counts, _counts(record))
        return counts

    def _items(
        self,
        out: IO[bytes],
        plugin: Plugin,
        home: str,
        record: Record,
        opened: Folder,
        *,
        counted: bool,
    ) -> None:
        depth, read = int(bool(plugin.nodes)), plugin.result_format
        if record.rank is not Rank.RESULT:
            made: Iterator[Item] = iter((_error(home, record),))
        elif read in PARSED and not _adapter(record, raw=False):
            self._read(out, plugin, home, record, depth, counted=counted)
            return
        elif read == "raw" and not _adapter(record, raw=True):
            names = (
                name
                for name in _names(opened)
                if not record.archive or selects(read, plugin.result_files, _base(name))
            )
            made = (raw_item(_base(name), f"{home}/{name}") for name in islice(names, _RAW_LISTED))
        else:
            path = f"{home}/{record.filename}"
            made = iter(
                (
                    adapter_item(
                        record.filename, path, record.verdict, record.reason, record.message
                    ),
                )
            )
        for item in made:
            _write(out, lines(item, depth, counted=counted))

    def _read(
        self,
        out: IO[bytes],
        plugin: Plugin,
        home: str,
        record: Record,
        depth: int,
        *,
        counted: bool,
    ) -> None:
        task = Task.of(plugin, record, home, depth=depth, counted=counted)
        begin = out.tell()
        found = Judgement(note=USED_UP, complete=False)
        if record.reason != UNREAD:
            with self._open_blob(record.blob) as body:
                found = self._judge.judge(
                    task, body, out, budget=self._budget, digest=record.digest
                )
        end = out.seek(0, os.SEEK_END)
        if not found.complete or end == begin:
            out.seek(begin)
            out.truncate()
            item = unread_item(record.filename, f"{home}/{record.filename}", found.note)
            _write(out, lines(item, depth, counted=counted))

    def _file(self) -> IO[bytes]:
        # Unbuffered: another process writes to it as well.
        return self._files.enter_context(
            tempfile.TemporaryFile("w+b", buffering=0, dir=self._unfinished)
        )


def _shown(definition: Mapping[str, Any]) -> str:
    """A definition without what is secret in it: the tarball leaves the cluster."""
    try:
        document = json.loads(json.dumps(definition))
        redact(document)
    except RecursionError:  # no Pod has it so deep, and no tarball fails for it
        return "{}"
    config = document["spec"]["config"]
    config.update(dict.fromkeys(config, BLANK))
    return json.dumps(document, indent=1)


def _error(home: str, record: Record) -> Item:
    """The item of a result that did not come; known by its cause."""
    small = len(record.document) <= _MOST_DOCUMENT
    document = json_object(record.document) if small else None
    if document is None:
        document = {"error": record.text}
    timeout = record.cause in TIMEOUTS
    return error_item(
        f"{home}/error.json", record.text, document, timeout=timeout, verdict=record.verdict
    )


def _counts(record: Record) -> Mapping[str, int]:
    """What an entry adds to the counts of its plugin."""
    if record.counts:
        return record.counts
    if record.cause in TIMEOUTS:
        return {ResultStatus.TIMEOUT: 1}
    if record.rank is not Rank.RESULT:
        return {without_result(record.verdict): 1}
    return {record.verdict or ResultStatus.FAILED: 1}


def _adapter(record: Record, *, raw: bool) -> bool:
    """Whether its sender said that it is an adapter's result, whatever the plugin's format is."""
    own = ("", NO_RESULTS) if raw else ("", NO_RESULTS, INVALID, UNREAD, FAILED_TESTS)
    return not record.archive and record.reason not in own


def _names(folder: Folder, above: str = "") -> Iterator[str]:
    """The paths of all files, by name."""
    for name in sorted(folder):
        path, below = above + name.decode("utf-8", "replace"), folder[name]
        if isinstance(below, Folder):
            yield from _names(below, f"{path}/")
        else:
            yield path


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _write(out: IO[bytes], texts: Iterable[str]) -> None:
    data = memoryview("".join(texts).encode())
    while data:
        data = data[out.write(data) :]
