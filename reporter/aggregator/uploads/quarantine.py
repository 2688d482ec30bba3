"""Bodies that were refused, kept for people: the newest of each key, within caps.

Best effort: that a body cannot be kept here changes nothing for its sender. Blocks.
"""

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Final

from reporter.aggregator.store.blobs import StagedBody
from reporter.aggregator.store.files import Step, write_new
from reporter.aggregator.store.layout import Layout
from reporter.core.run.plan import Key
from reporter.core.run.status import rfc3339
from reporter.core.run.upload_head import Meta
from reporter.settings.aggregator_limits import Limits

_HEAD_BYTES: Final = 64 * 1024  # of a body that is too large to be kept whole
BODY: Final = "body"
WHY: Final = "why.json"


class Quarantine:
    """The directory of refused bodies. Its methods may be called from several threads."""

    def __init__(self, layout: Layout, limits: Limits, step: Step) -> None:
        self._layout, self._limits, self._step = layout, limits, step
        self._lock = threading.Lock()
        self._sizes: dict[Path, int] = {}  # oldest first
        self._open = True

    def resume(self) -> None:
        """Begin with what is there already. Raises OSError."""
        homes = sorted(self._layout.quarantine.glob("*/*"), key=lambda home: home.stat().st_mtime)
        with self._lock:
            self._sizes = {home: _size(home) for home in homes}

    def close(self) -> None:
        """Take nothing more: somebody reads it."""
        with self._lock:
            self._open = False

    def put(self, key: Key, body: StagedBody, meta: Meta, reason: str, *, at: float) -> None:
        """Keep a staged body, or its head, and why it was refused, `at` Unix seconds.

        The staged file is used up if this succeeds. Raises OSError.
        """
        body.write(())  # there is a file even if nothing came
        body.close()
        whole = body.size <= self._limits.quarantine_body_bytes
        kept = body.size if whole else min(body.size, _HEAD_BYTES)
        tree = self._layout.new_tree()
        try:
            if not whole:
                os.truncate(body.path, kept)
            self._step("quarantine")
            tree.mkdir(mode=0o700)
            shutil.move(body.path, tree / BODY)
            why = {
                "key": str(key),
                "reason": reason,
                "at": rfc3339(at),
                "sha256": body.digest,
                "filename": meta.filename,
                "content_type": meta.content_type,
                "certificate": meta.serial,
                "size": body.size,
                "kept": kept,
            }
            text = json.dumps(why, indent=2)
            write_new(tree / WHY, text.encode())
            self._swap_in(tree, self._layout.refused(key), kept)
        finally:
            shutil.rmtree(tree, ignore_errors=True)

    def _swap_in(self, tree: Path, home: Path, size: int) -> None:
        with self._lock:
            if not self._open:
                return
            self._sizes.pop(home, None)
            while self._sizes and sum(self._sizes.values()) + size > self._limits.quarantine_bytes:
                oldest = next(iter(self._sizes))
                shutil.rmtree(oldest, ignore_errors=True)
                del self._sizes[oldest]
            shutil.rmtree(home, ignore_errors=True)
            home.parent.mkdir(mode=0o700, exist_ok=True)
            tree.rename(home)
            self._sizes[home] = size

    def clear(self) -> None:
        """Remove everything. Raises OSError."""
        for folder in self._layout.quarantine.iterdir():
            shutil.rmtree(folder)


def _size(home: Path) -> int:
    try:
        return (home / BODY).stat().st_size
    except FileNotFoundError:
        return 0
