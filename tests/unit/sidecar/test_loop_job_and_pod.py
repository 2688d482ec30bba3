"""When the loop looks at the Job and the Pod, on a clock of the test's own."""

import json
from collections.abc import Callable

import pytest

from reporter.errors import Gone, NotFound, Unavailable
from reporter.sidecar.inotify import DirectoryWatch
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.condition import Attempt, Statement
from reporter.verdict.decide import Settled
from reporter.verdict.facts import PodGone, PodSeen, PodUnknown
from reporter.verdict.rows import Report
from tests.fakekube import make_job
from tests.unit.sidecar.loop_world import EPOCH, World, rows

ANNOTATION = "status-reporter.io/Available"

# The Job


def test_a_job_that_is_not_there_yet_is_looked_for_again() -> None:
    """An API server may be behind."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    job, world.job = world.job, None
    world.at(3.0, lambda: setattr(world, "job", job))
    world.at(4.0, world.result)

    assert LoopOutcome.FINAL == world.run()


def test_a_job_that_never_shows_up() -> None:
    """After five seconds the name is wrong."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    world.job = None

    assert LoopOutcome.JOB_NEVER_SEEN == world.run()
    assert 5.0 <= world.now <= 10.0


def test_a_job_whose_pod_says_it_was_there() -> None:
    """The label names it: it has gone, and quietly."""
    world = World("classic")
    world.job = None

    assert LoopOutcome.JOB_GONE == world.run()


def test_a_job_that_was_deleted_after_it_was_seen() -> None:
    """The Pod need not say so: the 404 names the Job."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    world.at(10.0, lambda: setattr(world, "job", None), world.result)

    assert LoopOutcome.JOB_GONE == world.run()
    assert 10.0 == world.now


def test_one_404_that_does_not_name_the_job_ends_nothing() -> None:
    """An API server that starts does not know the path yet."""
    world = World("classic")
    world.errors = [NotFound("404 page not found")]
    world.at(10.0, lambda: world.errors.append(NotFound("404 page not found")), world.result)

    assert LoopOutcome.FINAL == world.run()
    assert ("True", "AllGood") == (world.condition["status"], world.condition["reason"])


@pytest.mark.parametrize("name", ["", "default"], ids=["names nothing", "names the namespace"])
def test_a_404_that_does_not_name_the_job_ends_the_work_after_five_seconds(name: str) -> None:
    world = World("classic")
    missing = NotFound("404", name=name)
    world.at(10.0, lambda: world.errors.extend([missing] * 100), world.result)

    assert LoopOutcome.JOB_GONE == world.run()
    assert 15.0 <= world.now <= 20.0


def test_404s_with_another_failure_between_them_begin_anew() -> None:
    """An API server that is restarted for longer than five seconds says 404 before and after."""
    world = World("classic")
    missing, away = NotFound("404"), Unavailable("connection refused", retry_after=6.0)
    world.at(10.0, lambda: world.errors.extend([missing, away, missing]), world.result)

    assert LoopOutcome.FINAL == world.run()


def test_another_job_of_that_name_is_not_touched() -> None:
    """Deleted and created again: the UID is another one."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    successor = make_job(uid="another")
    successor["metadata"]["resourceVersion"] = "1"
    world.at(10.0, lambda: setattr(world, "job", successor), world.result)

    assert LoopOutcome.JOB_GONE == world.run()
    assert {} == world.condition


def test_a_uid_that_is_refused_in_the_write() -> None:
    """Replaced between read and write."""
    world = World("classic")
    world.run(1)
    world.errors = [Gone("x")]
    world.at(10.0, world.result)

    assert LoopOutcome.JOB_GONE == world.run()


# The Pod


def test_nothing_is_written_for_a_pod_that_no_answer_has_shown() -> None:
    """An attempt that cannot name its Pod would outrank one that can."""
    world = World("classic", wait=100.0)
    world.shown = PodUnknown()
    world.at(10.0, world.result)
    world.at(50.0, lambda: setattr(world, "shown", None))

    assert LoopOutcome.FINAL == world.run()
    assert [("R", True)] == rows(world)
    assert 50.0 <= world.now <= 56.0


def test_a_timeout_is_not_written_while_the_pod_cannot_be_read() -> None:
    """The adapter may have ended, or never started: the API is asked first."""
    world = World(wait=100.0)
    world.at(90.0, world.away)
    world.at(110.0, lambda: world.end(1))
    world.at(120.0, lambda: world.away(False))

    assert LoopOutcome.FINAL == world.run()
    assert [("A", False), ("X", True)] == rows(world)


