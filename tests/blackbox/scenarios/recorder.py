"""What the API showed of Jobs and Pods, version by version, and what the containers wrote.

An admin's watch sees every version, so a wrong condition cannot hide between two looks. Files of
container logs are held open: their names go with the Pod, their content does not.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from tests.bed.api import Api, ApiError
from tests.bed.node import Node

Object = dict[str, Any]
JOBS = "/apis/batch/v1/jobs"
PODS = "/api/v1/pods"
WATCH_SECONDS = 10


@dataclass(frozen=True)
class Seen:
    """One version of an object; `at` is our wall clock, `gone` says that it was the last."""

    at: float
    gone: bool
    object: Object


class Recorder:
    """The history of all Jobs and Pods since the start; threads may ask at any time."""

    def __init__(self, api: Api, node: Node) -> None:
        self._api, self._node = api, node
        self._jobs: dict[tuple[str, str], list[Seen]] = defaultdict(list)
        self._pods: dict[tuple[str, str], dict[str, list[Seen]]] = defaultdict(dict)
        self._logs: dict[Path, IO[bytes]] = {}
        self._news = threading.Condition()
        self._closed = threading.Event()
        self._threads = [
            threading.Thread(target=self._follow, args=args, daemon=True)
            for args in ((JOBS, self._take_job), (PODS, self._take_pod))
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for thread in self._threads:
            thread.join(2 * WATCH_SECONDS)
        for file in self._logs.values():
            file.close()

    def close(self) -> None:
        """See nothing new any more; who waits, or will, gets an InterruptedError."""
        self._closed.set()

    def job(self, namespace: str, name: str) -> list[Seen]:
        """The versions of a Job, oldest first."""
        with self._news:
            return list(self._jobs[namespace, name])

    def pods(self, namespace: str, job: str) -> dict[str, list[Seen]]:
        """The versions of a Job's Pods by their names, in the order of their creation."""
        with self._news:
            return {name: list(seen) for name, seen in self._pods[namespace, job].items()}

    def pods_in(self, namespace: str) -> list[list[Seen]]:
        """The versions of all Pods of a namespace, in the order in which they came."""
        with self._news:
            found = [pods for (where, _), pods in self._pods.items() if where == namespace]
            listed = [list(seen) for pods in found for seen in pods.values()]
        return sorted(listed, key=lambda seen: seen[0].at)

    def wait(self, ready: Callable[[], Any], seconds: float, what: str) -> Any:
        """Wait until `ready` is true, looking at every news; return what it returned."""
        end = time.monotonic() + seconds
        with self._news:
            while not (found := ready()):
                left = end - time.monotonic()
                if self._closed.is_set():
                    raise InterruptedError(f"{what}: nobody looks any more")
                if left <= 0:
                    raise TimeoutError(f"{what}: not within {seconds:.0f} s")
                # Files and processes bring no news: look at them now and then.
                self._news.wait(min(left, 0.25))
            return found

    def log(self, pod: Object, container: str) -> list[str]:
        """Every line of all runs of a Pod's container, containerd's stamp in front, also later."""
        folder = self._folder(pod)
        self._open_logs(folder)
        with self._news:
            files = sorted(p for p in self._logs if p.parent == folder / container)
            text = b""
            for path in files:
                self._logs[path].seek(0)
                text += self._logs[path].read()
        return text.decode(errors="replace").splitlines()

    def _follow(self, path: str, take: Callable[[Object, bool], None]) -> None:
        version = ""
        while not self._closed.is_set():
            since = f"?resourceVersion={version}" if version else ""
            try:
                for event in self._api.watch(path + since, WATCH_SECONDS):
                    if event["type"] == "ERROR":
                        version = ""
                        break
                    version = event["object"]["metadata"]["resourceVersion"]
                    with self._news:
                        take(event["object"], event["type"] == "DELETED")
                        self._news.notify_all()
                    if self._closed.is_set():
                        return
            except (OSError, http.client.HTTPException, ApiError):
                # The API server is being stopped or is not back yet.
                self._closed.wait(0.1)

    def _take_job(self, job: Object, gone: bool) -> None:
        metadata = job["metadata"]
        _add(self._jobs[metadata["namespace"], metadata["name"]], job, gone)

    def _take_pod(self, pod: Object, gone: bool) -> None:
        metadata = pod["metadata"]
        owner = metadata.get("labels", {}).get("batch.kubernetes.io/job-name", "")
        pods = self._pods[metadata["namespace"], owner]
        _add(pods.setdefault(metadata["name"], []), pod, gone)
        self._open_logs(self._folder(pod))

    def _folder(self, pod: Object) -> Path:
        metadata = pod["metadata"]
        name = f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"
        return self._node.places.pod_logs / name

    def _open_logs(self, folder: Path) -> None:
        for path in folder.glob("*/*.log"):
            with self._news:
                if path not in self._logs:
                    self._logs[path] = path.open("rb")


def _add(seen: list[Seen], found: Object, gone: bool) -> None:
    # A watch that starts anew shows what is known already.
    if not seen or seen[-1].object["metadata"]["resourceVersion"] != _version(found) or gone:
        seen.append(Seen(time.time(), gone, found))


def _version(found: Object) -> str:
    return str(found["metadata"]["resourceVersion"])
