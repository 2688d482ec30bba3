"""The rules for the paths in an archive: which member may stand beside which. Pure."""

from typing import Final

from reporter.untar.tar_header import show
from reporter.untar.values import BadArchive, Kind, Member

_NOTES: Final = 100

_Tree = dict[bytes, "_Tree | _Leaf"]


class _Leaf:
    """A name that is no directory."""


_FILE: Final = _Leaf()
_LINK: Final = _Leaf()


class Names:
    """The paths seen so far, at most `directories` of them directories, stated or implied."""

    def __init__(self, directories: int) -> None:
        self._tree: _Tree = {}
        self._most = self._left = directories
        self._notes: list[str] = []
        self._noted = 0

    def add(self, member: Member) -> bool:
        """Take one more member; whether it is a file whose path came before.

        Raises `BadArchive` if it may not stand beside the others.
        """
        path = member.path
        if member.kind is Kind.DIRECTORY:
            self._enter(path)
        elif member.kind is Kind.FILE:
            siblings = self._enter(path[:-1])
            known = siblings.get(path[-1])
            if known not in (None, _FILE):
                raise _clash(path)
            siblings[path[-1]] = _FILE
            return known is _FILE
        else:
            if member.kind is Kind.LINK and path:
                # It is not created, but what comes at or below it was meant to go elsewhere.
                self._enter(path[:-1])[path[-1]] = _LINK
            self._note(member)
        return False

    def notes(self) -> tuple[str, ...]:
        """What is not created, in words; of very many only the first."""
        more = self._noted - len(self._notes)
        return (*self._notes, f"and {more} more") if more else tuple(self._notes)

    def _enter(self, path: tuple[bytes, ...]) -> _Tree:
        tree = self._tree
        for part in path:
            below = tree.get(part)
            if below is None:
                self._left -= 1
                if self._left < 0:
                    raise BadArchive(f"more than {self._most} directories")
                below = tree[part] = {}
            elif isinstance(below, _Leaf):
                raise _clash(path)
            tree = below
        return tree

    def _note(self, member: Member) -> None:
        self._noted += 1
        if self._noted <= _NOTES:
            path = show(b"/".join(member.path))
            to = f" to {show(member.target)}" if member.target else ""
            self._notes.append(f"{path}: {member.what}{to}, not created")


def _clash(path: tuple[bytes, ...]) -> BadArchive:
    return BadArchive(f"{show(b'/'.join(path))} conflicts with another file, directory or link")
