"""Namespaces that were chosen by name: they may go away, and with them the right to read there."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from reporter.common.objects import section, text
from reporter.errors import Forbidden, KubeError, NotFound

_PATH = "/api/v1/namespaces/{name}"


class Documents(Protocol):
    """What is asked of the API server, again where that may help."""

    def __call__(self, path: str, names: Mapping[str, str], /) -> dict[str, Any]:
        """Return the JSON object at a path. Raises KubeError, `SnapshotEnded`."""


class Chosen:
    """Finds out which of them are gone. Threads share it. Methods raise `SnapshotEnded`.

    `gone` says why of each, also where it cannot be told.
    """

    def __init__(self, document: Documents, names: Sequence[str]) -> None:
        self._document, self._names = document, names
        self.gone: dict[str, str] = {}

    def is_gone(self, name: str) -> bool:
        """Say whether it is why something was refused there."""
        if name in self._names and name not in self.gone:
            try:
                self._look(name)
            except KubeError:
                return False
        return name in self.gone

    def look(self) -> None:
        """Look at all of them: what is in a namespace goes before it refuses to be read."""
        for name in self._names:
            if name not in self.gone:
                try:
                    self._look(name)
                except KubeError as error:
                    self.gone[name] = str(error)

    def _look(self, name: str) -> None:
        try:
            found = self._document(_PATH, {"name": name})
        except NotFound:
            self.gone[name] = "it was deleted"
        except Forbidden as error:
            # A Role goes with its namespace.
            self.gone[name] = f"it was deleted, or the snapshot's Role in it: {error.said or error}"
        else:
            if text(section(found, "metadata"), "deletionTimestamp"):
                self.gone[name] = "it is being deleted"
