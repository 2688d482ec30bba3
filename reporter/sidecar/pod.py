"""The Pod as a source.

A thread keeps its newest state from a watch; without a watch it is read with GET.
"""

import random
import threading
import time
from collections.abc import Callable

from reporter.common.objects import Object, View, section, text
from reporter.common.retry import next_delay
from reporter.errors import Forbidden, KubeError, NotFound, Silence, Unavailable
from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from reporter.verdict.facts import (
    Pod,
    PodGone,
    PodLook,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
)
from reporter.verdict.pod import Names, read_pod

FIRST_ANSWER = 1.0  # seconds to wait for the watch's first event before a GET asks
HEALTHY_AFTER = 5.0  # a watch that lived this long starts its back-off anew
POLL_PAUSE = 10.0  # between two reads where there is no watch
WATCH_SECONDS = 900  # until the server ends a watch: long enough for most Jobs


class PodWatch:
    """The newest state of our own Pod.

    `wake` is called from the watch thread for everything that the watch shows, and for its end.
    `on_failure` gets the error of every failed request, from either thread.
    """

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str,
        names: Names,
        *,
        wake: Callable[[], None],
        on_failure: Callable[[str, KubeError], None] = lambda _what, _error: None,
    ) -> None:
        self._api, self._namespace, self._name, self._names = api, namespace, name, names
        self._wake, self._on_failure = wake, on_failure
        self._heard = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pod-watch", daemon=True)
        self._lock = threading.Lock()  # guards everything below it
        self._pod: Pod | None = None
        self._version = 0
        self._missing = False  # no Pod of that name (404, or DELETED in the watch)
        self._refused = False
        self._current = False  # the last request was answered, or only the watch may tell
        self._live = False  # the watch is connected and has shown the present state
        self._watch: Watch | None = None
        self._failures = 0
        self._next_get = 0.0

    def start(self) -> None:
        """Open the watch and wait a moment for it to show the Pod."""
        self._thread.start()
        self._heard.wait(FIRST_ANSWER)

    def close(self) -> None:
        """End the watch at once."""
        self._closed.set()
        with self._lock:
            watch = self._watch
        if watch is not None:
            watch.close()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def look(self, *, fresh: bool = False, timeout: float = 5.0) -> PodLook:
        """Return the newest state. `fresh` asks the API now, whatever the watch says."""
        now = time.monotonic()
        with self._lock:
            ask = not self._gone and (fresh or (not self._live and now >= self._next_get))
        if ask:
            self._get(timeout)
        with self._lock:
            if self._refused and not self._live:
                return PodRefused()
            if self._pod is None:
                return PodNeverSeen() if self._missing else PodUnknown()
            return (
                PodGone(self._pod) if self._missing else PodSeen(self._pod, current=self._current)
            )

    def next_request(self) -> float:
        """Return when a look would ask the API again; infinity while the watch shows all."""
        with self._lock:
            return float("inf") if self._live or self._gone else self._next_get

    @property
    def _gone(self) -> bool:
        return self._missing and self._pod is not None

    def _get(self, timeout: float) -> None:
        pause: float | None = POLL_PAUSE
        try:
            shown = self._api.get("Pod", self._namespace, self._name, timeout=timeout)
        except NotFound:
            with self._lock:
                self._missing = self._current = True
                self._refused = False
        except KubeError as error:
            self._on_failure("getPod", error)
            with self._lock:
                self._failures += 1
                self._refused = isinstance(error, Forbidden)
                # An API server ends no watch because a right was taken.
                self._current = self._refused and self._live
                if self._refused:  # perhaps for days, and in thousands of Pods
                    pause = min(POLL_PAUSE * self._failures, 60.0)
                else:
                    pause = next_delay(self._failures, random.random, retry_after=error.retry_after)
        else:
            self._take(shown)
        with self._lock:
            self._next_get = time.monotonic() + (pause or 0.0)
        self._heard.set()

    def _take(self, shown: Object) -> None:
        pod, version = read_pod(shown, self._names), _version(shown)
        with self._lock:
            self._failures = 0
            self._refused, self._current = False, True
            if self._pod is not None and pod.uid != self._pod.uid:
                self._missing = True  # another Pod has our name: ours is no more
            elif self._pod is None or version >= self._version:
                # Two API servers, or a GET beside a watch, may answer out of order.
                self._pod, self._version, self._missing = pod, version, False
        self._heard.set()

    def _run(self) -> None:
        failures = 0
        while not self._closed.is_set():
            opened = time.monotonic()
            error = self._follow()
            healthy = time.monotonic() - opened >= HEALTHY_AFTER
            failures = 0 if healthy else failures + 1
            if error is None and healthy:
                continue  # the server's own timeout
            longest = 60.0 if isinstance(error, Forbidden) else 10.0
            after = error.retry_after if error else None
            self._closed.wait(
                next_delay(
                    failures or 1, random.random, first=0.5, longest=longest, retry_after=after
                )
            )

    def _follow(self) -> KubeError | None:
        """Follow one watch to its end; return the error that ended it."""
        watch = self._api.watch(
            "Pod",
            self._namespace,
            field_selector=f"metadata.name={self._name}",
            server_timeout=WATCH_SECONDS,
        )
        with self._lock:
            self._watch = watch
        if self._closed.is_set():
            return None
        broken: KubeError | None = None
        try:
            for kind, shown in watch:
                self._event(kind, shown)
        except Silence:
            pass  # no failure, but reason enough for a new watch, which begins with what is true
        except KubeError as error:
            broken = error
        except Exception as error:
            # Whatever an answer nobody thought of does to us: a thread that dies here would show
            # its last Pod for ever.
            broken = Unavailable(f"{type(error).__name__}: {error}")
        if broken is not None:
            self._on_failure("watchPod", broken)
        with self._lock:
            self._live, self._watch = False, None
            # After the server's own timeout the next watch begins with the present state.
            self._next_get = 0.0 if broken else time.monotonic() + FIRST_ANSWER
        self._heard.set()
        self._wake()
        return broken

    def _event(self, kind: str, shown: Object) -> None:
        if View(shown).name == self._name:  # a bookmark names nothing
            self._take(shown)
            with self._lock:
                self._live = kind != "DELETED"
                self._missing = self._missing or kind == "DELETED"
        self._wake()


def _version(shown: Object) -> int:
    version = text(section(shown, "metadata"), "resourceVersion")
    return int(version) if version.isdecimal() and len(version) < 20 else 0
