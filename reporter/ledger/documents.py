"""What is shown of results after their bytes have gone into the tarball: small documents.

Nobody's verdict depends on them. One that cannot be written, or is damaged, is not there. Blocks.
"""

import contextlib
import hashlib
import os
import threading
from pathlib import Path
from typing import Final

from reporter.ledger.blobs import NEW_FILE
from reporter.ledger.layout import Layout

_ALL: Final = 256 * 2**20  # bytes of all documents of a run
_LARGEST: Final = 2 * 2**20  # of one of them


class KeptDocuments:
    """The documents of one run, by what they are about. May be used by several threads."""

    def __init__(self, layout: Layout, *, most: int = _ALL) -> None:
        self._layout, self._most = layout, most
        self._lock = threading.Lock()
        self._size: int | None = None

    def write(self, name: str, source: str, data: bytes) -> None:
        """Keep a document, if there is room; `source` says what it was made from, on one line."""
        path, content = self._path(name), source.encode() + b"\n" + data
        new = self._layout.new_body()
        with self._lock, contextlib.suppress(OSError):
            if self._size is None:
                self._size = sum(each.stat().st_size for each in self._layout.kept.iterdir())
            if self._size + len(content) > self._most or len(data) > _LARGEST:
                return
            self._layout.check_room(len(content))
            try:
                with os.fdopen(os.open(new, NEW_FILE, 0o600), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                new.rename(path)
                self._size += len(content)
            finally:
                new.unlink(missing_ok=True)

    def read(self, name: str, source: str) -> bytes | None:
        """Return a document, if there is one that was made from this."""
        try:
            with self._path(name).open("rb") as file:
                made_from, _, data = file.read(_LARGEST + 4096).partition(b"\n")
        except OSError:
            return None
        return data if made_from == source.encode() else None

    def _path(self, name: str) -> Path:
        # A node's name may be as long as a file's.
        return self._layout.kept / hashlib.sha256(name.encode()).hexdigest()
