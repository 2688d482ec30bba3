"""What a gatherer has left: brought within the limits, and kept out of the way of the next one."""

import json
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from reporter.gather.limits import GathererLimits, remove, settle
from reporter.gather.record import COMPLETE, FAILED, PARTIAL, GathererRecord

RECORD: Final = "gather.json"
STDOUT: Final = "stdout.txt"
_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class Site:
    """Where the output goes, the shelf in it, and the names in it that no gatherer has made."""

    out: Path
    shelf: Path
    ours: frozenset[str]
    limits: GathererLimits


def keep(record: GathererRecord, work: Path, site: Site) -> GathererRecord:
    """Put the output on the shelf, with the record in it; whatever the gatherer has done to it."""
    try:
        if not reopen(work):
            record = replace(record, status=FAILED, error="output lost: its directory was removed")
        beside = [each for each in work.iterdir() if each.name != record.name]
        beside += [each for each in site.out.iterdir() if each.name not in {*site.ours, work.name}]
        names = sorted(each.name[:255] for each in beside)
        record = replace(record, outside=tuple(names[:_NAMED]))
        for each in beside:
            _clear(each)
        record = _settled(record, work / record.name, site.limits)
        (work / record.name).rename(site.shelf / record.name)
        remove(work)
    except OSError as error:
        record = replace(record, status=FAILED, error=f"output lost: {error.strerror}")
        with suppress(OSError):
            (site.shelf / record.name).mkdir(exist_ok=True)
            record = _written(record, site.shelf / record.name)
    return record


def reopen(directory: Path) -> bool:
    """Let a directory of ours be one again that can be entered; return whether it was there."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(directory.lstat().st_mode):
            directory.chmod(0o700)
            return True
        directory.unlink()
    directory.mkdir(0o700)
    return False


def put_in_place(names: Sequence[str], shelf: Path, out: Path) -> None:
    """Give the outputs their names. Raises OSError, but not before all have been tried."""
    lost: OSError | None = None
    reopen(shelf)
    for name in names:
        try:
            (shelf / name).rename(out / name)
        except OSError as error:
            lost = lost or error
    remove(shelf)
    if lost is not None:
        raise lost


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove(path)
    else:
        path.unlink(missing_ok=True)


def _settled(record: GathererRecord, place: Path, limits: GathererLimits) -> GathererRecord:
    """Bring the output within the limits, and write the record into it."""
    with suppress(OSError):
        # As far as it goes: what cannot be kept must not cost what can.
        if not place.is_dir() or place.is_symlink():
            place.unlink(missing_ok=True)
            place.mkdir()
        place.chmod(0o700)
        with suppress(FileNotFoundError):
            if not (place / STDOUT).stat().st_size:
                (place / STDOUT).unlink()
        try:
            record = replace(record, left=settle(place, limits))
        except OSError as error:
            remove(place)
            place.mkdir()
            record = replace(record, status=FAILED, error=f"output lost: {error.strerror}")
    cut_off = record.left.truncated and record.status == COMPLETE
    if cut_off or (record.limit and record.left.files):
        record = replace(record, status=PARTIAL)
    return _written(record, place)


def _written(record: GathererRecord, place: Path) -> GathererRecord:
    try:
        _clear(place / RECORD)
        document = json.dumps(record.document(), ensure_ascii=False, indent=1)
        (place / RECORD).write_bytes(document.encode("utf-8", "replace") + b"\n")
    except OSError as error:
        record = replace(record, error=f"{RECORD} not written: {error.strerror}")
    return record
