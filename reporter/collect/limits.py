"""What gatherers may take and leave: the limits, their options, and what is in a directory."""

import argparse
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_OWNER_READS = 0o600
_OWNER_ENTERS = 0o700


@dataclass(frozen=True, slots=True)
class Output:
    """What a directory has in it, or may have: bytes, and files and directories."""

    bytes: int
    files: int

    def over(self, most: "Output") -> str:
        """Say what it has too much of, `bytes` or `files`; empty where that is nothing."""
        return "files" if self.files > most.files else "bytes" if self.bytes > most.bytes else ""


@dataclass(frozen=True, slots=True)
class GathererLimits:
    """Limits of one gatherer: seconds that it may take, bytes and files that it may write.

    The totals are those of all gatherers together. An aggregator with its default settings takes an
    archive of that size, whatever is in it.
    """

    seconds: float = 60.0
    bytes: int = 64 * 1024 * 1024
    files: int = 10_000
    total_bytes: int = 384 * 1024 * 1024
    total_files: int = 18_000

    @property
    def total(self) -> Output:
        """What there may be in the end."""
        return Output(self.total_bytes, self.total_files)

    def beside(self, before: Output) -> Output:
        """Return what there may be when one more gatherer ends, beside what there was before."""
        return Output(
            min(before.bytes + self.bytes, self.total_bytes),
            min(before.files + self.files, self.total_files),
        )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for limits; `chosen_limits` reads them."""
    default = GathererLimits()
    for name, what, value in (
        ("seconds", "time limit of a gatherer, in seconds", default.seconds),
        ("bytes", "maximum bytes written by a gatherer", default.bytes),
        ("files", "maximum files written by a gatherer", default.files),
        ("total-bytes", "maximum bytes written by all gatherers", default.total_bytes),
        ("total-files", "maximum files written by all gatherers", default.total_files),
    ):
        parser.add_argument(
            f"--{name}",
            metavar="N",
            type=_positive,
            default=int(value),
            help=f"{what} (default: %(default)s)",
        )


def chosen_limits(options: argparse.Namespace) -> GathererLimits:
    """Return what the options of `add_options` say."""
    return GathererLimits(
        options.seconds,
        options.bytes,
        options.files,
        options.total_bytes,
        options.total_files,
    )


def _positive(written: str) -> int:
    value = int(written) if written.isascii() and written.isdigit() and len(written) < 16 else 0
    if not value:
        raise argparse.ArgumentTypeError(f"not a positive number: {written[:40]!r}")
    return value


def measure(directory: Path, most: Output | None = None, *, readable: bool = False) -> Output:
    """Return what is in a directory, but look no further than to be over `most`.

    What vanishes meanwhile does not count. With `readable` its owner can read all of it afterwards:
    no archive can be made of a directory that cannot be entered.
    """
    size = files = 0
    waiting = [str(directory)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                files += 1
                with suppress(OSError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        _allow(entry.path, found.st_mode, _OWNER_ENTERS if readable else 0)
                        waiting.append(entry.path)
                    elif stat.S_ISREG(found.st_mode):
                        _allow(entry.path, found.st_mode, _OWNER_READS if readable else 0)
                        size += found.st_size
                if most is not None and Output(size, files).over(most):
                    return Output(size, files)
    return Output(size, files)


def _allow(path: str, mode: int, wanted: int) -> None:
    if mode & wanted != wanted:
        Path(path).chmod(stat.S_IMODE(mode) | wanted)
