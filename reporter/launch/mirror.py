"""A run's objects as the API server shows them: a list, then a watch, each kind in a thread.

Only what was read from an object is kept, never the object. After anything but the regular end of a
watch the list is read anew, so nothing that was missed can stay missed. The threads post to the
event loop, to which all that is kept belongs.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reporter.common.objects import section, text
from reporter.common.retry import next_delay
from reporter.errors import KubeError
from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from reporter.launch.seen import Refusal, SeenJob, SeenPod, read_event, read_job, read_pod
from reporter.run.launch_file import Launch
from reporter.run.names import selector
from reporter.run.state import LauncherTrouble

Seen = TypeVar("Seen")

LONGEST_BACK_OFF = 10.0  # seconds
_WATCH = 300  # seconds
_QUIET_WATCH = 120  # less than the silence after which a watch is taken for dead
_BRIEF = 1.0  # seconds; a watch that ends sooner is begun anew after a pause
_FRESH = 5.0  # seconds since a mirror has heard anything in which nobody is failed by it


@dataclass(frozen=True, slots=True)
class Kind:
    """Which objects: of that kind, in that namespace, with those labels and fields.

    Where nothing changes, `bookmarks` tell that a watch lives and what version it has come to. The
    API server sends none for Events.
    """

    name: str
    namespace: str
    labels: str = ""
    fields: str = ""
    bookmarks: bool = True


class Mirror(Generic[Seen]):
    """What was `seen` of the objects, by their names; it belongs to the event loop.

    `lost` is why the present is not seen, if it is not; `listed` whether it was ever known what
    there is; `heard_at` when anything came last, monotonic: a connection may be dead for long
    before it ends. `read` turns an object into what is kept of it, nothing where it is of no
    interest. `changed` is called after each change, `failed` with what is tried and why in vain.
    `now` gives the run's time.
    """

    def __init__(
        self,
        api: KubeApi,
        kind: Kind,
        read: Callable[[Mapping[str, Any]], Seen | None],
        changed: Callable[[], None],
        *,
        failed: Callable[[str, str], None] = lambda *_: None,
        now: Callable[[], float] = time.time,
        rng: Callable[[], float] = random.random,
    ) -> None:
        self._api, self._kind, self._read, self._changed = api, kind, read, changed
        self._failed, self._now, self._rng = failed, now, rng
        self.seen: dict[str, Seen] = {}
        self.lost: LauncherTrouble | None = None
        self.listed = False
        self.heard_at = 0.0
        self._fault: Exception | None = None
        self._loop = asyncio.get_running_loop()
        self._stop, self._anew = threading.Event(), False
        self._watch: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=f"launch-{kind.name}", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end, soon if it watches, else after the request on its way."""
        self._stop.set()
        self._end_watch()

    async def join(self) -> None:
        """Wait until the thread has ended."""
        await asyncio.to_thread(self._thread.join)

    def refresh(self) -> None:
        """Have the list read anew."""
        self._anew = True
        self._end_watch()

    def note(self, name: str, seen: Seen) -> None:
        """Take in what the API server has answered: a watch may show it much later."""
        self.seen.setdefault(name, seen)

    def forget(self, name: str) -> None:
        """Take out what the API server does not know."""
        self.seen.pop(name, None)

    def raise_fault(self) -> None:
        """Raise what has ended the thread, if anything has: what is seen is the past then."""
        if self._fault is not None:
            raise self._fault

    # -- on the loop -----------------------------------------------------------------------------

    def _end_watch(self) -> None:
        if (watch := self._watch) is not None:
            watch.close()

    def _replace(self, seen: dict[str, Seen], heard_at: float) -> None:
        self.seen, self.lost, self.listed, self.heard_at = seen, None, True, heard_at
        self._changed()

    def _change(self, name: str, seen: Seen | None, heard_at: float) -> None:
        if seen is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = seen
        self.heard_at = heard_at
        self._changed()

    def _hear(self, heard_at: float) -> None:
        self.heard_at = heard_at

    def _lose(self, reason: str) -> None:
        doing = f"watching {self._kind.name}s"
        since = self._now() if self.lost is None else self.lost.since
        self.lost = LauncherTrouble(since, f"{doing}: {reason}")
        self._failed(doing, reason)
        self._changed()

    def _break(self, fault: Exception) -> None:
        self._fault = fault
        self._changed()

    # -- in the thread ---------------------------------------------------------------------------

    def _post(self, change: Callable[..., None], *what: object) -> None:
        if not self._stop.is_set():
            with suppress(RuntimeError):  # the thread may outlive the loop
                self._loop.call_soon_threadsafe(change, *what)

    def _run(self) -> None:
        try:
            self._look()
        except Exception as error:
            self._post(self._break, error)

    def _look(self) -> None:
        failures = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                version = self._list()
                while not (self._stop.is_set() or self._anew):
                    version = self._follow(version)
                    if not self._kind.bookmarks:
                        break  # the version may be one that the server has forgotten
            except KubeError as error:
                # A list is no success where each watch after it is refused.
                lasted = time.monotonic() - began > LONGEST_BACK_OFF
                failures = 1 if lasted else failures + 1
                self._post(self._lose, str(error))
                delay = next_delay(
                    failures, self._rng, retry_after=error.retry_after, longest=LONGEST_BACK_OFF
                )
                self._stop.wait(delay)

    def _list(self) -> str:
        """Read all there is; return the version from which a watch goes on."""
        found: dict[str, Seen] = {}
        kind, more = self._kind, ""
        self._anew = False
        while True:
            page = self._api.list_page(
                kind.name, kind.namespace, kind.labels, field_selector=kind.fields, more=more
            )
            for each in page.items:
                if (seen := self._read(each)) is not None:
                    found[_name(each)] = seen
            more = page.more
            if self._stop.is_set():
                return page.resource_version
            if not more:
                break
        # Not its beginning: a list that takes long would be too old for ever.
        self._post(self._replace, found, time.monotonic())
        return page.resource_version

    def _follow(self, version: str) -> str:
        """Watch until the server ends it; return the version from which to go on."""
        kind, began = self._kind, time.monotonic()
        self._watch = watch = self._api.watch(
            kind.name,
            kind.namespace,
            kind.labels,
            field_selector=kind.fields,
            resource_version=version,
            server_timeout=_WATCH if kind.bookmarks else _QUIET_WATCH,
        )
        # Whoever sets one of these and closes the watch may not have seen this one yet.
        if self._stop.is_set() or self._anew:
            return version
        for event, each in watch:
            version = text(section(each, "metadata"), "resourceVersion") or version
            seen = None if event in {"BOOKMARK", "DELETED"} else self._read(each)
            if seen is None and event != "DELETED":
                # What somebody has changed so that nothing is read from it is no less there.
                self._post(self._hear, time.monotonic())
                continue
            self._post(self._change, _name(each), seen, time.monotonic())
        if time.monotonic() - began < _BRIEF and not self._anew:
            self._stop.wait(_BRIEF)
        return version


