"""The newest part of the logs of a Pod's containers, of the one before a restart too."""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from reporter.collect.snapshot.index import Collected
from reporter.collect.snapshot.limits import SnapshotEnded
from reporter.collect.snapshot.paths import log_path
from reporter.collect.snapshot.redact import redact_text
from reporter.collect.snapshot.tree import Site, write
from reporter.common.objects import items, number, section, text
from reporter.errors import InvalidRequest, KubeError, NotFound

_LOG = "/api/v1/namespaces/{namespace}/pods/{pod}/log"
_SHORTEST_LINE = 16
"""Bytes of a line on average, at least: the kubelet can only be asked for a number of lines."""
_APART = re.compile(rb"[\s\"'<>]")
"""Is in no credential of a URL."""


class Streams(Protocol):
    """What is asked of the API server."""

    def stream(
        self, path: str, names: Mapping[str, str], query: Mapping[str, str], /
    ) -> Iterator[bytes]:
        """Yield the pieces of what is at a path."""


@dataclass(frozen=True, slots=True)
class LoggedPod:
    """A Pod with its containers, and those that have run before: init containers among them."""

    namespace: str
    name: str
    containers: tuple[str, ...]
    restarted: frozenset[str]


def logged_pod(pod: Mapping[str, Any]) -> LoggedPod:
    """Read it from a Pod."""
    spec, status, metadata = (section(pod, each) for each in ("spec", "status", "metadata"))
    sorts = ("initContainers", "containers", "ephemeralContainers")
    states = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return LoggedPod(
        text(metadata, "namespace"),
        text(metadata, "name"),
        tuple(text(each, "name") for sort in sorts for each in items(spec, sort)),
        frozenset(
            text(each, "name")
            for state in states
            for each in items(status, state)
            if (number(each, "restartCount") or 0) > 0
        ),
    )


def collect_logs(api: Streams, site: Site, most: int, pod: LoggedPod) -> Collected:
    """Take the logs of a Pod, at most `most` bytes each. Refusals are reported.

    A container that has no log, because it never ran, is no reason to miss the others.
    """
    found = Collected()
    wanted = [(each, False) for each in pod.containers]
    wanted += [(each, True) for each in pod.containers if each in pod.restarted]
    for container, previous in wanted:
        try:
            data, cut = site.course.tried(partial(_tail, api, pod, container, previous, most))
        except (NotFound, InvalidRequest):
            continue
        except SnapshotEnded as why:
            found.truncated = str(why)
            break
        except KubeError as error:
            found.error = f"{pod.namespace}/{pod.name}: {error}"
            continue
        if cut:
            found.truncated = f"of each log the newest {most // 1024} KiB are kept"
        said, blanked = _blanked(data)
        if not said:
            continue
        if full := site.room.take(len(said), files=1):
            found.truncated = full
            break
        try:
            write(site.root, log_path(pod.namespace, pod.name, container, previous=previous), said)
        except OSError as error:
            found.error = f"{pod.namespace}/{pod.name}: {error}"
            continue
        found.count += 1
        found.size += len(said)
        found.redacted += blanked
    return found


def _tail(
    api: Streams, pod: LoggedPod, container: str, previous: bool, most: int
) -> tuple[bytes, bool]:
    """Return the end of a log, and whether there was more of it."""
    query = {"container": container, "tailLines": str(most // _SHORTEST_LINE)}
    if previous:
        query["previous"] = "true"
    pieces: deque[bytes] = deque()
    size = total = 0
    for piece in api.stream(_LOG, {"namespace": pod.namespace, "pod": pod.name}, query):
        pieces.append(piece)
        size += len(piece)
        total += len(piece)
        while size - len(pieces[0]) >= most:
            size -= len(pieces.popleft())
    data = b"".join(pieces)
    return (_from_a_line_on(data[-most - 1 :]), True) if total > most else (data, False)


def _from_a_line_on(data: bytes) -> bytes:
    """Leave out the line that was cut: it may begin amid a URL, with a password first."""
    _, newline, rest = data.partition(b"\n")
    if newline:
        return rest
    apart = _APART.search(data)
    return data[apart.end() :] if apart else b""


def _blanked(data: bytes) -> tuple[bytes, int]:
    """Blank the credentials of URLs, line by line; whatever bytes there are stay as they are."""
    if b"://" not in data:
        return data, 0
    blanked, lines = 0, data.split(b"\n")
    for at, line in enumerate(lines):
        if b"://" in line:
            said, times = redact_text(line.decode("latin-1"))
            if times:
                lines[at] = said.encode("latin-1")
                blanked += times
    return b"\n".join(lines), blanked
