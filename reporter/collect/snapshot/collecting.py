"""The one pager: lists resources, blanks their objects and writes them, one by one."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import random
from typing import Any, Final, ParamSpec, TypeVar

from reporter.collect.snapshot.files import Folder, ListFiles
from reporter.collect.snapshot.index import Collected, Truncated
from reporter.collect.snapshot.options import is_secrets
from reporter.collect.snapshot.redact import redact, secret_metadata
from reporter.common.lifecycle import Stop
from reporter.common.objects import View, section, text
from reporter.common.retry import next_delay
from reporter.errors import (
    Expired,
    Forbidden,
    KubeError,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from reporter.kube.api import PAGE, KubeApi
from reporter.kube.resources import Resource

P = ParamSpec("P")
T = TypeVar("T")
Objects = Iterator[dict[str, Any]]

_TRIES: Final = 6
_PAGE_SECONDS: Final = 60.0
_ANSWER: Final = 8 * 2**20
"""Most bytes of an answer: many small values take 30 times as much memory, and four lists are read
at once. The largest ConfigMap fits, also with six bytes for each character."""


class Server:
    """An API server that is asked again where that may help, until the snapshot has to end.

    Threads share it. Its methods raise KubeError, and `Truncated` at the end.
    """

    def __init__(self, api: KubeApi, stop: Stop, seconds: float) -> None:
        self.api, self._stop, self._deadline = api, stop, time.monotonic() + seconds

    def why_ended(self) -> str:
        """Say why nothing more is to be done; nothing while it goes on."""
        if self._stop.requested:
            return "terminated"
        return "out of time" if time.monotonic() >= self._deadline else ""

    def go_on(self) -> None:
        """Raise `Truncated` if nothing more is to be done."""
        if why := self.why_ended():
            raise Truncated(why)

    def tried(self, request: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Make a request, again where that may help."""
        attempt = 0
        while True:
            self.go_on()
            attempt += 1
            try:
                return request(*arguments, **named)
            except (Expired, TooLarge):
                raise
            except (Unavailable, Unauthorized) as error:
                self.go_on()
                left = self._deadline - time.monotonic()
                delay = next_delay(attempt, random, retry_after=error.retry_after, remaining=left)
                if attempt == _TRIES or delay is None:
                    raise
            end = time.monotonic() + delay
            while (left := end - time.monotonic()) > 0 and not self.why_ended():
                time.sleep(min(left, 0.2))  # a signal handler wakes nobody here

    def objects(
        self,
        found: Collected,
        resource: Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        metadata_only: bool = False,
    ) -> Objects:
        """Yield the objects of a list to its end; those of all namespaces where none is given.

        One that takes so long that the server has forgotten its moment goes on with another one;
        `found` has it then. To begin again would take as long again. Raises Expired where the
        server does not offer another one.
        """
        more, limit = "", PAGE
        while True:
            try:
                page = self.tried(
                    self.api.list_page,
                    resource,
                    namespace,
                    label_selector,
                    metadata_only=metadata_only,
                    limit=limit,
                    more=more,
                    most=_ANSWER,
                    timeout=_PAGE_SECONDS,
                )
            except Expired as error:
                if not error.more:
                    raise
                more, found.inconsistent = error.more, True
                continue
            for each in page.items:
                self.go_on()
                yield each
            more, limit = page.more, page.limit
            if not more:
                return


class Namespaces:
    """The namespaces that are collected; None means all. Threads share it.

    Those that were chosen by name (`watched`) may go away meanwhile, and with them the right to
    read there. `gone` says why of each, also where it cannot be told.
    """

    def __init__(self, server: Server, names: Sequence[str] | None, watched: Sequence[str]) -> None:
        self._server, self._names, self._watched = server, names, watched
        self.gone: dict[str, str] = {}

    def objects(self, found: Collected, resource: Resource) -> Objects:
        """Yield the objects of a resource in each namespace, or where they have none.

        A refusal in one does not affect the others; it is noted, if the namespace is still there.
        """
        metadata_only = is_secrets(resource)
        if self._names is None or not resource.namespaced:
            yield from self._server.objects(found, resource, metadata_only=metadata_only)
            return
        for name in self._names:
            try:
                yield from self._server.objects(found, resource, name, metadata_only=metadata_only)
            except (Forbidden, NotFound) as error:
                gone = False
                with suppress(KubeError):
                    gone = self._is_gone(name)
                if not gone:
                    found.error = str(error)

    def look(self) -> None:
        """Look at all of them: what is in a namespace goes before it refuses to be read."""
        for name in self._watched:
            try:
                self._is_gone(name)
            except KubeError as error:
                self.gone[name] = str(error)

    def _is_gone(self, name: str) -> bool:
        if name in self._watched and name not in self.gone:
            try:
                found = self._server.tried(self._server.api.get, "Namespace", None, name)
            except NotFound:
                self.gone[name] = "it was deleted"
            except Forbidden as error:
                # A Role goes with its namespace.
                why = f"it was deleted, or the snapshot's Role in it: {error.said or error}"
                self.gone[name] = why
            else:
                if text(section(found, "metadata"), "deletionTimestamp"):
                    self.gone[name] = "it is being deleted"
        return name in self.gone


def collect(folder: Folder, namespaces: Namespaces, most: int, resource: Resource) -> Collected:
    """Write a resource, `most` bytes of it; what stands in the way is told, the rest is kept.

    A list that cannot go on begins again once. Threads may do this, each with another resource.
    """
    found, began = Collected(), time.monotonic()
    files = ListFiles(folder, resource, most, found)
    with found.noting():
        try:
            _write(files, namespaces.objects(found, resource), resource)
        except Expired:
            files.discard()
            _write(files, namespaces.objects(found, resource), resource)
    with found.noting():
        files.close()
    found.seconds = time.monotonic() - began
    return found


def _write(files: ListFiles, objects: Objects, resource: Resource) -> None:
    for each in objects:
        kept, blanked = _blanked(resource, each)
        files.add(View(kept).namespace if resource.namespaced else "", kept, blanked)


def _blanked(resource: Resource, found: dict[str, Any]) -> tuple[dict[str, Any], int]:
    if is_secrets(resource):
        return secret_metadata(found)
    metadata = found.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    kept = {"apiVersion": resource.api_version, "kind": resource.kind} | found
    return kept, redact(kept)
