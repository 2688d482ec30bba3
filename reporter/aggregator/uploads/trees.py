"""The derived trees: `plugins/` and `superseded/`, made from rows and blobs and nothing else.

One key at a time; the caller sees to it that no two threads work on the same key. Blocks.
"""

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from reporter.aggregator.store.files import (
    READ_FILE,
    Step,
    link_or_copy,
    remove_tree,
    write_new,
)
from reporter.aggregator.store.layout import Layout
from reporter.aggregator.uploads.limits import Limits
from reporter.aggregator.uploads.meta import DEFAULT_NAME
from reporter.aggregator.uploads.reports import FILE
from reporter.aggregator.uploads.swap import swap_in, take_out
from reporter.aggregator.uploads.unpack import unpack
from reporter.core.run.entry import Entry
from reporter.core.run.plan import Plan
from reporter.core.run.record import Rank, Record, error_document


class Trees:
    """What people find under the output directory."""

    def __init__(
        self,
        layout: Layout,
        limits: Limits,
        step: Step,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._layout, self._limits = layout, limits
        self._step, self._clock = step, clock

    def settle(self, entry: Entry, prepared: Path | None = None) -> None:
        """Bring the trees of one key in line with its row. Raises OSError, BadArchive.

        `prepared` is the tree of its record, if that has been made already; it is used up. Whatever
        happens, `plugins/` never shows a result and an error of one key at once.
        """
        layout, key, record = self._layout, entry.key, entry.record
        made: list[Path] = [] if prepared is None else [prepared]
        try:
            if entry.superseded is not None:
                made.append(old := self._build(self._still_there(entry.superseded)))
            if record is not None and prepared is None:
                made.append(prepared := self._build(record))
            self._step("supersede")
            good, bad = layout.result(key), layout.error(key)
            complete = record is not None and record.rank is Rank.RESULT
            self._take_out(bad if complete else good)
            if entry.superseded is not None:
                swap_in(old, layout.replaced(key), layout.new_tree())
            else:
                self._take_out(layout.replaced(key))
            self._step("place")
            if prepared is not None:
                swap_in(prepared, good if complete else bad, layout.new_tree())
            else:
                self._take_out(bad)
        except BaseException:
            for tree in made:
                with contextlib.suppress(OSError):
                    remove_tree(tree)
            raise

    def remove_strangers(self, plan: Plan) -> None:
        """Remove the trees of keys that the plan does not have. Raises OSError."""
        known = {
            path
            for key in plan.keys
            for path in (self._layout.result(key), self._layout.error(key))
        }
        known |= {self._layout.replaced(key) for key in plan.keys}
        homes = [
            *self._layout.plugins.glob("*/results/*"),
            *self._layout.plugins.glob("*/errors/*"),
            *self._layout.superseded.glob("*/*"),
        ]
        for home in homes:
            if home not in known:
                self._take_out(home)

    def clear(self) -> None:
        """Remove everything derived, and the quarantine. Raises OSError."""
        layout = self._layout
        for folder in (layout.plugins, layout.superseded, layout.quarantine):
            for home in folder.iterdir():
                self._take_out(home)

    def _take_out(self, home: Path) -> None:
        take_out(home, self._layout.new_tree())

    def _still_there(self, record: Record) -> Record:
        """The record without its bytes, if they are gone: nobody would send them again."""
        if not record.digest or self._layout.blob(record.digest).exists():
            return record
        return replace(record, digest="", unpacked=False)

    def _build(self, record: Record) -> Path:
        """A new tree with what a record stands for."""
        tree = self._layout.new_tree()
        try:
            self._fill(tree, record)
        except BaseException:
            with contextlib.suppress(OSError):
                remove_tree(tree)
            raise
        return tree

    def _fill(self, tree: Path, record: Record) -> None:
        blob, result = self._layout.blob(record.digest), record.rank is Rank.RESULT
        if record.unpacked:
            fd = os.open(blob, READ_FILE)
            try:
                # It was taken once; a slow disk at the start must not lose it.
                unpack(
                    fd,
                    record.size,
                    tree,
                    self._limits,
                    deadline=float("inf"),
                    clock=self._clock,
                )
            finally:
                os.close(fd)
        else:
            tree.mkdir(mode=0o700)
            if record.digest:
                link_or_copy(blob, tree / ((record.filename or DEFAULT_NAME) if result else FILE))
        if not result and (record.document or not record.digest):
            text = record.document or error_document(record.text, record.cause, record.reason)
            write_new(tree / FILE, text.encode("utf-8", "replace"))
