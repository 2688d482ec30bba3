"""The tarball of a run's results, downloaded from its status listener: resumed, and measured."""

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, TextIO

from reporter.cli import output as show
from reporter.cli.exits import CannotTell
from reporter.cli.table import Bar
from reporter.common.objects import number, section, text
from reporter.common.text import clean
from reporter.run.view import over
from reporter.runctl.origin import Origin
from reporter.runctl.server import RequestFailed, StatusServer, refusal

_PIECE = 256 * 1024
_SILENCE = 60.0  # seconds without a byte
_PAUSE = 1.0  # seconds before what was cut off is resumed


def find_tarball(chosen: Origin) -> tuple[StatusServer, Mapping[str, Any]]:
    """Return who has the tarball, and its name, size and SHA-256. Raises CannotTell."""
    look = chosen.look(entries=False)
    if look.document is None:
        raise CannotTell(look.trouble)
    server = chosen.server  # first: without it the document is a guess
    info = section(look.document, "tar-info")
    if not text(info, "name") or not text(info, "sha256"):
        if over(look.document):
            raise CannotTell("there are no results: packing was given up")
        status = text(look.document, "status")
        raise CannotTell(f"there are no results yet: the run is {status}")
    return server, info


def download(chosen: Origin, file: BinaryIO) -> bool:
    """Write the tarball to a file that nobody keeps; return whether it is what was announced.

    Raises CannotTell and OSError.
    """
    server, info = find_tarball(chosen)
    try:
        found = fetch(server, file, number(info, "size") or 0)
    except RequestFailed as error:
        raise CannotTell(str(error)) from None
    return found == text(info, "sha256")


def fetch(server: StatusServer, file: BinaryIO, size: int) -> str:
    """Write the body to the file and return its SHA-256, empty once it is longer than `size`.

    A download that was cut off is resumed, as long as each time more of it comes. Raises
    RequestFailed, CannotTell, OSError.
    """
    digest, bar = hashlib.sha256(), _SizeBar(sys.stderr, size)
    written = most = 0
    try:
        while True:
            try:
                for at, piece in _pieces(server, written):
                    if at < written:
                        digest, written = hashlib.sha256(), 0
                        file.seek(0)
                        file.truncate()
                    digest.update(piece)
                    _write(file, piece)
                    written += len(piece)
                    if written > size:
                        return ""
                    bar.draw(written)
                return digest.hexdigest()
            except RequestFailed:
                if written <= most:
                    raise
                most = written
                time.sleep(_PAUSE)
    finally:
        bar.clear()


def confirm(server: StatusServer, digest: str) -> str:
    """Say that the tarball with this SHA-256 is kept; return why that was not heard, if so."""
    try:
        answer = server.post("/results/retrieved", json.dumps({"sha256": digest}).encode())
    except RequestFailed as error:
        return str(error)
    if answer.status == 200:
        return ""
    return clean(answer.body[:300].decode(errors="replace"), 300, f"answered {answer.status}")


def _pieces(server: StatusServer, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of the body and where each belongs: from `at` on, or all if it must be so."""
    part = {"Range": f"bytes={at}-"} if at else {}
    with server.open("/results", part, timeout=_SILENCE) as response:
        if response.status in {401, 403}:
            raise CannotTell(f"{server.url}: {refusal(response.read(300))} (forbidden)")
        resumed = response.headers.get("Content-Range", "").startswith(f"bytes {at}-")
        if response.status == 200:
            at = 0
        elif response.status != 206 or not resumed:
            raise CannotTell(f"{server.url}: answered {response.status} for the results")
        end = None if response.length is None else at + response.length
        while piece := response.read1(_PIECE):
            yield at, piece
            at += len(piece)
        if end is not None and at != end:
            raise RequestFailed(f"{server.url}: the results were cut off after {at} bytes")


def _write(file: BinaryIO, piece: bytes) -> None:
    try:
        file.write(piece)
    except OSError as error:
        # Not to be taken for trouble with the server.
        raise CannotTell(f"cannot write {file.name}: {error.strerror}") from None


class _SizeBar(Bar):
    """How much of so many bytes has come, on a terminal; elsewhere nothing."""

    def __init__(self, out: TextIO, size: int) -> None:
        super().__init__(out)
        self._size, self._drawn = size, 0.0

    def draw(self, written: int) -> None:
        """Show it, ten times a second at most."""
        now = time.monotonic()
        if now > self._drawn + 0.1:
            self._drawn = now
            share = f" ({written / self._size:.0%})" if self._size else ""
            self.put(f"{show.size(written)} of {show.size(self._size)}{share}")
