"""One kind of a run's objects, as the API server shows them: a list, then a watch, in a thread.

Only what was read from an object is kept, never the object. After anything but the regular end of a
watch the list is read anew, so nothing that was missed can stay missed.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from reporter.common.objects import section, text
from reporter.common.retry import next_delay
from reporter.errors import KubeError
from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch

Seen = TypeVar("Seen")

LONGEST_BACK_OFF = 10.0  # seconds
_WATCH = 300  # seconds
_QUIET_WATCH = 120  # less than the silence after which a watch is taken for dead
_BRIEF = 1.0  # seconds; a watch that ends sooner is begun anew after a pause


@dataclass(frozen=True, slots=True)
class Kind:
    """Which objects: of that kind, in that namespace, with those labels and fields.

    Where nothing changes, `bookmarks` tell that a watch lives and what version it has come to. The
    API server sends none for Events.
    """

    name: str
    namespace: str
    labels: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    bookmarks: bool = True

    @property
    def field_selector(self) -> str:
        """As the API server wants it."""
        return ",".join(f"{path}={value}" for path, value in self.fields.items())


@dataclass(frozen=True, slots=True)
class Lost:
    """Since when the present is not seen, and why."""

    since: float
    reason: str


class Mirror(Generic[Seen]):
    """What was read of the objects, by their names. `changed` is called from the thread.

    `read` turns an object into what is kept of it, nothing where it is of no interest. `now` gives
    the run's time.
    """

    def __init__(
        self,
        api: KubeApi,
        kind: Kind,
        read: Callable[[Mapping[str, Any]], Seen | None],
        changed: Callable[[], None],
        *,
        now: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._api, self._kind, self._read, self._changed = api, kind, read, changed
        self._now, self._rng = now, rng
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._seen: dict[str, Seen] = {}
        self._lost: Lost | None = None
        self._listed = False
        self._watch: Watch | None = None
        self._fault: Exception | None = None
        self._anew, self._heard_at = threading.Event(), 0.0
        self._thread = threading.Thread(target=self._run, name=f"launch-{kind.name}", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end, soon if it watches, else after the request on its way."""
        self._stop.set()
        self._end_watch()

    def join(self) -> None:
        """Wait until the thread has ended."""
        self._thread.join()

    @property
    def watched(self) -> str:
        """What it shows, for people, as `Jobs`."""
        return f"{self._kind.name}s"

    @property
    def listed(self) -> bool:
        """Whether it was ever known what there is."""
        return self._listed

    @property
    def lost(self) -> Lost | None:
        """Since when the present is not seen; nothing while it is."""
        return self._lost

    @property
    def heard_at(self) -> float:
        """When anything came last, monotonic: a connection may be dead for long before it ends."""
        return self._heard_at

    def refresh(self) -> None:
        """Have the list read anew."""
        self._anew.set()
        self._end_watch()

    def check(self) -> None:
        """Raise what has ended the thread, if anything has: what is shown is the past then."""
        if self._fault is not None:
            raise self._fault

    def seen(self) -> dict[str, Seen]:
        """Return what there is, by name."""
        with self._lock:
            return self._seen.copy()

    def _end_watch(self) -> None:
        with self._lock:
            watch = self._watch
        if watch is not None:
            watch.close()

    def _run(self) -> None:
        try:
            self._look()
        except Exception as error:
            self._fault = error
            self._tell()

    def _look(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                version = self._list()
                while not (self._stop.is_set() or self._anew.is_set()):
                    version = self._follow(version)
                    if not self._kind.bookmarks:
                        break  # the version may be one that the server has forgotten
            except KubeError as error:
                # A list is no success where each watch after it is refused.
                lasted = time.monotonic() - began > LONGEST_BACK_OFF
                failures = 1 if lasted else failures + 1
                self._lose(str(error))
                delay = next_delay(
                    failures,
                    self._rng,
                    retry_after=error.retry_after,
                    longest=LONGEST_BACK_OFF,
                )
                self._stop.wait(delay)

    def _list(self) -> str:
        """Read all there is; return the version from which a watch goes on."""
        found: dict[str, Seen] = {}
        kind, more, version = self._kind, "", ""
        self._anew.clear()
        while True:
            page = self._api.list_page(
                kind.name,
                kind.namespace,
                kind.labels,
                field_selector=kind.field_selector,
                more=more,
            )
            for each in page.items:
                self._keep(found, each)
            version, more = page.resource_version, page.more
            if self._stop.is_set():
                return version
            if not more:
                break
        with self._lock:
            self._seen, self._lost, self._listed = found, None, True
            # Not its beginning: a list that takes long would be too old for ever.
            self._heard_at = time.monotonic()
        self._tell()
        return version

    def _follow(self, version: str) -> str:
        """Watch until the server ends it; return the version from which to go on."""
        kind, began = self._kind, time.monotonic()
        watch = self._api.watch(
            kind.name,
            kind.namespace,
            kind.labels,
            field_selector=kind.field_selector,
            resource_version=version,
            server_timeout=_WATCH if kind.bookmarks else _QUIET_WATCH,
        )
        with self._lock:
            self._watch = watch
        if self._stop.is_set() or self._anew.is_set():
            return version
        for event, each in watch:
            came = time.monotonic()
            version = text(section(each, "metadata"), "resourceVersion") or version
            if event == "BOOKMARK":
                self._heard_at = came
                continue
            with self._lock:
                if event == "DELETED":
                    self._seen.pop(_name(each), None)
                else:
                    self._keep(self._seen, each)
                self._heard_at = came
            self._tell()
        if time.monotonic() - began < _BRIEF and not self._anew.is_set():
            self._stop.wait(_BRIEF)
        return version

    def _keep(self, seen: dict[str, Seen], each: Mapping[str, Any]) -> None:
        found = self._read(each)
        if found is not None:
            seen[_name(each)] = found

    def _lose(self, reason: str) -> None:
        with self._lock:
            since = self._now() if self._lost is None else self._lost.since
            self._lost = Lost(since, reason)
        self._tell()

    def _tell(self) -> None:
        if not self._stop.is_set():
            self._changed()


def _name(found: Mapping[str, Any]) -> str:
    return text(section(found, "metadata"), "name")
