"""A world in memory for the loop: time passes only while it sleeps or a request takes its time."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reporter.errors import Conflict, KubeError, NotFound, Unavailable
from reporter.sidecar.job import JobCondition
from reporter.sidecar.loop import Inputs, Loop, Options
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.case import Policy
from reporter.verdict.condition import Statement
from reporter.verdict.facts import (
    FileAbsent,
    FileIdentity,
    FileInvalid,
    FileValid,
    Form,
    PodGone,
    PodLook,
    PodSeen,
    PodUnknown,
    Progress,
    ResultLook,
    ResultPayload,
    Searched,
)
from reporter.verdict.pod import Names, read_pod
from reporter.verdict.rows import Report
from tests.fakekube.answers import ApiError
from tests.fakekube.events import created
from tests.fakekube.jobstatus import patched
from tests.fakekube.objects import make_job, make_pod, running, terminated, waiting

EPOCH = 1_900_000_000.0
"""Wall clock when the reporter starts; the monotonic clock is 0 then."""
TYPE = "Available"
NAME = "validate-x7k2p"
SPIN = 200
"""So many passes in one moment are a loop that never sleeps."""

Object = dict[str, Any]


class TimeIsUp(Exception):
    """The test has seen enough."""


def stamp(at: float) -> str:
    """Return a moment of the script as the API shows it."""
    return datetime.fromtimestamp(EPOCH + at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """Everything the loop touches. Times are seconds since the reporter's start."""

    def __init__(
        self,
        form: str = "native",
        *,
        adapter: Object | None = None,
        restart_policy: str = "Never",
        wait: float = 300.0,
        form_known: bool = True,
        report_running: bool = True,
        at_exit: bool = False,
        poll_interval: float = 2.0,
        watched: bool = True,
        events: Any | None = None,
    ) -> None:
        self.now = 0.0
        self.requested_at: float | None = None
        self.standing_still = 0
        self.watched = watched
        self.noisy = False
        """File events are there to be drained, and no time passes until they are."""
        self.api_away = False
        self.answer_takes = 0.0
        """Of requests to the Job; those to the Pod take no time."""
        self.patch_takes = 0.0
        """Of a PATCH of the Job; one that is given less time is not carried out."""
        self.hangs = False
        """No request of any kind is answered."""
        self.errors: list[KubeError] = []
        """Each request to the Job takes one, as long as there are any."""
        self.errors_of: dict[str, list[KubeError]] = {"GET": [], "PATCH": [], "POST": []}
        """The same for requests of one method."""
        self.loses_answer = False
        """The next PATCH of the Job is carried out, and its answer does not arrive."""
        self.webhook: Callable[[Object], object] = lambda _: None
        """Changes the Job as it is patched, before it is stored."""
        self.requests: list[tuple[float, str]] = []
        self.events: list[Object] = []
        self.event_patience: list[float] = []
        """How long the request for an Event was given."""
        self.pod_asked: list[float] = []
        self.passes: list[float] = []
        self.published_at: list[tuple[float, Statement]] = []
        self.failures: list[tuple[float, KubeError]] = []
        self.withheld_at: list[tuple[float, Report]] = []
        self.file: ResultLook = FileAbsent()
        self.beside: tuple[str, ...] = ()
        self.progress_now: Progress | None = None
        self._script: list[tuple[float, Callable[[], object]]] = []
        self.job: Object | None = make_job()
        self.job["metadata"] |= {"resourceVersion": "1"}
        self.job["status"]["startTime"] = stamp(0)
        self.pod = make_pod(
            self.job,
            form=form,  # type: ignore[arg-type]
            restart_policy=restart_policy,  # type: ignore[arg-type]
            adapter_state=adapter or running(stamp(0)),
            created=stamp(-1),
            name=NAME,
        )
        self.shown: PodLook | None = None
        """What is seen of the Pod instead of its present state."""
        self.half_open = False
        """The watch seems healthy and shows nothing new."""
        self._events = events
        self._options = Options(
            pod_name=NAME,
            policy=Policy(wait=wait, form=Form(form) if form_known else None, at_exit=at_exit),
            report_running=report_running,
            poll_interval=poll_interval,
        )
        self.restart()

    def restart(self) -> None:
        """Start a new process of the reporter, which knows nothing of an earlier one."""
        self.sink = JobCondition(self, "default", "validate", TYPE, events=self)
        self.loop = Loop(
            Inputs(
                pod=PodView(self),
                result=FileView(self),
                progress=ProgressView(self),
                file_events=self._events,
            ),
            self.sink,
            self._options,
            stop=self,
            telemetry=self,
            clock=lambda: self.now,
            wall=lambda: EPOCH + self.now,
            rng=lambda: 0.999,
        )

    # The script

    def at(self, seconds: float, *steps: Callable[[], object]) -> "World":
        """Do something, all of it at once, at that time; it wakes the loop."""

        def act() -> None:
            for step in steps:
                step()

        self._script.append((seconds, act))
        self._script.sort(key=lambda entry: entry[0])
        return self

    def run(self, seconds: float = 10_000.0) -> LoopOutcome | None:
        """Run the loop; return how it ended, or nothing if it still ran after so long."""
        self.at(seconds, self._over)
        try:
            return self.loop.run()
        except TimeIsUp:
            return None

    def _over(self) -> None:
        raise TimeIsUp

    def adapter(self, state: Object, last: Object | None = None, restarts: int = 0) -> None:
        """Show the adapter in this state."""
        statuses = self.pod["status"]["containerStatuses"]
        (shown,) = [c for c in statuses if c["name"] == "adapter"]
        shown |= {"state": state, "lastState": last or {}, "restartCount": restarts}

    def end(self, code: int = 0, reason: str | None = None) -> None:
        """The adapter ends now."""
        ended = terminated(code, reason, started_at=stamp(0), finished_at=stamp(self.now))
        self.adapter(ended)

    def delete(self, grace: float = 30) -> None:
        """Somebody asks for the Pod's deletion."""
        meta = self.pod["metadata"]
        meta["deletionTimestamp"] = stamp(self.now + grace)
        meta["deletionGracePeriodSeconds"] = int(grace)

    def sigterm(self) -> None:
        """The kubelet asks the reporter to end."""
        self.requested_at = self.now

    def away(self, away: bool = True) -> None:
        """The API server goes, or comes back."""
        self.api_away = away

    def result(self, success: bool = True, reason: str = "AllGood") -> None:
        """The adapter writes a result."""
        self.file = FileValid(ResultPayload(success, reason, "fine"), self._identity())

    def garbage(self) -> None:
        """The adapter writes what is no result (yet)."""
        self.file = FileInvalid("the file is empty", self._identity())

    def progress(self, **fields: Any) -> None:
        """The adapter writes progress."""
        self.progress_now = Progress(**fields)

    def lose_answer(self) -> None:
        """The answer to the next PATCH of the Job gets lost."""
        self.loses_answer = True

    def fail_next(self, method: str, error: KubeError) -> None:
        """The next request of that method to the Job fails."""
        self.errors_of[method].append(error)

    def _identity(self) -> FileIdentity:
        nanoseconds = int((EPOCH + self.now) * 1e9)
        return FileIdentity(1, 100, nanoseconds, nanoseconds)

    # The API

    def get(self, kind: str, namespace: str, name: str, *, part: str, timeout: float) -> Object:
        self._ask("GET", timeout, name)
        assert self.job is not None
        found: Object = json.loads(json.dumps(self.job))
        return found

    def patch(
        self, kind: str, namespace: str, name: str, body: Object, *, part: str, timeout: float
    ) -> Object:
        self._ask("PATCH", timeout, name)
        assert self.job is not None
        try:
            changed, _ = patched(self.job, json.dumps(body).encode(), "Strict")
        except ApiError as error:
            raise Conflict(str(error)) from None
        self.webhook(changed)
        self.job = changed
        version = int(self.job["metadata"]["resourceVersion"]) + 1
        self.job["metadata"]["resourceVersion"] = str(version)
        if self.loses_answer:
            self.loses_answer = False
            raise Unavailable("reset")
        return self.get_copy()

    def create(self, kind: Any, namespace: str, event: Object, *, timeout: float) -> None:
        self.event_patience.append(timeout)
        self._ask("POST", timeout)
        created(json.dumps(event).encode(), namespace, "", "Strict")
        self.events.append(event)

    def get_copy(self) -> Object:
        found: Object = json.loads(json.dumps(self.job))
        return found

    def _ask(self, method: str, timeout: float, name: str = "") -> None:
        self.requests.append((self.now, method))
        takes = max(self.answer_takes, self.patch_takes if method == "PATCH" else 0.0)
        self.now += timeout if self.hangs else min(takes, timeout)
        if self.api_away or self.hangs or takes > timeout:
            raise Unavailable("away")
        for errors in (self.errors, self.errors_of[method]):
            if errors:
                raise errors.pop(0)
        if self.job is None:
            raise NotFound("no Job", name=name)

    # What stands on the Job

    @property
    def condition(self) -> Object:
        found = (self.job or {})["status"].get("conditions", [])
        return next((c for c in found if c["type"] == TYPE), {})

    @property
    def history(self) -> list[tuple[float, str, bool]]:
        """When which row was written, and whether as final."""
        return [(round(at, 3), s.report.row, s.final) for at, s in self.published_at]

    # Stop and wake

    @property
    def wake(self) -> "World":
        return self

    def wait(self, timeout: float | None, extra_fds: object = ()) -> set[int] | None:
        if extra_fds and self.noisy:
            return set(extra_fds)  # type: ignore[call-overload, no-any-return]
        end = self.now + (float("inf") if timeout is None else max(timeout, 0.0))
        if self._script and self._script[0][0] <= end:
            at, step = self._script.pop(0)
            self.now = max(self.now, at)
            self.standing_still = 0
            step()
            return None
        assert end < float("inf"), "asleep for ever"
        self.standing_still = self.standing_still + 1 if end == self.now else 0
        assert self.standing_still < SPIN, f"the loop spins at {self.now}"
        self.now = end
        return set()

    # Telemetry

    def observed(self, _: object) -> None:
        self.passes.append(self.now)

    def published(self, statement: Statement, _: float) -> None:
        self.published_at.append((self.now, replace(statement)))

    def withheld(self, report: Report, _: object) -> None:
        self.withheld_at.append((self.now, report))

    def failed(self, _: str, error: KubeError) -> None:
        self.failures.append((self.now, error))