def test_the_pod_is_asked_again_before_a_timeout() -> None:
    """A watch may be half open: the present state decides."""
    world = World(wait=100.0)
    world.at(50.0, lambda: setattr(world, "half_open", True), lambda: world.end(1))

    assert LoopOutcome.FINAL == world.run()
    assert [100.0] == world.pod_asked
    assert [(0.0, "A", False), (100.0, "X", True)] == world.history


def test_without_a_watch_the_pod_is_read_every_ten_seconds() -> None:
    """Once at the start, for the first look at the file, then six times a minute."""
    world = World(watched=False)

    assert world.run(59.9) is None
    assert 6 <= len(world.pod_asked) <= 8


def test_without_a_watch_the_pod_is_read_when_the_file_changes() -> None:
    """The adapter's state may be old, and the file its last word."""
    world = World("classic", watched=False)
    world.at(5.0, world.garbage, lambda: world.end(1))

    assert LoopOutcome.FINAL == world.run()
    assert (5.0, "I", True) == world.history[-1]


def test_without_a_watch_a_writer_that_never_rests_costs_one_read_a_second() -> None:
    """It would be a hundred otherwise."""
    world = World(watched=False)
    for tick in range(1000):
        world.at(10 + tick / 100, world.garbage)

    assert world.run(20.5) is None
    assert len(world.pod_asked) <= 20


def test_a_pod_that_is_gone_does_not_make_the_loop_spin() -> None:
    """It is revisable until SIGTERM, and nothing can be asked any more."""
    world = World()

    def gone() -> None:
        last = world.loop.last
        assert last is not None
        assert isinstance(last.pod, PodSeen)
        world.shown = PodGone(last.pod.pod)

    world.at(10.0, gone)
    world.at(60.0, world.sigterm)

    assert LoopOutcome.FINAL == world.run()
    assert [("A", False), ("N", False), ("N", True)] == rows(world)
    assert len([at for at in world.passes if 10 < at < 60]) <= 40


class LateDirectory(DirectoryWatch):
    """The directory appears after the file was looked for, with the file in it."""

    world: World | None = None

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(None, -1, [], lambda _: None, clock)

    def drain(self) -> bool:
        return False

    def repair(self) -> bool:
        if self.world is None:
            return False
        world, self.world = self.world, None
        world.result()
        return True


def test_a_directory_that_appears_is_looked_into_at_once() -> None:
    """What came before it was watched has told nobody."""
    events = LateDirectory(lambda: world.now)
    world = World("classic", events=events)
    world.at(10.5, lambda: setattr(events, "world", world))

    assert LoopOutcome.FINAL == world.run()
    assert [(0.0, "A", False), (10.5, "R", True)] == world.history


# Completion indexes


def indexed(form: str = "native", *, failed: int | None = None, completions: int = 3) -> World:
    """A Pod of index 1; `failed` is the index of an earlier one that has reported a failure."""
    world = World(form)
    assert world.job is not None
    world.job["spec"] |= {"completions": completions, "completionMode": "Indexed"}
    world.pod["metadata"]["annotations"] = {"batch.kubernetes.io/job-completion-index": "1"}
    if failed is not None:
        before = Attempt("job-0", "uid-0", EPOCH - 60, EPOCH - 59, index=failed)
        report = Report("R", "False", "QuotaLow", f"index {failed}: no quota")
        world.sink.read()
        world.sink.write(Statement(report, True, before, {}, EPOCH - 30))
        world.requests.clear()
    return world


@pytest.mark.parametrize(
    ("completions", "message"), [(3, "index 1: fine"), (1, "fine")], ids=["several", "one"]
)
def test_a_verdict_names_its_index(completions: int, message: str) -> None:
    world = indexed(completions=completions)
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert message == world.condition["message"]
    assert 1 == json.loads(world.job["metadata"]["annotations"][ANNOTATION])["attempt"]["index"]  # type: ignore[index]


@pytest.mark.parametrize("form", ["native", "classic"])
def test_an_index_that_failed_is_not_hidden_by_a_later_one(form: str) -> None:
    """The loop goes on until its own verdict is known: the classic form exits by it."""
    world = indexed(form, failed=0)
    world.at(5.0, world.result)

    assert LoopOutcome.OTHER_INDEX_FAILED == world.run()
    assert ("False", "index 0: no quota") == (world.condition["status"], world.condition["message"])
    assert Settled(Report("R", "True", "AllGood", "index 1: fine")) == world.loop.verdict
    assert (5.0, []) == (world.now, [method for _, method in world.requests if method != "GET"])
