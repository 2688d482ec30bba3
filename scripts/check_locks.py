"""Says whether requirements/*.txt still fit pyproject.toml, without a package index.

And whether the lock of a plugin's own image fits what is written beside it.

    python check_locks.py

A lock fits when it pins exactly what its inputs lead to: the walk starts at the requirements of
pyproject.toml, goes on with those of the installed packages (which come from the locks), and every
version on the way is allowed by whoever asks for it. A release made tomorrow changes none of that.
"""

import importlib.metadata
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent

# As in lock.sh: which extra and which dependency group each file is made of.
LOCKS = {
    "image.txt": ("all", None),
    "test.txt": ("all", "test"),
    "dev.txt": ("all", "dev"),
}
# release.txt, like the locks of FOREIGN, has packages that are not installed here.
# Folders with a requirements.in and its lock, for images whose packages are not installed here.
FOREIGN = ("deploy/plugins/ansible",)


@dataclass(frozen=True)
class Pin:
    """One `name==version ; marker` line of a lock and how many hashes follow it."""

    requirement: Requirement
    hashes: int

    @property
    def version(self) -> str:
        """The pinned version."""
        (clause,) = self.requirement.specifier
        return clause.version


def read_lock(text: str) -> dict[str, Pin]:
    """Read a lock's pins by canonical name."""
    entries = text.replace("\\\n", " ").splitlines()
    pins: dict[str, Pin] = {}
    for entry in entries:
        words = entry.partition(" #")[0].split("--hash=")
        if words[0].strip() and not entry.lstrip().startswith("#"):
            requirement = Requirement(words[0].strip())
            pins[canonicalize_name(requirement.name)] = Pin(requirement, len(words) - 1)
    return pins


def extra_inputs(project: dict[str, object], extra: str) -> Iterator[Requirement]:
    """Yield the base requirements and those of EXTRA, an extra that names others resolved."""
    table = project["project"]
    assert isinstance(table, dict)
    yield from map(Requirement, table["dependencies"])
    waiting = [extra]
    while waiting:
        for line in table["optional-dependencies"][waiting.pop()]:
            requirement = Requirement(line)
            if requirement.name == table["name"]:
                waiting.extend(requirement.extras)
            else:
                yield requirement


def group_inputs(project: dict[str, object], group: str) -> Iterator[Requirement]:
    """Yield the requirements of the dependency GROUP and of the groups it includes."""
    groups = project["dependency-groups"]
    assert isinstance(groups, dict)
    for line in groups[group]:
        if isinstance(line, dict):
            yield from group_inputs(project, line["include-group"])
        else:
            yield Requirement(line)


def applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    """Say whether REQUIREMENT counts on this machine when its owner is asked for with EXTRAS."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ["", *extras])


def problems(pins: dict[str, Pin], inputs: Iterable[Requirement]) -> Iterator[str]:
    """Yield what is wrong with PINS, judged from INPUTS and the metadata of installed packages."""
    needed: set[str] = {name for name, pin in pins.items() if not applies(pin.requirement, [])}
    waiting = [("pyproject.toml", requirement) for requirement in inputs]
    walked = set()
    while waiting:
        asker, requirement = waiting.pop()
        name: str = canonicalize_name(requirement.name)
        if (asker, str(requirement)) in walked:
            continue
        walked.add((asker, str(requirement)))
        needed.add(name)
        if name not in pins:
            yield f"{name} is missing, wanted by {asker}"
            continue
        pin = pins[name]
        if not requirement.specifier.contains(pin.version, prereleases=True):
            yield f"{name}=={pin.version} does not fit `{requirement}`, wanted by {asker}"
        for line in importlib.metadata.requires(name) or []:
            below = Requirement(line)
            if applies(below, requirement.extras):
                waiting.append((name, below))
    for name, pin in pins.items():
        if name not in needed:
            yield f"{name} is pinned, but nothing wants it"
        if not pin.hashes:
            yield f"{name} has no hash"


def foreign_problems(text: str, wanted: str) -> Iterator[str]:
    """Yield what is wrong with the lock TEXT of packages that are not installed here.

    WANTED has a requirement a line. That a package is missing which others need is not seen here;
    pip says so when the image is built, since it takes nothing without a hash.
    """
    pins = read_lock(text)
    lines = (line.partition("#")[0].strip() for line in wanted.splitlines())
    for requirement in map(Requirement, filter(None, lines)):
        pin = pins.get(canonicalize_name(requirement.name))
        if pin is None:
            yield f"{requirement.name} is missing"
        elif not requirement.specifier.contains(pin.version):
            yield f"{requirement.name}=={pin.version} does not fit `{requirement}`"
    yield from (f"{name} has no hash" for name, pin in pins.items() if not pin.hashes)
    if "://" in text:
        yield "names a download address"


def main() -> int:
    """Check every lock; print one line a problem and return 1 when there is any."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    read = {name: (ROOT / "requirements" / name).read_text(encoding="utf-8") for name in LOCKS}
    everything = read_lock(read["dev.txt"])
    found = []
    for lock, (extra, group) in LOCKS.items():
        inputs = [*extra_inputs(project, extra), *(group_inputs(project, group) if group else [])]
        pins = read_lock(read[lock])
        found += [f"requirements/{lock}: {problem}" for problem in problems(pins, inputs)]
        found += [
            f"requirements/{lock}: {name} differs from requirements/dev.txt"
            for name, pin in pins.items()
            if pin != everything.get(name)
        ]
        if "://" in read[lock]:
            found.append(f"requirements/{lock}: names a download address")
    release = (ROOT / "requirements" / "release.txt").read_text(encoding="utf-8")
    wanted = "\n".join(str(each) for each in group_inputs(project, "release"))
    found += [f"requirements/release.txt: {each}" for each in foreign_problems(release, wanted)]
    for folder in FOREIGN:
        text = (ROOT / folder / "requirements.txt").read_text(encoding="utf-8")
        wanted = (ROOT / folder / "requirements.in").read_text(encoding="utf-8")
        found += [f"{folder}/requirements.txt: {each}" for each in foreign_problems(text, wanted)]
    for line in found:
        print(line)
    if found:
        print("`make lock` writes them anew.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
