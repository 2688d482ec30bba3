"""File systems of their own for what runs keep on volumes: they get full, stand still and decay."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SIZE = 300_000_000
LEFT = 100_000


@contextmanager
def disks(places: list[Path], images: Path) -> Iterator[None]:
    """Have a small disk at each of these directories."""
    images.mkdir()
    try:
        for number, place in enumerate(places):
            image = images / str(number)
            with image.open("wb") as file:
                file.truncate(SIZE)
            subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
            subprocess.run(["mount", "-o", "loop", image, place], check=True)
            place.chmod(0o777)
        yield
    finally:
        for place in filter(Path.is_mount, places):
            subprocess.run(["umount", "--lazy", place], check=True)


def fill(place: Path, seconds: float) -> None:
    """Leave it hardly any room for so long."""
    filler = place / "filler"
    with filler.open("wb") as file, suppress(OSError):
        free = os.statvfs(place)
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - LEFT)
    time.sleep(seconds)
    filler.unlink()


def freeze(place: Path, seconds: float) -> None:
    """Let whoever writes to it wait for so long."""
    subprocess.run(["fsfreeze", "--freeze", place], check=True)
    try:
        time.sleep(seconds)
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", place], check=True)


def damage(place: Path, name: str) -> None:
    """Flip a bit of the file with this name; LookupError where there is none with a byte."""
    for file in place.rglob(name):
        with file.open("r+b") as body:
            middle = file.stat().st_size // 2
            body.seek(middle)
            if byte := body.read(1):
                body.seek(middle)
                body.write(bytes([byte[0] ^ 1]))
                return
    raise LookupError(name)
