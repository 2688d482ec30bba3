"""What a run's plugins say: `sonobuoy_results.yaml` out of a tarball or a directory.

The tarballs are the aggregator's or Sonobuoy's. Their contents come from outside: nothing is
unpacked, and what is kept of a file is bounded.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Final

from reporter.results.found import PluginResults, Results
from reporter.runctl.archive import TARBALL
from reporter.untar import Archive, Kind

NAME: Final = "sonobuoy_results.yaml"
_PIECE: Final = 256 * 1024


def read_results(
    path: Path, plugin: str = "", node: str = "", *, every: bool = True, written: bool = False
) -> Results:
    """Read the results of all plugins, or of one; of all nodes, or of one.

    Without `every`, tests that passed are only counted. `written` keeps the files as they are.
    Raises OSError, and BadArchive for an archive that is damaged.
    """
    found = Results()
    for name, pieces in _in_directory(path) if path.is_dir() else _in_tarball(path):
        if plugin not in ("", name):
            continue
        copy = tempfile.TemporaryFile() if written else None  # noqa: SIM115  # who shows it reads it
        try:
            made = _plugin(name, _copied(pieces, copy), node, every=every)
        except (ValueError, RecursionError):
            found.problems.append(f"plugin {name}: {NAME} cannot be read")
            continue
        if made is not None:
            made.written = copy
            found.plugins.append(made)
    found.plugins.sort(key=lambda each: each.name)
    found.problems.sort()
    return found


def _plugin(
    name: str, pieces: Iterator[bytes | memoryview], node: str, *, every: bool
) -> PluginResults | None:
    from reporter.results.tree_file import Pieces, read_tree  # YAML: most commands do without

    return read_tree(name, Pieces(pieces), node, every=every)


def _copied(
    pieces: Iterable[bytes | memoryview], copy: IO[bytes] | None
) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        if copy is not None:
            copy.write(piece)
        yield piece


def _in_directory(path: Path) -> Iterator[tuple[str, Iterator[bytes | memoryview]]]:
    for each in path.glob(f"plugins/*/{NAME}"):
        if each.is_file():
            with each.open("rb") as file:
                yield each.parent.name, iter(lambda: file.read(_PIECE), b"")


def _in_tarball(path: Path) -> Iterator[tuple[str, Iterator[bytes | memoryview]]]:
    with path.open("rb") as file:
        archive = Archive(file, path.stat().st_size, TARBALL)
        for member in archive:
            parts = tuple(part.decode(errors="replace") for part in member.path)
            if member.kind is Kind.FILE and len(parts) == 3 and parts[::2] == ("plugins", NAME):
                content = archive.content()
                yield parts[1], content
                for _ in content:  # what was not read of it
                    pass
