"""What this folder asks of the API server, a call each; a module's interface is made of these."""

from collections.abc import Iterator
from typing import Any, Protocol


class Gets(Protocol):
    """Reads one object."""

    def get(
        self, kind: str, namespace: str | None, name: str, *, timeout: float = ...
    ) -> dict[str, Any]:
        """Return the object."""


class Lists(Protocol):
    """Reads many."""

    def list_all(
        self, kind: str, namespace: str | None, label_selector: str = ..., *, timeout: float = ...
    ) -> Iterator[dict[str, Any]]:
        """Yield the objects with these labels."""


class Deletes(Protocol):
    """Deletes."""

    def delete(
        self,
        kind: str,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = ...,
        grace: int | None = ...,
        timeout: float = ...,
    ) -> None:
        """Delete it. Raises Conflict where another one has that name now."""