class PodView:
    """The Pod, as a watch or a GET would show it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last: PodLook = PodUnknown()
        self._next = 0.0

    def look(self, *, fresh: bool = False, timeout: float = 5.0) -> PodLook:
        world = self._world
        asks = fresh or not world.watched
        if asks and not fresh and world.now < self._next:
            return self._last
        if asks:
            world.pod_asked.append(world.now)
            self._next = world.now + 10.0
            if world.hangs:
                world.now += timeout
                return self._last
        elif world.half_open:
            return self._last
        if world.shown is not None:
            self._last = world.shown
        elif not world.api_away:
            self._last = PodSeen(read_pod(world.pod, Names()))
        elif isinstance(self._last, PodSeen):
            self._last = PodSeen(self._last.pod, current=False)
        return self._last

    def next_request(self) -> float:
        gone = isinstance(self._last, PodGone)
        return float("inf") if self._world.watched or gone else self._next


class FileView:
    """The result file."""

    def __init__(self, world: World) -> None:
        self._world = world

    def look(self) -> ResultLook:
        return self._world.file

    def search(self) -> Searched:
        return Searched("/results/adapter-result.json", self._world.beside)


class ProgressView:
    """The progress file."""

    def __init__(self, world: World) -> None:
        self._world = world

    def look(self) -> Progress | None:
        return self._world.progress_now


__all__ = ["EPOCH", "World", "running", "stamp", "terminated", "waiting"]


IMAGE = "ErrImagePull"


def rows(world: World) -> list[tuple[str, bool]]:
    return [(row, final) for _, row, final in world.history]


def supersede(world: World) -> None:
    """A newer attempt has written what stands."""
    assert world.job is not None
    annotations = world.job["metadata"]["annotations"]
    note = annotations["status-reporter.io/Available"]
    newer = note.replace(NAME, "another").replace(stamp(-1), stamp(300))
    annotations["status-reporter.io/Available"] = newer
