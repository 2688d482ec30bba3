"""The Pod as a source: what it says when watch and GET disagree, fail, or fall silent."""

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from reporter.errors import Forbidden, KubeError, NotFound, Silence, Unavailable
from reporter.sidecar.pod import PodWatch
from reporter.verdict.facts import PodGone, PodNeverSeen, PodRefused, PodSeen, PodUnknown
from reporter.verdict.pod import Names
from tests.fakekube.objects import make_job, make_pod, running, terminated

NAME = "pod"
BOUND = 20.0
NEVER = float("inf")
Object = dict[str, Any]


def pod(version: int, code: int | None = None, uid: str = "ours") -> Object:
    """The Pod at one resourceVersion."""
    state = running() if code is None else terminated(code)
    made = make_pod(make_job(), name=NAME, uid=uid, adapter_state=state)
    made["metadata"]["resourceVersion"] = str(version)
    return made


class Api:
    """Scripted answers: `answer` for a GET, `events` for the watches, an exception to break one."""

    def __init__(self) -> None:
        self.answer: Object | KubeError = NotFound("none")
        self.events: queue.Queue[tuple[str, Object] | Exception | None] = queue.Queue()
        self.gets = 0
        self.watches = 0

    def get(self, kind: str, namespace: str, name: str, *, timeout: float) -> Object:
        self.gets += 1
        if isinstance(self.answer, KubeError):
            raise self.answer
        return self.answer

    def watch(
        self, kind: str, namespace: str, *, field_selector: str, server_timeout: int
    ) -> "Api":
        assert ("Pod", 900) == (kind, server_timeout)  # long enough for most Jobs
        self.watches += 1
        return self

    def __iter__(self) -> Iterator[tuple[str, Object]]:
        while (event := self.events.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def close(self) -> None:
        self.events.put(None)


class Subject:
    """A source, and the means to tell it something and wait until it has heard."""

    def __init__(self) -> None:
        self.api = Api()
        self.failures: list[tuple[str, KubeError]] = []
        self._woken = threading.Semaphore(0)
        self.source = PodWatch(
            self.api,
            "default",
            NAME,
            Names(),
            wake=self._woken.release,
            on_failure=lambda what, error: self.failures.append((what, error)),
        )

    def tell(self, *events: tuple[str, Object] | Exception | None) -> None:
        for event in events:
            self.api.events.put(event)
            assert self._woken.acquire(timeout=BOUND)


@pytest.fixture
def subject() -> Iterator[Subject]:
    """A source whose watch has not been opened."""
    subject = Subject()
    yield subject
    subject.source.close()


@pytest.fixture
def watching(subject: Subject) -> Subject:
    """A source whose watch has shown the running Pod."""
    subject.api.events.put(("ADDED", pod(10)))
    subject.source.start()
    assert subject._woken.acquire(timeout=BOUND)
    return subject


def exit_code(subject: Subject) -> int | None:
    """What is known of the adapter's end."""
    look = subject.source.look()
    assert isinstance(look, PodSeen)
    state = look.pod.adapter_state
    return getattr(state, "exit_code", None)


def test_the_watch_needs_no_get(watching: Subject) -> None:
    """It starts with the present state, and whoever waits is woken by it."""
    assert None is exit_code(watching)
    watching.tell(("MODIFIED", pod(11, code=3)))

    assert 3 == exit_code(watching)
    assert 0 == watching.api.gets
    assert NEVER == watching.source.next_request()


def test_an_older_answer_does_not_replace_a_newer_event(watching: Subject) -> None:
    """A GET beside a watch may be answered by another API server."""
    watching.tell(("MODIFIED", pod(11, code=3)))
    watching.api.answer = pod(10)
    watching.source.look(fresh=True)

    assert 3 == exit_code(watching)


def test_versions_are_compared_as_numbers(watching: Subject) -> None:
    """`9` is older than `10`."""
    watching.api.answer = pod(9, code=3)
    watching.source.look(fresh=True)

    assert None is exit_code(watching)


def test_a_pod_that_is_deleted_is_gone_for_good(watching: Subject) -> None:
    """Its last state stays, and nothing is asked any more: not by us, not by a clock."""
    watching.tell(("DELETED", pod(11, code=3)))
    look = watching.source.look(fresh=True)

    assert isinstance(look, PodGone)
    assert 0 == watching.api.gets
    assert NEVER == watching.source.next_request()


def test_a_successor_of_the_same_name_is_not_our_pod(watching: Subject) -> None:
    """Another UID: ours is no more."""
    watching.api.answer = pod(50, uid="another")

    assert isinstance(watching.source.look(fresh=True), PodGone)


def test_a_pod_that_a_get_does_not_find_is_gone(watching: Subject) -> None:
    """A watch that was opened after the deletion would never say so."""
    assert isinstance(watching.source.look(fresh=True), PodGone)


def test_a_pod_that_nobody_ever_saw(subject: Subject) -> None:
    """404, and asked again later: it may be late."""
    assert isinstance(subject.source.look(), PodNeverSeen)
    assert subject.source.next_request() < NEVER
    subject.api.answer = pod(10)

    assert isinstance(subject.source.look(fresh=True), PodSeen)


def test_an_api_that_does_not_answer_leaves_what_was_seen(subject: Subject) -> None:
    """It is marked as not current until the next answer."""
    subject.api.answer = Unavailable("away")
    assert isinstance(subject.source.look(), PodUnknown)
    subject.api.answer = pod(10)
    assert PodSeen(subject.source.look(fresh=True).pod, current=True) == subject.source.look()  # type: ignore[union-attr]
    subject.api.answer = Unavailable("away")
    look = subject.source.look(fresh=True)

    assert isinstance(look, PodSeen)
    assert not look.current


def test_a_refused_pod(subject: Subject) -> None:
    """403: asked again after ten seconds, told each time."""
    subject.api.answer = Forbidden("no")

    assert isinstance(subject.source.look(), PodRefused)
    assert isinstance(subject.source.look(), PodRefused)
    assert 1 == subject.api.gets
    assert [("getPod", Forbidden)] == [(what, type(error)) for what, error in subject.failures]


@pytest.mark.parametrize(
    ("error", "expected"), [(Unavailable("busy"), PodUnknown()), (NotFound("none"), PodNeverSeen())]
)
def test_another_answer_ends_the_refusal(
    subject: Subject, error: KubeError, expected: object
) -> None:
    """Only an unbroken series of 403 counts."""
    subject.api.answer = Forbidden("no")
    subject.source.look()
    subject.api.answer = error

    assert expected == subject.source.look(fresh=True)


def test_a_pod_that_the_watch_shows_is_not_refused(watching: Subject) -> None:
    """The right to get may be missing, or be on its way: what the watch shows is the present."""
    watching.api.answer = Forbidden("no")

    look = watching.source.look(fresh=True)
    assert isinstance(look, PodSeen)
    assert look.current


def test_a_pod_that_stays_refused_is_asked_for_once_a_minute(subject: Subject) -> None:
    """A Role may be missing for days."""
    subject.api.answer = Forbidden("no")
    pauses = []
    for _ in range(8):
        before = time.monotonic()
        subject.source.look(fresh=True)
        pauses.append(round(subject.source.next_request() - before, -1))

    assert [10, 20, 30, 40, 50, 60, 60, 60] == pauses


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Forbidden("no"), [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
        (Unavailable("away"), [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]),
        (Unavailable("busy", retry_after=4.0), [6.0, 6.0, 6.0, 6.0, 8.0, 10.0, 10.0]),
    ],
    ids=["refused", "away", "asks for time"],
)
def test_a_watch_that_fails_is_opened_ever_more_seldom(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, error: KubeError, expected: list[float]
) -> None:
    pauses: list[float] = []
    closed = subject.source._closed

    def wait(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == len(expected):
            closed.set()

    monkeypatch.setattr(closed, "wait", wait)
    monkeypatch.setattr("reporter.sidecar.pod.random.random", lambda: 1.0)
    subject.api.answer = error
    for _ in expected:
        subject.api.events.put(error)
    subject.source.start()
    subject.source._thread.join(BOUND)

    assert expected == pauses


def test_a_server_that_asks_for_time_is_given_it(subject: Subject) -> None:
    """Retry-After is a floor for the next GET."""
    subject.api.answer = Unavailable("busy", retry_after=25.0)
    subject.source.look()
    first = subject.source.next_request()
    subject.api.answer = Unavailable("busy")
    subject.source.look(fresh=True)

    assert first - subject.source.next_request() > 15.0


def test_a_broken_watch_asks_for_a_get_at_once(watching: Subject) -> None:
    """Something may have been missed; the failure is told."""
    watching.api.answer = pod(11, code=3)
    watching.tell(Unavailable("reset"))

    assert 0.0 == watching.source.next_request()
    assert 3 == exit_code(watching)
    assert 1 == watching.api.gets
    assert [("watchPod", Unavailable)] == [(what, type(e)) for what, e in watching.failures]


def test_the_servers_own_timeout_is_no_reason_for_a_get(watching: Subject) -> None:
    """The next watch is there before the GET would be due."""
    watching.tell(None)
    watching.source.look()

    assert 0 == watching.api.gets
    assert [] == watching.failures
    watching.tell(("ADDED", pod(12, code=3)))
    assert 3 == exit_code(watching)
    assert (0, 2) == (watching.api.gets, watching.api.watches)


def test_a_watch_that_lasted_is_opened_again_at_once(
    watching: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends each after a quarter of an hour."""
    monkeypatch.setattr("reporter.sidecar.pod.HEALTHY_AFTER", 0.0)
    pauses: list[float] = []
    monkeypatch.setattr(watching.source._closed, "wait", pauses.append)
    watching.tell(None, ("ADDED", pod(12, code=3)), None, ("ADDED", pod(13, code=4)))

    assert 4 == exit_code(watching)
    assert ([], 0, 3) == (pauses, watching.api.gets, watching.api.watches)


def test_closing_ends_a_watch_that_waits(watching: Subject) -> None:
    """No thread is left behind."""
    watching.source.close()

    assert "pod-watch" not in {thread.name for thread in threading.enumerate()}


def test_an_answer_that_nobody_thought_of_does_not_freeze_the_pod(watching: Subject) -> None:
    """The watch breaks, it is said, and the API is asked instead."""
    watching.api.answer = pod(11, code=3)
    watching.tell(ValueError("exceeds the limit (4300 digits)"))

    assert 3 == exit_code(watching)
    assert ["watchPod"] == [what for what, _ in watching.failures]
    assert "ValueError" in str(watching.failures[0][1])


def test_a_right_that_is_withdrawn_is_a_refusal(watching: Subject) -> None:
    """What was seen long ago does not stand for what nobody may see any more."""
    watching.api.answer = Forbidden("no")
    watching.tell(Forbidden("no"))

    assert PodRefused() == watching.source.look()


def test_an_absurd_version_is_no_version(watching: Subject) -> None:
    """Python refuses to read an integer of 5,000 digits."""
    shown = pod(11, code=3)
    shown["metadata"]["resourceVersion"] = "9" * 5000
    watching.tell(("MODIFIED", shown), ("MODIFIED", pod(12, code=4)))

    assert 4 == exit_code(watching)


def test_silence_is_no_failure_but_a_new_watch(watching: Subject) -> None:
    """On a cluster where nothing else happens bookmarks are rare: no warning, no GET."""
    watching.tell(Silence("no data for 135 s"))
    watching.tell(("ADDED", pod(10)))

    assert [] == watching.failures
    assert 2 == watching.api.watches
    assert 0 == watching.api.gets
