"""What the kubelets say: their configuration, whether they are well, and the logs of Pods.

Of each log the newest part, and that of the container before a restart too.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from reporter.collect.snapshot.collecting import Server
from reporter.collect.snapshot.files import Folder, encoded, host_path, log_path
from reporter.collect.snapshot.index import Collected
from reporter.collect.snapshot.redact import redact, redact_text
from reporter.common.objects import items, number, section, text
from reporter.errors import InvalidRequest, KubeError, NotFound

_PROXY: Final = "/api/v1/nodes/{name}/proxy/"
_LONGEST_LOG: Final = 2**30
_LOG_SECONDS: Final = 120.0
_SHORTEST_LINE: Final = 16
"""Bytes of a line on average, at least: the kubelet can only be asked for a number of lines."""
_APART = re.compile(rb"[\s\"'<>]")
"""Is in no credential of a URL."""


def collect_host(server: Server, folder: Folder, node: str) -> Collected:
    """Ask one kubelet through the API server; one that does not answer is told."""
    found, names = Collected(), {"name": node}
    with found.noting(f"{node}: "):
        said = server.tried(server.api.document, f"{_PROXY}configz", names)
        blanked = redact(said)
        folder.add(host_path(node, "configz"), encoded(said), found, redacted=blanked)
    with found.noting(f"{node}: "):
        server.tried(lambda: list(server.api.read(f"{_PROXY}healthz", names)))
        folder.add(host_path(node, "healthz"), encoded({"status": 200}), found)
    return found


class LoggedPod(NamedTuple):
    """A Pod with the names of its logs: of a container, or of the `previous` one of that name."""

    namespace: str
    name: str
    logs: tuple[tuple[str, bool], ...]


def logged_pod(pod: Mapping[str, Any]) -> LoggedPod:
    """Read it from a Pod; init containers are among them."""
    spec, status, metadata = (section(pod, each) for each in ("spec", "status", "metadata"))
    sorts = ("initContainers", "containers", "ephemeralContainers")
    states = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    containers = [text(each, "name") for sort in sorts for each in items(spec, sort)]
    restarted = {
        text(each, "name")
        for state in states
        for each in items(status, state)
        if (number(each, "restartCount") or 0) > 0
    }
    logs = [(each, False) for each in containers]
    logs += [(each, True) for each in containers if each in restarted]
    return LoggedPod(text(metadata, "namespace"), text(metadata, "name"), tuple(logs))


def collect_logs(server: Server, folder: Folder, most: int, pod: LoggedPod) -> Collected:
    """Take the logs of a Pod, at most `most` bytes each. Refusals are reported.

    A container that has no log, because it never ran, is no reason to miss the others.
    """
    found, whose = Collected(), f"{pod.namespace}/{pod.name}: "
    with found.noting(whose):
        for container, previous in pod.logs:
            try:
                data, cut = server.tried(_tail, server, pod, container, previous, most)
            except (NotFound, InvalidRequest):
                continue
            except KubeError as error:
                found.error = f"{whose}{error}"
                continue
            if cut:
                found.truncated = f"of each log the newest {most // 1024} KiB are kept"
            said, blanked = _blanked(data)
            if said:
                path = log_path(pod.namespace, pod.name, container, previous=previous)
                folder.add(path, said, found, redacted=blanked)
    return found


def _tail(
    server: Server, pod: LoggedPod, container: str, previous: bool, most: int
) -> tuple[bytes, bool]:
    """Return the end of a log, and whether there was more of it."""
    query = {"tailLines": str(most // _SHORTEST_LINE)}
    if previous:
        query["previous"] = "true"
    data = bytearray()
    for piece in server.api.read_log(
        pod.namespace, pod.name, container, query, most=_LONGEST_LOG, timeout=_LOG_SECONDS
    ):
        data += piece
        if len(data) > most:
            # One byte more than is kept: if that ends a line, the first line is whole.
            del data[: -most - 1]
    return (_from_a_line_on(bytes(data)), True) if len(data) > most else (bytes(data), False)


def _from_a_line_on(data: bytes) -> bytes:
    """Leave out the line that was cut: it may begin amid a URL, with a password first."""
    _, newline, rest = data.partition(b"\n")
    if newline:
        return rest
    apart = _APART.search(data)
    return data[apart.end() :] if apart else b""


def _blanked(data: bytes) -> tuple[bytes, int]:
    """Blank the credentials of URLs, line by line; whatever bytes there are stay as they are."""
    lines, blanked = data.split(b"\n"), 0
    for at, line in enumerate(lines):
        if b"://" in line:
            said, times = redact_text(line.decode("latin-1"))
            lines[at] = said.encode("latin-1")
            blanked += times
    return b"\n".join(lines), blanked
