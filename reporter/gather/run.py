"""Running gatherers: each for itself, one after the other, within limits.

A gatherer works in a directory of its own. When it has ended, with all that it started, its output
is brought within the limits and put where the next one does not come across it; all get their final
names at the end.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from reporter.gather.limits import GathererLimits
from reporter.gather.one import Gatherer, Run, Stop
from reporter.gather.record import GathererRecord
from reporter.gather.shelf import Site, keep, put_in_place, reopen
from reporter.runtime.orphans import adopt


def gatherers(directory: Path, host: Path) -> list[Gatherer]:
    """Return the gatherers in a directory, in the order of their names. Raises OSError.

    `10-disks` writes `disks`; the second of a name keeps its number. Hidden files do not count.
    Nothing that lies on the host is one.
    """
    found: dict[str, Gatherer] = {}
    for path in sorted(directory.iterdir()):
        if path.name.startswith(".") or _lies_on(host, path):
            continue
        number, dash, rest = path.name.partition("-")
        name = rest if dash and number.isdigit() and rest and rest not in found else path.name
        found[name] = Gatherer(name, (str(path.absolute()),))
    return list(found.values())


def run_all(
    programs: Sequence[Gatherer],
    out: Path,
    environ: Mapping[str, str],
    host: Path,
    stop: Stop,
    *,
    limits: GathererLimits | None = None,
    before_exec: Callable[[], None] | None = None,
) -> Iterator[GathererRecord]:
    """Run gatherers, and yield a record after each; after `stop` no further one is started.

    The output has its names when the iterator has ended. Nothing else may be a child of this
    process: all of them are ended. A process without threads may have something called in each
    before it becomes the gatherer. Raises OSError when `out` cannot be written to.
    """
    adopt()
    left = limits or GathererLimits()
    shelf = Path(tempfile.mkdtemp(prefix=".gathered-", dir=out))
    done: list[str] = []
    try:
        names = frozenset(each.name for each in out.iterdir())
        for program in programs:
            if stop.is_set():
                return
            site = Site(out, shelf, names, left.next_one)
            work = Path(tempfile.mkdtemp(prefix=".gathering-", dir=out))
            place = work / program.name
            place.mkdir()
            told = {
                **environ,
                "GATHER_OUT": str(place),
                "GATHER_HOST_ROOT": str(host),
                "GATHER_DEADLINE": str(int(time.time() + left.seconds)),
            }
            # All have the same user. Closed, the others' output is at least not hit by accident.
            shelf.chmod(0)
            record = Run(program, place, site, told, stop, before_exec=before_exec).run()
            reopen(shelf)
            done.append(program.name)
            record = keep(record, work, site)
            left = left.after(record.left)
            yield record
    finally:
        put_in_place(done, shelf, out)


def _lies_on(host: Path, path: Path) -> bool:
    root = host.resolve()
    return root != Path("/") and root in path.resolve().parents
