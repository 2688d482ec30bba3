"""`splat DIR`: the results of a run as one stream, which `sonobuoy retrieve` reads by an exec."""

import gzip
import os
import tarfile
from pathlib import Path
from typing import BinaryIO, cast

_CHUNK = 256 * 1024


def splat(directory: Path, out: BinaryIO) -> None:
    """Write one gzip'd tar of every `*.tar.gz` in `directory`, by base name, to `out`.

    Raises OSError for what cannot be read, and when nobody takes the output any more.
    """
    files = sorted(path for path in directory.iterdir() if path.name.endswith(".tar.gz"))
    with (
        # The archives are compressed already.
        gzip.GzipFile("", "wb", 1, out, mtime=0) as zipped,
        tarfile.open(
            fileobj=cast("BinaryIO", zipped), mode="w|", format=tarfile.GNU_FORMAT, bufsize=_CHUNK
        ) as tar,
    ):
        for path in files:
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                member = tarfile.TarInfo(path.name)
                member.size, member.mtime, member.mode = found.st_size, int(found.st_mtime), 0o644
                tar.addfile(member, file)