def _name(found: Mapping[str, Any]) -> str:
    return text(section(found, "metadata"), "name")


class Mirrors:
    """What is seen of a run: its Jobs, their Pods, and why some are refused.

    `changed`, `failed`, `now` and `rng` are as for a `Mirror`.
    """

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        run: str,
        launch: Launch,
        changed: Callable[[], None],
        **given: Any,
    ) -> None:
        labels = selector(run)
        refused = "reason=FailedCreate,involvedObject.kind=Job"
        events = Kind("Event", namespace, fields=refused, bookmarks=False)
        self.jobs: Mirror[SeenJob] = Mirror(
            api, Kind("Job", namespace, labels), read_job, changed, **given
        )
        self.pods: Mirror[SeenPod] = Mirror(
            api,
            Kind("Pod", namespace, labels),
            lambda pod: read_pod(pod, launch),
            changed,
            **given,
        )
        self.events: Mirror[Refusal] = Mirror(api, events, read_event, changed, **given)
        # Without the Events only words are missing.
        self._needed: tuple[Mirror[Any], ...] = (self.jobs, self.pods)

    def __iter__(self) -> Iterator[Mirror[Any]]:
        return iter((*self._needed, self.events))

    @property
    def listed(self) -> bool:
        """Whether it was ever known which Jobs and Pods there are."""
        return all(each.listed for each in self._needed)

    @property
    def unseen_since(self) -> float | None:
        """Since when that is not seen; nothing while it is."""
        return min((each.lost.since for each in self._needed if each.lost), default=None)

    def old(self, now: float) -> list[Mirror[Any]]:
        """Return those that may show the past: a dead connection is told from silence only late.

        `now` is monotonic.
        """
        return [mirror for mirror in self._needed if now >= mirror.heard_at + _FRESH]
