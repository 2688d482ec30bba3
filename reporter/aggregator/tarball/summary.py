"""`sonobuoy_results.yaml` of each plugin: every entry's items, as Sonobuoy lays them out.

Reports are read once more while they are packed; what was counted when they came is what counts.
Blocks: for threads.
"""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import IO, Any, Final, Self

from reporter.aggregator.judging import FAILED_TESTS
from reporter.aggregator.tarball.content import Content, Folder, Sources
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
from reporter.results.process import USED_UP, Budget
from reporter.run.error_report import INVALID, NO_RESULTS, UNREAD
from reporter.run.record import TIMEOUTS, Rank, Record
from reporter.run.results import ResultStatus, count_in, custom, without_result
from reporter.run.state import Snapshot

RESULTS: Final = "sonobuoy_results.yaml"
DEFINITION: Final = "definition.json"
_RAW_LISTED: Final = 10_000  # files of one entry
_MOST_DOCUMENT: Final = 64 * 1024  # bytes of an error's document whose members are shown


class Summary:
    """Collects the items of a plugin while its directory is written."""

    def __init__(self, snapshot: Snapshot, name: str, sources: Sources) -> None:
        plugin = snapshot.plan.plugin(name)
        assert plugin is not None, "an entry that is not in the plan"
        self._plugin, self._sources = plugin, sources
        self._totals: dict[str, int] = {}
        for key in plugin.keys:
            record = snapshot.entries[key].record
            if record is not None:
                count_in(self._totals, _counts(record))
        self._counted, self._depth = custom(self._totals), int(bool(plugin.nodes))
        self._budget = Budget()
        self._files = contextlib.ExitStack()
        self._good: IO[bytes] | None = None
        self._bad: IO[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, home: str, node: str, record: Record, opened: Folder) -> None:
        """Take the entry of a node, whose files are in `home`. Raises OSError."""
        if self._good is None or self._bad is None:
            self._good, self._bad = self._file(), self._file()
        out = self._good if record.rank is Rank.RESULT else self._bad
        if self._plugin.nodes:
            self._list(out, Item(node, meta={"type": "node"}, counts=dict(_counts(record))), 0)
            _write(out, ["  items:\n"])
        for item in self._items(out, home, record, opened):
            self._list(out, item)

    def files(self) -> Iterator[tuple[str, Content]]:
        """Yield what comes into the plugin's directory once all else is in it."""
        if self._good is None or self._bad is None:
            return
        whole, name = self._file(), self._plugin.name
        _write(whole, [head(name, self._totals, counted=self._counted), "items:\n"])
        for part in (self._good, self._bad):
            part.seek(0)
            shutil.copyfileobj(part, whole)
        yield RESULTS, Content(whole, 0, whole.tell())
        if name in self._sources.definitions:
            yield DEFINITION, Content.of(_shown(self._sources.definitions[name]).encode())

    def _items(self, out: IO[bytes], home: str, record: Record, opened: Folder) -> Iterator[Item]:
        """Yield the items of an entry, but for those that are written as its reports are read."""
        plugin, path = self._plugin, f"{home}/{record.filename}"
        if record.rank is not Rank.RESULT:
            yield _error(home, record)
        elif plugin.result_format in PARSED and not _adapter(record, raw=False):
            found = self._read(out, home, record)
            if not found.complete:
                yield unread_item(record.filename, path, found.note)
        elif plugin.result_format == "raw" and not _adapter(record, raw=True):
            files = (
                name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
                for name, content in opened.walk("")
                if content is not None
            )
            counting = (
                name
                for name in files
                if not record.archive or selects("raw", plugin.result_files, _base(name))
            )
            for name in islice(counting, _RAW_LISTED):
                yield raw_item(_base(name), f"{home}/{name}")
        else:
            yield adapter_item(record.filename, path, record.verdict, record.reason, record.message)

    def _read(self, out: IO[bytes], home: str, record: Record) -> Judgement:
        """Read a result once more; if that has no end, nothing of it is written."""
        if record.reason == UNREAD:
            return Judgement(note=USED_UP, complete=False)
        task = Task.of(self._plugin, record, home, depth=self._depth, counted=self._counted)
        begin = out.tell()
        with self._sources.open_blob(record.blob) as body:
            found = self._sources.judge.judge(
                task, body, out, budget=self._budget, digest=record.digest
            )
        if out.seek(0, os.SEEK_END) == begin:
            return replace(found, complete=False)
        if not found.complete:
            out.seek(begin)
            out.truncate()
        return found

    def _list(self, out: IO[bytes], item: Item, depth: int | None = None) -> None:
        _write(out, lines(item, self._depth if depth is None else depth, counted=self._counted))

    def _file(self) -> IO[bytes]:
        # Unbuffered: another process writes to it as well.
        return self._files.enter_context(
            tempfile.TemporaryFile("w+b", buffering=0, dir=self._sources.unfinished)
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


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _write(out: IO[bytes], texts: Iterable[str]) -> None:
    data = memoryview("".join(texts).encode())
    while data:
        data = data[out.write(data) :]
