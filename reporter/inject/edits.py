"""Changes of a JSON value, small enough to be made in a text without touching the rest of it.

All paths of one set of changes are those of the value before the first of them.
"""

from collections.abc import Iterable
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """Give a key of an object its value: a key that is not there, or is null."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Add:
    """Add to the list at `path`, before all others or after them."""

    path: Path
    value: Any
    first: bool = False


@dataclass(frozen=True, slots=True)
class Remove:
    """Take a key out of an object or an item out of a list."""

    path: Path


Edit = Put | Add | Remove


def get(value: Any, path: Path) -> Any:
    """Return what is at `path`; None where nothing is."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value


def apply(value: Any, edits: Iterable[Edit]) -> Any:
    """Return the value with all changes made; it shares what they are not about with `value`."""
    copies: dict[Path, Any] = {(): copy(value)}

    def own(path: Path) -> Any:
        if path not in copies:
            around = own(path[:-1])
            copies[path] = around[path[-1]] = copy(around[path[-1]])
        return copies[path]

    for edit in sorted(edits, key=_order):
        found = own(holder(edit))
        if isinstance(edit, Put):
            found[edit.path[-1]] = deepcopy(edit.value)
        elif isinstance(edit, Add):
            found.insert(0 if edit.first else len(found), deepcopy(edit.value))
        else:
            del found[edit.path[-1]]
    return copies[()]


def holder(edit: Edit) -> Path:
    """Return the path of the object or list that a change is made in."""
    return edit.path if isinstance(edit, Add) else edit.path[:-1]


def put(value: Any, path: Path, new: Any) -> Put:
    """Return the change that puts `new` at `path`, with the objects that are missing on the way."""
    known = 0
    while known < len(path) - 1 and isinstance(get(value, path[: known + 1]), dict | list):
        known += 1
    for key in reversed(path[known + 1 :]):
        new = {key: new}
    return Put(path[: known + 1], new)


def _order(edit: Edit) -> tuple[int, int]:
    """The deepest first, and the last item first: so no path is moved before its turn."""
    last = edit.path[-1] if isinstance(edit, Remove) else 0
    return -len(holder(edit)), -last if isinstance(last, int) else 0
