"""What a run's plugins say: `sonobuoy_results.yaml` out of a tarball or a directory.

The tarballs are the aggregator's or Sonobuoy's. What is in them came from outside: nothing is
unpacked, and what a file holds is bounded.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reporter.core.judge.counting import SKIPPED, status_word, verdict_of
from reporter.core.objects import items, section, text
from reporter.ctl.commands.retrieve import TARBALL
from reporter.untar import Archive, Kind

NAME: Final = "sonobuoy_results.yaml"
_MOST: Final = 128 * 1024 * 1024  # bytes of one file
_DEEPEST: Final = 100
_TEXTS: Final = ("failure", "error", "message", "output", "system-err", "system-out")
BAD: Final = ("failed", "timeout")


@dataclass(frozen=True, slots=True)
class Test:
    """One test: the names above it, from the plugin on, its own, and what is said of it."""

    path: tuple[str, ...]
    name: str
    status: str
    details: Mapping[str, Any]
    meta: Mapping[str, Any]

    @property
    def good(self) -> bool:
        """Whether nothing speaks against it."""
        return self.status in ("passed", SKIPPED)

    @property
    def said(self) -> str:
        """What a failed test says, the most telling of its details first."""
        found = [text(self.details, name) for name in _TEXTS]
        return next(filter(None, found), "") or text(self.meta, "error")


@dataclass
class PluginResults:
    """The results of a plugin. `written` is the file as it is."""

    name: str
    status: str
    tests: list[Test]
    written: bytes
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def verdict(self) -> str:
        """What it means. A file that says better of itself than its tests do is not believed."""
        return self.status if self.status in BAD else verdict_of(self.counts)


@dataclass
class Results:
    """The results of a run by plugin, and what cannot be read, in words."""

    plugins: list[PluginResults] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_results(path: Path, plugin: str = "", node: str = "") -> Results:
    """Read the results of all plugins, or of one; of all nodes, or of one.

    Raises OSError, and BadArchive for an archive that is damaged.
    """
    found = Results()
    for name, data in sorted(_in_directory(path) if path.is_dir() else _in_tarball(path)):
        if plugin not in ("", name):
            continue
        try:
            made = _plugin(name, data, node)
        except (ValueError, RecursionError):
            found.problems.append(f"plugin {name}: {NAME} cannot be read")
            continue
        if made is not None:
            found.plugins.append(made)
    return found


def _in_directory(path: Path) -> Iterator[tuple[str, bytes]]:
    for each in path.glob(f"plugins/*/{NAME}"):
        if each.is_file():
            with each.open("rb") as file:
                yield each.parent.name, file.read(_MOST + 1)


def _in_tarball(path: Path) -> Iterator[tuple[str, bytes]]:
    with path.open("rb") as file:
        archive = Archive(file, path.stat().st_size, TARBALL)
        for member in archive:
            parts = tuple(part.decode(errors="replace") for part in member.path)
            if member.kind is Kind.FILE and len(parts) == 3 and parts[::2] == ("plugins", NAME):
                data = bytearray()
                for piece in archive.content():
                    if len(data) <= _MOST:
                        data += piece
                yield parts[1], bytes(data)


def _plugin(name: str, data: bytes, node: str) -> PluginResults | None:
    if len(data) > _MOST:
        raise ValueError("too large")
    root = _document(data)
    if not isinstance(root, dict):
        raise ValueError("not a mapping")
    _check_tree(root)
    top = _node(root, node) if node else root
    if top is None:
        return None
    tests = list(_tests(top, (name,), 0))
    counts = Counter(test.status for test in tests)
    for file in _files(top, 0):
        for word, many in _unlisted(section(file, "meta")):
            counts[word] += many
    tests.sort(key=lambda test: (test.status not in BAD, test.good))
    return PluginResults(name, text(top, "status"), tests, data, counts)


def _document(data: bytes) -> object:
    import yaml  # most commands do without

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(data, Loader=loader)  # noqa: S506  # both are safe loaders
    except yaml.YAMLError as error:
        raise ValueError("not valid YAML") from error


def _check_tree(root: object) -> None:
    """Refuse what stands in several places: written out it may be of any size."""
    seen, waiting = set(), [root]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            if id(value) in seen:
                raise ValueError("with aliases")
            seen.add(id(value))
            waiting += value.values() if isinstance(value, dict) else value


def _node(root: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the items of a node. Its tests, and those of others, may have its name."""
    found = (each for each in items(root, "items") if text(section(each, "meta"), "type") == "node")
    return next((each for each in found if each.get("name") == name), None)


def _tests(item: Mapping[str, Any], path: tuple[str, ...], depth: int) -> Iterator[Test]:
    if depth > _DEEPEST:
        raise ValueError("nested too deep")
    below = list(items(item, "items"))
    if not below:
        yield Test(
            path,
            text(item, "name"),
            status_word(text(item, "status")),
            section(item, "details"),
            section(item, "meta"),
        )
        return
    inside = path if depth == 0 else (*path, text(item, "name"))
    for each in below:
        yield from _tests(each, inside, depth + 1)


def _files(item: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    if text(section(item, "meta"), "unlisted"):
        yield item
    if depth < _DEEPEST:
        for each in items(item, "items"):
            yield from _files(each, depth + 1)


def _unlisted(meta: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield what a file's list leaves out: `passed: 8, failed: 1`."""
    for part in text(meta, "unlisted").split(", "):
        word, _, many = part.rpartition(": ")
        if word and many.isascii() and many.isdigit():
            yield status_word(word), int(many[:12])
