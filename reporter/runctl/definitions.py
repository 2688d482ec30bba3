"""Plugin definitions from files, directories and standard input.

PyYAML is imported only when there is something to read.
"""

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path

from reporter.cli.exits import content, unreadable
from reporter.cli.output import shown_file
from reporter.run.definition import Definition, doubled

SUFFIXES = (".yaml", ".yml")
BUILT_IN = ("host-facts", "cluster-snapshot")
"""Plugins of our own, by the names of their definitions."""
_BUILT_IN_AT = Path(__file__).with_name("plugins")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the files hold: definitions and problems, each after its place (`FILE: line N`).

    `unread` says, with the name, what cannot be read.
    """

    definitions: tuple[tuple[str, Definition], ...]
    problems: tuple[tuple[str, str], ...]
    unread: tuple[OSError, ...] = ()


def definition_options(parser: "argparse._ActionsContainer") -> None:
    """Declare the options for definitions; `read_chosen` reads what they name."""
    parser.add_argument(
        "-f",
        "--filename",
        metavar="FILE",
        action="append",
        default=[],
        dest="files",
        help="plugin definitions: a YAML file, a directory, or - for standard input; repeatable",
    )
    parser.add_argument(
        "--plugin",
        metavar="NAME",
        action="append",
        default=[],
        choices=BUILT_IN,
        dest="built_in",
        help=f"a built-in plugin: {' or '.join(BUILT_IN)} (for others use -f); repeatable",
    )


def read_chosen(options: argparse.Namespace) -> tuple[list[Definition], list[str]]:
    """Return the definitions that are right, of each name the first, and all problems."""
    if not options.files and not options.built_in:
        options.error("one of -f and --plugin is required")
    loaded = load(options.files, options.built_in)
    problems = [
        *map(unreadable, loaded.unread),
        *(f"{place}: {text}" for place, text in loaded.problems),
    ]
    first = {made.name: made for _, made in reversed(loaded.definitions)}
    return [made for _, made in loaded.definitions if made is first[made.name]], problems


def load(names: Sequence[str], built_in: Sequence[str] = ()) -> Loaded:
    """Read files, the YAML files of directories, standard input (`-`), and built-in plugins."""
    from reporter.run.definition_file import MAX_BYTES, read_definitions

    found: list[tuple[str, Definition]] = []
    problems: list[tuple[str, str]] = []
    unread: list[OSError] = []
    for name in names:
        try:
            paths = _files(name)
        except OSError as error:
            unread.append(error)
            continue
        for path in paths:
            shown = shown_file(path)
            try:
                read = read_definitions(content(path, MAX_BYTES + 1))
            except OSError as error:
                unread.append(error)
                continue
            found += [(f"{shown}: line {line}", made) for line, made in read.definitions]
            problems += [(f"{shown}: line {each.line}", str(each)) for each in read.mistakes]
    for name in built_in:
        read = read_definitions((_BUILT_IN_AT / f"{name}.yaml").read_bytes())
        found += [(f"--plugin {name}", made) for _, made in read.definitions]
    for at in doubled([made.name for _, made in found]):
        place, made = found[at]
        problems.append((place, f"another plugin is named {made.name!r}"))
    return Loaded(tuple(found), tuple(problems), tuple(unread))


def _files(name: str) -> list[str]:
    """Return the file, or the YAML files of a directory. Raises OSError."""
    if not _is_directory(name):
        return [name]
    paths = sorted(
        str(each)
        for each in Path(name).iterdir()
        if each.name.lower().endswith(SUFFIXES) and not each.is_dir()
    )
    if not paths:
        raise FileNotFoundError(ENOENT, "no file in it ends in .yaml or .yml", name)
    return paths


def is_definition(name: str) -> bool:
    """Tell a definition from a result file by its name; a directory holds definitions."""
    return name.lower().endswith(SUFFIXES) or _is_directory(name)


def _is_directory(name: str) -> bool:
    # Not Path.is_dir, which fails for a name that cannot be looked up: reading it says why.
    return name != "-" and os.path.isdir(name)  # noqa: PTH112
