"""One resource: its pages, one after the other, blanked and written object by object."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO, Protocol

from reporter.collect.snapshot.choice import is_secrets
from reporter.collect.snapshot.index import Collected
from reporter.collect.snapshot.limits import Course, SnapshotEnded
from reporter.collect.snapshot.redact import redact, secret_metadata
from reporter.collect.snapshot.tree import ListFiles, Site
from reporter.common.objects import section, text
from reporter.errors import Expired, Forbidden, KubeError, NotFound, TooLarge
from reporter.kube.reading import LIMIT, Ask, Page
from reporter.kube.resources import Resource

SPLIT = 10
"""How many times smaller the next try at a page is that was too large."""


class Pages(Protocol):
    """What is asked of the API server."""

    def page(self, ask: Ask, *, spool: Callable[[], BinaryIO] = ...) -> Page:
        """Return a page of a list."""


def objects_of(
    api: Pages, course: Course, ask: Ask, spool: Callable[[], BinaryIO]
) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, to its end even where that is no longer of one moment."""
    while True:
        try:
            page = course.tried(partial(api.page, ask, spool=spool))
        except Expired as error:
            if not error.more:
                raise
            ask = replace(ask, more=error.more)
            continue
        try:
            yield from page
        finally:
            page.close()
        if not page.more:
            return
        ask = replace(ask, more=page.more)


class Collecting:
    """Collects resources. Threads share it, each with another resource.

    `namespaces` None means all; `gone` says of one whether it is not there any more. `most` is the
    bytes that a resource may have.
    """

    def __init__(
        self,
        api: Pages,
        site: Site,
        *,
        most: int,
        namespaces: Sequence[str] | None,
        gone: Callable[[str], bool],
        spool: Callable[[], BinaryIO],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._site, self._course = api, site, site.course
        self._most, self._namespaces, self._gone = most, namespaces, gone
        self._spool, self._clock = spool, clock

    def collect(self, resource: Resource) -> Collected:
        """Collect a resource; what stands in the way is told, and what came before is kept."""
        found, began = Collected(), self._clock()
        files = ListFiles(self._site, resource, self._most)
        try:
            if self._namespaces is None or not resource.namespaced:
                self._whole(resource, None, files, found)
            else:
                self._each(resource, self._namespaces, files, found)
        except SnapshotEnded as why:
            found.truncated = str(why)
        except KubeError as error:
            found.error = str(error)
        except (ValueError, RecursionError, OSError) as error:
            found.error = f"{type(error).__name__}: {error}"
        finally:
            try:
                files.close()
            except OSError as error:
                found.error = found.error or f"{type(error).__name__}: {error}"
        found.count, found.size = files.count, files.size
        found.seconds = self._clock() - began
        return found

    def _each(
        self, resource: Resource, namespaces: Sequence[str], files: ListFiles, found: Collected
    ) -> None:
        """Read a list in each namespace. A refusal in one does not affect the others."""
        for namespace in namespaces:
            try:
                self._whole(resource, namespace, files, found)
            except (Forbidden, NotFound) as error:
                if not self._gone(namespace):
                    found.error = str(error)
            if found.truncated:
                return

    def _whole(
        self, resource: Resource, namespace: str | None, files: ListFiles, found: Collected
    ) -> None:
        """Read all pages of a list. One that took too long is restarted once, then goes on."""
        again, limit, more, redacted = True, LIMIT, "", found.redacted
        while True:
            ask = Ask(resource, namespace, limit, more, metadata_only=is_secrets(resource))
            try:
                page = self._course.tried(partial(self._api.page, ask, spool=self._spool))
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // SPLIT)
                continue
            except Expired as error:
                if again:
                    again, more = False, ""
                    files.discard(namespace)
                    found.redacted = redacted
                    continue
                if not error.more:
                    raise
                found.inconsistent, more = True, error.more
                continue
            try:
                for each in page:
                    self._course.go_on()
                    self._keep(resource, each, files, found)
                    if found.truncated:
                        return
                more = page.more
            finally:
                page.close()
            if not more:
                return

    def _keep(
        self, resource: Resource, each: dict[str, Any], files: ListFiles, found: Collected
    ) -> None:
        if is_secrets(resource):
            kept, blanked = secret_metadata(each)
        else:
            metadata = each.get("metadata")
            if isinstance(metadata, dict):
                metadata.pop("managedFields", None)
            kept = {"apiVersion": resource.api_version, "kind": resource.kind} | each
            blanked = redact(kept)
        namespace = text(section(kept, "metadata"), "namespace") if resource.namespaced else ""
        found.truncated = files.add(namespace, kept)
        if not found.truncated:
            found.redacted += blanked
