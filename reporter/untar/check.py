"""Seeing whether all of an archive may be taken. Creates nothing."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from reporter.untar.archive import Archive
from reporter.untar.values import BadArchive, Caps, Kind, Source


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of an archive that may be taken.

    `notes` says what is not created of it, `wanted` is the content of the file that was asked for,
    None if there is no such file. `files` is how many were counted.
    """

    notes: tuple[str, ...]
    wanted: bytes | None
    files: int


def check(
    source: Source,
    size: int,
    caps: Caps,
    *,
    wanted: str = "",
    wanted_bytes: int = 0,
    counted: Collection[bytes] = (),
    clock: Callable[[], float] = time.monotonic,
) -> Checked:
    """Read an archive of `size` bytes in full.

    `wanted` is the name of a file at its top that may have `wanted_bytes` and is given back.
    `counted` are the names of the files that are counted, wherever they are; empty for all.
    Raises `NotTar`, `BadArchive` and OSError.
    """
    archive = Archive(source, size, caps, clock)
    name, found, trouble, files = wanted.encode(), None, "", 0
    for member in archive:
        if member.kind is Kind.FILE and not member.again:
            files += not counted or member.path[-1] in counted
        if member.path[:1] != (name,) or member.kind not in (Kind.FILE, Kind.DIRECTORY):
            continue
        if member.kind is Kind.DIRECTORY or len(member.path) > 1:
            trouble = f"{wanted} is a directory"
        elif member.size > wanted_bytes:
            trouble = f"{wanted} is larger than {wanted_bytes} bytes"
        else:
            found, trouble = b"".join(archive.content()), ""
    if trouble:
        raise BadArchive(trouble)
    return Checked(archive.notes, found, files)
