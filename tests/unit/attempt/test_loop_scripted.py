"""When the loop looks, writes, tries again and ends: timing rules on a clock of the test's own."""

import json
from collections.abc import Iterator

import pytest

from reporter.attempt.loop import BURST
from reporter.attempt.publish import Outcome
from reporter.core.facts import PodGone, PodNeverSeen, PodRefused, PodSeen, PodUnknown
from reporter.core.pod import Names, read_pod
from reporter.errors import (
    Conflict,
    Forbidden,
    Gone,
    InvalidRequest,
    KubeError,
    NotFound,
    Unavailable,
)
from reporter.sinks.statement import Statement
from tests.fakekube import make_job
from tests.unit.attempt.loop_world import NAME, Object, World, running, stamp, terminated, waiting

IMAGE = "ErrImagePull"


def rows(world: World) -> list[tuple[str, bool]]:
    return [(row, final) for _, row, final in world.history]


# Clocks


@pytest.mark.parametrize(("form", "expected"), [("native", 30.0), ("classic", 0.0)])
def test_a_clock_stepped_before_the_first_look_leaves_the_adapter_its_time(form, expected) -> None:
    """A sidecar that was never restarted is older than its adapter; in the classic form not."""
    world = World(form, adapter=running(stamp(-3600)), wait=30.0)

    assert Outcome.FINAL == world.run(100)
    assert expected == next(at for at, row, final in world.history if (row, final) == ("T", True))


@pytest.mark.parametrize("form", ["native", "classic"])
def test_a_result_older_than_its_run_counts_on_the_pods_own_volume(form) -> None:
    """The clock was stepped by two seconds between the write and the stamp of the start."""
    world = World(form, adapter=running(stamp(2)))
    world.at(0.5, world.result, lambda: world.adapter(terminated(0, started_at=stamp(2))))

    assert Outcome.FINAL == world.run(20)
    assert ("R", True) == rows(world)[-1]


# A result that becomes the verdict when the adapter has ended


def test_at_exit_a_result_is_told_and_final_with_the_end() -> None:
    """Row A says that it was received; the exit code decides."""
    world = World(at_exit=True)
    world.at(5.0, world.result).at(40.0, world.end)

    assert Outcome.FINAL == world.run(100)
    assert [(0.0, "A", False), (30.0, "A", False), (40.0, "R", True)] == world.history
    told = world.published_at[1][1].report.message
    assert "Adapter container is running; result received: AllGood" == told


@pytest.mark.parametrize("form", ["native", "classic"])
def test_at_exit_a_success_that_ends_badly_never_stands_on_the_job(form) -> None:
    """Not even for a moment."""
    world = World(form, at_exit=True)
    world.at(5.0, world.result).at(40.0, lambda: world.end(1))

    assert Outcome.FINAL == world.run(100)
    assert [("A", False), ("A", False), ("X", True)] == rows(world)


def test_at_exit_a_received_result_is_silent_where_row_a_is() -> None:
    """REPORT_RUNNING=false."""
    world = World(at_exit=True, report_running=False)
    world.at(5.0, world.result).at(40.0, world.end)

    assert Outcome.FINAL == world.run(100)
    assert [(40.0, "R", True)] == world.history


def test_at_exit_an_end_that_the_watch_missed_is_asked_for_when_the_wait_is_over() -> None:
    """A result that counts because no end was seen rests on there being none."""
    world = World(at_exit=True, wait=60.0)
    world.at(5.0, world.result)
    world.at(50.0, lambda: setattr(world, "half_open", True), lambda: world.end(1))

    assert Outcome.FINAL == world.run(200)
    assert ("X", True) == rows(world)[-1]
    assert [60.0] == world.pod_asked


# What lies there instead of a result


def test_a_good_end_without_a_result_names_what_lies_there_instead() -> None:
    """In the message, after the fixed wording, and in the evidence."""
    world = World()
    world.beside = ("result.json",)
    world.at(5.0, world.end)

    assert Outcome.FINAL == world.run(20)
    hint = " (looked for /results/adapter-result.json; found result.json)"
    assert world.condition["message"].endswith("valid result file: Completed" + hint)
    file = world.published_at[-1][1].evidence["file"]
    assert ("absent", ["result.json"]) == (file["state"], file["beside"])


@pytest.mark.parametrize(("code", "reason"), [(1, "AdapterExitedWithError"), (0, "AllGood")])
def test_other_ends_name_nothing(code, reason) -> None:
    """An exit code that is not 0 explains itself."""
    world = World()
    world.beside = ("result.json",)
    world.at(5.0, *([] if code else [world.result]), lambda: world.end(code))

    assert Outcome.FINAL == world.run(20)
    assert reason == world.condition["reason"]
    assert "looked for" not in world.condition["message"]


# Row A


def test_a_running_adapter_is_reported_at_once() -> None:
    """One read, one write, and nothing more until something changes."""
    world = World()

    assert world.run(200) is None
    assert [(0.0, "A", False)] == world.history
    assert [(0.0, "GET"), (0.0, "PATCH")] == world.requests


def test_an_adapter_that_starts_soon_is_reported_once() -> None:
    """A container usually starts within two seconds after ours: one write instead of two."""
    world = World(adapter=waiting("PodInitializing"))
    world.at(1.0, lambda: world.adapter(running(stamp(1))))

    assert world.run(20) is None
    assert [(1.0, "A", False)] == world.history
    assert "Adapter container is running" == world.condition["message"]


def test_an_adapter_that_does_not_start_is_reported_after_two_seconds() -> None:
    """So that the Job says that somebody is there."""
    world = World(adapter=waiting("PodInitializing"))

    assert world.run(20) is None
    assert [(2.0, "A", False)] == world.history


def test_the_state_in_row_a_follows_after_half_a_minute() -> None:
    """A text alone is worth a write every 30 s, not more."""
    world = World(adapter=waiting("PodInitializing"))
    world.at(3.0, lambda: world.adapter(running(stamp(3))))

    assert world.run(100) is None
    assert [(2.0, "A", False), (32.0, "A", False)] == world.history


def test_progress_is_written_every_30_seconds_at_most() -> None:
    """However often it changes."""
    world = World(poll_interval=1000.0, wait=10_000.0)
    for second in range(1, 100):
        world.at(float(second), lambda n=second: world.progress(completed=n, total=100))

    assert world.run(100) is None
    assert [0.0, 30.0, 60.0, 90.0] == [at for at, _, _ in world.history]
    assert world.condition["message"].endswith("; 90 of 100 completed")


def test_row_a_is_not_written_where_it_is_not_wanted() -> None:
    """REPORT_RUNNING=false: one read, no write."""
    world = World(report_running=False)

    assert world.run(100) is None
    assert [] == world.history
    assert [(0.0, "GET")] == world.requests


def test_a_report_of_trouble_is_taken_back_even_then() -> None:
    """What was said has become wrong."""
    world = World(adapter=waiting("InvalidImageName"), report_running=False)
    world.at(50.0, lambda: world.adapter(running(stamp(50))))

    assert world.run(60) is None
    assert [(0.0, "W1", False), (50.0, "A", False)] == world.history


# Waiting


def test_a_failing_image_is_reported_after_a_minute_in_a_row() -> None:
    """The kubelet alternates between the error and its back-off: that is one row."""
    world = World(adapter=waiting(IMAGE, "not found"))
    for second in range(10, 60, 10):
        reason = IMAGE if second % 20 == 0 else "ImagePullBackOff"
        world.at(float(second), lambda reason=reason: world.adapter(waiting(reason, "x")))

    assert world.run(100) is None
    assert (60.0, "W1", False) == world.history[-1]
    assert ["A", "A", "W1"] == [row for row, _ in rows(world)]


def test_the_minute_begins_anew_in_another_row() -> None:
    """The image came, the configuration is wrong."""
    world = World(adapter=waiting(IMAGE), wait=1000.0)
    world.at(40.0, lambda: world.adapter(waiting("CreateContainerConfigError", "no ConfigMap")))

    assert world.run(200) is None
    assert (100.0, "W2", False) == world.history[-1]
    assert {"A", "W2"} == {row for row, _ in rows(world)}


def test_the_wait_time_counts_from_the_adapters_start() -> None:
    """An image pull of minutes does not eat it."""
    world = World(adapter=waiting("PodInitializing"), wait=100.0)
    world.at(90.0, lambda: world.adapter(running(stamp(90))))

    assert Outcome.FINAL == world.run()
    assert (190.0, "T", True) == world.history[-1]


def test_a_timeout_before_the_first_start_is_revisable() -> None:
    """The adapter has not had its time yet."""
    world = World(adapter=waiting("PodInitializing"), wait=100.0)
    world.at(150.0, lambda: world.adapter(running(stamp(150))))
    world.at(160.0, world.result)

    assert Outcome.FINAL == world.run()
    expected = [(2.0, "A", False), (100.0, "T", False), (150.0, "A", False), (160.0, "R", True)]
    assert expected == world.history


def test_a_file_that_is_invalid_when_the_wait_time_ends() -> None:
    """The cause rather than the timeout."""
    world = World(wait=100.0)
    world.at(50.0, world.garbage)

    assert Outcome.FINAL == world.run()
    assert (100.0, "I", True) == world.history[-1]


def test_a_result_in_the_last_moment_wins() -> None:
    """The Pod and the file are looked at once more before a timeout is written."""
    world = World(wait=100.0)
    world.at(99.999, world.result)

    assert Outcome.FINAL == world.run()
    assert (99.999, "R", True) == world.history[-1]


# Trying again


def test_a_conflict_is_tried_again_at_once() -> None:
    """Nobody is overloaded: somebody else was quicker."""
    world = World()
    world.errors = [Conflict("x")] * 3

    assert world.run(100) is None
    ((at, _, _),) = world.history
    assert at < 0.5


def test_an_outage_is_met_with_a_back_off_of_at_most_five_seconds() -> None:
    """Tries get rare, and the end of the outage is seen soon."""
    world = World(wait=10_000.0)
    world.away()
    world.at(600.0, lambda: world.away(False))

    assert world.run(700) is None
    ((at, _, _),) = world.history
    assert 600.0 <= at <= 605.0
    tries = [at for at, method in world.requests if method == "GET" and at < 600]
    assert 120 <= len(tries) <= 130


def test_retry_after_is_a_floor_with_a_cap() -> None:
    """A server's wish counts up to half a minute: a verdict is waiting."""
    world = World()
    world.errors = [Unavailable("x", retry_after=7.0), Unavailable("x", retry_after=3600.0)]

    assert world.run(100) is None
    assert [0.0, 7.0, 37.0, 37.0] == [at for at, _ in world.requests]


def test_sigterm_does_not_sit_out_an_old_back_off() -> None:
    """There is no time for it."""
    world = World()
    world.errors = [Unavailable("x", retry_after=30.0)]
    world.at(1.0, world.result)
    world.at(2.0, world.sigterm)

    assert Outcome.FINAL == world.run()
    assert [(2.0, "R", True)] == world.history


def test_retry_after_never_reaches_beyond_the_grace_period() -> None:
    """One more try is made while it can still be of use."""
    world = World("classic")
    world.pod["spec"]["terminationGracePeriodSeconds"] = 10
    world.at(1.0, world.result, world.sigterm)
    world.errors = [Unavailable("x", retry_after=30.0)] * 2

    assert Outcome.FINAL == world.run()
    at, row, final = world.history[-1]
    assert ("R", True) == (row, final)
    assert at <= 9.0


@pytest.mark.parametrize("error", [Forbidden("x"), InvalidRequest("x"), Unavailable("x")])
def test_the_classic_form_gives_up_a_minute_after_the_wait_time(error: Exception) -> None:
    """The verdict was known long before; an outage of the wait time's length costs nothing."""
    world = World("classic", wait=100.0)
    world.errors = [error] * 10_000  # type: ignore[list-item]
    world.at(5.0, world.result)

    assert Outcome.GAVE_UP == world.run()
    assert 160.0 <= world.now <= 165.0


def test_the_classic_form_tries_a_late_verdict_for_a_minute() -> None:
    """Decided after the wait time: a minute from then."""
    world = World("classic", wait=100.0, adapter=waiting("PodInitializing"))
    world.at(500.0, world.away, lambda: world.adapter(running(stamp(500))))
    world.at(501.0, world.result)

    assert Outcome.GAVE_UP == world.run()
    assert 561.0 <= world.now <= 566.0


def test_another_verdict_has_a_minute_of_its_own() -> None:
    """It was decided while an earlier one still waited to be written."""
    world = World("classic", wait=20.0, adapter=waiting("PodInitializing"))
    world.at(450.0, lambda: world.adapter(running(stamp(450))))
    world.at(449.0, lambda: world.errors.extend([Unavailable("x")] * 1000))
    world.at(501.0, world.result)

    assert Outcome.GAVE_UP == world.run()
    assert 561.0 <= world.now <= 566.0


def test_the_classic_form_gives_up_on_an_api_it_never_saw() -> None:
    """No Pod, no Job: a Pod must not stay for ever because of its reporter."""
    world = World("classic", wait=100.0)
    world.away()

    assert Outcome.GAVE_UP == world.run()
    assert 160.0 <= world.now <= 165.0


def test_one_failure_long_after_the_wait_time_is_no_reason_to_give_up() -> None:
    """The minute counts from when there was something new to write."""
    world = World("classic", adapter=waiting(IMAGE, "first"), wait=100.0)
    world.at(500.0, lambda: world.adapter(waiting(IMAGE, "second")))
    world.at(499.0, lambda: world.errors.append(Unavailable("x")))

    assert world.run(600) is None
    assert "second" in world.condition["message"]


def test_the_native_form_never_gives_up() -> None:
    """Ending would only bring a restart."""
    world = World(wait=100.0)
    world.errors = [Forbidden("x")] * 1_000
    world.at(5.0, world.result)

    assert Outcome.FINAL == world.run()
    assert world.now > 1000.0


def test_an_adapter_that_may_run_again_is_not_given_up() -> None:
    """Under OnFailure an early end would be counted against the Job's back-off limit."""
    world = World("classic", restart_policy="OnFailure", wait=100.0)
    world.errors = [Forbidden("x")] * 10_000
    world.at(5.0, world.result)

    assert world.run(1000) is None


def test_an_answer_that_got_lost_is_no_second_write() -> None:
    """The PATCH was carried out: the next read shows it, and the verdict is told once."""
    world = World("classic")
    carried_out = world.patch_job_status

    def lost(*arguments: object, **options: object) -> object:
        carried_out(*arguments, **options)  # type: ignore[arg-type]
        world.patch_job_status = carried_out  # type: ignore[method-assign]
        raise Unavailable("reset")

    def lose() -> None:
        world.patch_job_status = lost  # type: ignore[method-assign,assignment]

    world.at(1.0, lose, world.result)

    assert Outcome.FINAL == world.run()
    assert [("A", False), ("R", True)] == rows(world)
    assert 2 == sum(method == "PATCH" for _, method in world.requests)


# The Job


def test_a_job_that_is_not_there_yet_is_looked_for_again() -> None:
    """An API server may be behind."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    job, world.job = world.job, None
    world.at(3.0, lambda: setattr(world, "job", job))
    world.at(4.0, world.result)

    assert Outcome.FINAL == world.run()


def test_a_job_that_never_shows_up() -> None:
    """After five seconds the name is wrong."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    world.job = None

    assert Outcome.JOB_NEVER_SEEN == world.run()
    assert 5.0 <= world.now <= 10.0


def test_a_job_whose_pod_says_it_was_there() -> None:
    """The label names it: it has gone, and quietly."""
    world = World("classic")
    world.job = None

    assert Outcome.JOB_GONE == world.run()


def test_a_job_that_was_deleted_after_it_was_seen() -> None:
    """The Pod need not say so."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    world.at(10.0, lambda: setattr(world, "job", None), world.result)

    assert Outcome.JOB_GONE == world.run()


def test_another_job_of_that_name_is_not_touched() -> None:
    """Deleted and created again: the UID is another one."""
    world = World("classic")
    world.pod["metadata"]["labels"] = {}
    successor = make_job(uid="another")
    successor["metadata"]["resourceVersion"] = "1"
    world.at(10.0, lambda: setattr(world, "job", successor), world.result)

    assert Outcome.JOB_GONE == world.run()
    assert {} == world.condition


def test_a_uid_that_is_refused_in_the_write() -> None:
    """Replaced between read and write."""
    world = World("classic")
    world.run(1)
    world.errors = [Gone("x")]
    world.at(10.0, world.result)

    assert Outcome.JOB_GONE == world.run()


# The Pod


@pytest.mark.parametrize("shown", [PodRefused(), PodNeverSeen()])
def test_without_a_pod_the_file_is_revisable_until_the_wait_time_ends(shown: object) -> None:
    """Nobody knows whether the adapter writes another one."""
    world = World("classic", wait=100.0)
    world.shown = shown  # type: ignore[assignment]
    world.at(10.0, world.result)

    assert Outcome.FINAL == world.run()
    assert [(10.0, "R", False), (100.0, "R", True)] == world.history[-2:]


def test_nothing_is_written_for_a_pod_that_no_answer_has_shown() -> None:
    """An attempt that cannot name its Pod would outrank one that can."""
    world = World("classic", wait=100.0)
    world.shown = PodUnknown()
    world.at(10.0, world.result)
    world.at(50.0, lambda: setattr(world, "shown", None))

    assert Outcome.FINAL == world.run()
    assert [("R", True)] == rows(world)
    assert 50.0 <= world.now <= 56.0


def test_a_timeout_is_not_written_while_the_pod_cannot_be_read() -> None:
    """The adapter may have ended, or never started: the API is asked first."""
    world = World(wait=100.0)
    world.at(90.0, world.away)
    world.at(110.0, lambda: world.end(1))
    world.at(120.0, lambda: world.away(False))

    assert Outcome.FINAL == world.run()
    assert [("A", False), ("X", True)] == rows(world)


def test_the_pod_is_asked_again_before_a_timeout() -> None:
    """A watch may be half open: the present state decides."""
    world = World(wait=100.0)
    world.at(50.0, lambda: setattr(world, "half_open", True), lambda: world.end(1))

    assert Outcome.FINAL == world.run()
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

    assert Outcome.FINAL == world.run()
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

    assert Outcome.FINAL == world.run()
    assert [("A", False), ("N", False), ("N", True)] == rows(world)
    assert len([at for at in world.passes if 10 < at < 60]) <= 40


class LateDirectory:
    """The directory appears after the file was looked for, with the file in it."""

    def __init__(self) -> None:
        self.world: World | None = None

    def fileno(self) -> int:
        return -1

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
    events = LateDirectory()
    world = World("classic", events=events)
    world.at(10.5, lambda: setattr(events, "world", world))

    assert Outcome.FINAL == world.run()
    assert [(0.0, "A", False), (10.5, "R", True)] == world.history


# SIGTERM


def test_a_natural_end_shows_after_sigterm() -> None:
    """Fifteen milliseconds later; nothing is written in between."""
    world = World()
    world.at(10.0, world.sigterm)
    world.at(10.015, lambda: world.end(1))

    assert Outcome.FINAL == world.run()
    assert [(0.0, "A", False), (10.015, "X", True)] == world.history


def test_a_natural_end_is_polled_for() -> None:
    """Every 50 ms, where no watch tells."""
    world = World(watched=False)
    world.at(10.0, world.sigterm)
    world.at(10.4, lambda: world.end(1))

    assert Outcome.FINAL == world.run()
    at, row, final = world.history[-1]
    assert ("X", True) == (row, final)
    assert 10.4 <= at <= 10.46


def test_sigterm_alone_is_revisable_after_two_seconds() -> None:
    """Two seconds of answers that show no reason: the reporter alone was stopped."""
    world = World()
    world.at(10.0, world.sigterm)

    assert Outcome.STOPPED == world.run()
    assert (12.0, "N", False) == world.history[-1]
    assert world.now <= 12.1


def test_sigterm_while_the_api_is_away() -> None:
    """Nothing is guessed before its return; a late kubelet gets ten seconds more."""
    world = World()
    world.at(10.0, world.away, world.sigterm)
    world.at(15.0, lambda: world.away(False))
    world.at(23.0, lambda: world.end(1))

    assert Outcome.FINAL == world.run()
    assert (23.0, "X", True) == world.history[-1]


def test_sigterm_while_the_api_stays_away() -> None:
    """Until two seconds before the grace period ends."""
    world = World()
    world.at(10.0, world.away, world.sigterm)

    assert Outcome.GAVE_UP == world.run()
    assert 38.0 == world.now


@pytest.mark.parametrize(("grace", "until"), [(30, 38.0), (5, 13.0), (3, 11.5), (1, 11.5)])
def test_the_time_to_write_after_sigterm(grace: int, until: float) -> None:
    """max(1.5 s, to two seconds before the end), for a result that cannot be written."""
    world = World("classic")
    world.pod["spec"]["terminationGracePeriodSeconds"] = grace
    world.at(10.0, world.away, world.sigterm, world.result)

    assert Outcome.GAVE_UP == world.run()
    assert until == pytest.approx(world.now, abs=0.01)


def test_requests_that_hang_do_not_cost_more_than_there_is() -> None:
    """Each gets what is left, not five seconds."""
    world = World("classic")
    world.pod["spec"]["terminationGracePeriodSeconds"] = 5
    world.at(10.0, lambda: setattr(world, "answer_takes", 100.0), world.sigterm, world.result)

    assert Outcome.GAVE_UP == world.run()
    assert world.now <= 13.0 + 0.4


def test_a_deletion_in_the_native_form() -> None:
    """Written when it is seen, settled with SIGTERM: then the adapter is dead."""
    world = World()
    world.at(10.0, lambda: world.delete(30))
    world.at(40.0, world.sigterm)

    assert Outcome.FINAL == world.run()
    assert [(0.0, "A", False), (10.0, "N", False), (40.0, "N", True)] == world.history


def test_a_deletion_in_the_classic_form_hears_the_adapter_out() -> None:
    """Both were stopped at once: it is settled shortly before the grace period ends."""
    world = World("classic")
    world.at(10.0, lambda: world.delete(30), world.sigterm)

    assert Outcome.FINAL == world.run()
    expected = [(0.0, "A", False), (10.0, "N", False), (37.0, "N", True)]
    assert expected == world.history


def test_a_job_that_may_be_ending_for_its_restarts_is_not_written_to() -> None:
    """A conflict with what the Job controller writes after the deletion would cost its end."""
    world = World("classic", restart_policy="OnFailure")
    failed = terminated(7, started_at=stamp(3), finished_at=stamp(5))

    def says_why() -> None:
        assert world.job is not None
        why = {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}
        world.job["status"].setdefault("conditions", []).append(why)
        world.job["metadata"]["resourceVersion"] = "77"

    world.at(5.0, lambda: world.adapter(running(stamp(5)), failed, restarts=3))
    world.at(10.0, lambda: world.delete(30), world.sigterm)
    world.at(10.2, lambda: world.adapter(terminated(7, finished_at=stamp(10)), failed, 3))
    world.at(11.0, says_why)

    assert Outcome.FINAL == world.run()
    assert [(0.0, "A", False), (11.5, "X", True)] == world.history


def test_a_deletion_that_only_the_look_before_a_write_shows_holds_it_back_too() -> None:
    """The watch is half open, and the wait time ends."""
    world = World(restart_policy="OnFailure", wait=50.0)
    world.at(49.0, lambda: setattr(world, "half_open", True), lambda: world.delete(30))

    world.run(60)

    assert [(0.0, "A", False), (51.5, "N", False)] == world.history


@pytest.mark.parametrize("shown", ["present", "stale", "gone"])
def test_a_deadline_while_the_image_is_missing(shown: str) -> None:
    """The cause becomes the last word, also where the Pod cannot be read any more."""
    world = World(adapter=waiting("ErrImagePull", "not found"))
    world.job["spec"]["activeDeadlineSeconds"] = 30

    def hide() -> None:
        pod = read_pod(world.pod, Names())
        looks = {"present": None, "stale": PodSeen(pod, current=False), "gone": PodGone(pod)}
        world.shown = looks[shown]

    world.at(30.0, lambda: world.delete(30))
    world.at(31.0, hide, world.sigterm)

    assert Outcome.FINAL == world.run()
    assert [(2.0, "A", False), (30.0, "W1", False), (31.0, "W1", True)] == world.history
    assert (
        "container 'adapter': ErrImagePull: not found; the Job's activeDeadlineSeconds (30s) passed"
    ) == world.condition["message"]


def test_a_result_while_stopping_is_heard() -> None:
    """In the classic form up to the last second."""
    world = World("classic")
    world.at(10.0, lambda: world.delete(30), world.sigterm)
    world.at(36.9, lambda: world.result(False, "Stopped"))

    assert Outcome.FINAL == world.run()
    assert (36.9, "R", True) == world.history[-1]


def test_a_deletion_seen_late_leaves_what_is_left() -> None:
    """SIGTERM in the native form comes when the adapter is dead, maybe at the very end."""
    world = World()
    world.at(10.0, lambda: world.delete(10))
    world.at(20.0, world.sigterm, world.away)
    world.at(21.0, lambda: world.away(False))

    assert Outcome.FINAL == world.run()
    at, row, final = world.history[-1]
    assert ("N", True) == (row, final)
    assert at <= 21.5


def test_the_jobs_deadline_needs_no_word_of_the_job() -> None:
    """Its Pods are deleted before its own condition says why."""
    world = World()
    assert world.job is not None
    world.job["spec"]["activeDeadlineSeconds"] = 10
    world.at(10.0, lambda: world.delete(30))
    world.at(11.0, world.sigterm)

    assert Outcome.FINAL == world.run()
    assert [(10.0, "D", False), (11.0, "D", True)] == world.history[-2:]


def test_the_job_is_read_again_before_a_deletion_is_settled() -> None:
    """It was suspended meanwhile, and says so."""
    world = World()

    def suspend() -> None:
        assert world.job is not None
        world.job["spec"]["suspend"] = True
        world.job["metadata"]["resourceVersion"] = "77"

    world.at(10.0, lambda: world.delete(30))
    world.at(11.0, suspend)
    world.at(12.0, world.sigterm)

    assert Outcome.FINAL == world.run()
    assert world.condition["message"].startswith("Job was suspended")


# Afterwards


def test_idle_ends_with_sigterm() -> None:
    """After a last short look for what contradicts the verdict."""
    world = World()
    world.at(5.0, world.result)
    assert Outcome.FINAL == world.run()
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert 100.0 <= world.now <= 100.5


def test_idle_notes_a_contradiction_once() -> None:
    """An annotation-only write, however often the end is seen."""
    world = World()
    world.at(5.0, world.result)
    assert Outcome.FINAL == world.run()
    before = len(world.requests)
    world.at(50.0, lambda: world.end(1, "Error"))
    world.at(100.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert [(50.0, "GET"), (50.0, "PATCH")] == world.requests[before:]
    assert (
        '"after":{"exitCode":1'
        in world.job["metadata"]["annotations"][  # type: ignore[index]
            "status-reporter.io/Available"
        ]
    )


def ends_badly(world: World) -> None:
    """A success is on the Job; then the adapter fails, and SIGTERM comes with its end."""
    world.at(5.0, world.result)
    assert Outcome.FINAL == world.run()
    world.at(50.0, lambda: world.end(1, "Error"), world.sigterm)


def after(world: World) -> Object:
    """What was added to the annotation."""
    assert world.job is not None
    note = json.loads(world.job["metadata"]["annotations"]["status-reporter.io/Available"])
    found: Object = note.get("after", {})
    return found


def supersede(world: World) -> None:
    """A newer attempt has written what stands."""
    assert world.job is not None
    annotations = world.job["metadata"]["annotations"]
    note = annotations["status-reporter.io/Available"]
    newer = note.replace(NAME, "another").replace(stamp(-1), stamp(300))
    annotations["status-reporter.io/Available"] = newer


@pytest.mark.parametrize("error", [Conflict("409"), Unavailable("503")], ids=str)
@pytest.mark.parametrize("request_of", ["GET", "PATCH"])
def test_a_contradiction_survives_a_failed_request(error: KubeError, request_of: str) -> None:
    """Somebody wrote in between, or the API stumbled: read again and try again."""
    world = World()
    ends_badly(world)
    world.fail_next(request_of, error)
    world.loop.idle(lambda _: False)

    assert 1 == after(world)["exitCode"]
    assert [error] == [failure for _, failure in world.failures]
    assert world.now < 51.0


def test_a_contradiction_is_tried_until_the_write_budget_ends() -> None:
    """An API that takes no patch does not hold the Pod longer than that."""
    world = World()
    ends_badly(world)
    world.errors_of["PATCH"] = [Unavailable("503")] * 1000
    world.loop.idle(lambda _: False)

    assert {} == after(world)
    assert 77.9 <= world.now <= 78.5


@pytest.mark.parametrize(
    "error", [NotFound("404"), Gone("422"), Forbidden("403"), InvalidRequest("422")]
)
def test_a_contradiction_that_cannot_be_added_is_let_go(error: KubeError) -> None:
    """The verdict stands; nothing is tried twice and nobody waits."""
    world = World()
    ends_badly(world)
    world.fail_next("PATCH", error)
    world.loop.idle(lambda _: False)

    assert {} == after(world)
    assert world.now < 50.5
    assert [(50.0, "GET"), (50.0, "PATCH")] == world.requests[-2:]


def test_a_contradiction_is_added_after_a_restart_of_the_reporter() -> None:
    """The verdict that stands was given by an earlier process of the same attempt."""
    world = World()
    world.at(5.0, world.result)
    assert Outcome.FINAL == world.run()
    before = json.loads(json.dumps(world.condition))
    world.restart()
    assert Outcome.FINAL == world.run()
    world.at(50.0, lambda: world.end(1, "Error"), world.sigterm)
    world.loop.idle(lambda _: False)

    assert 1 == after(world)["exitCode"]
    assert before == world.condition


def test_nothing_is_added_to_the_verdict_of_a_newer_attempt() -> None:
    """Its own adapter is what contradicts it."""
    world = World()
    ends_badly(world)
    world.at(49.0, lambda: supersede(world))
    world.loop.idle(lambda _: False)

    assert {} == after(world)
    assert (50.0, "PATCH") not in world.requests


def test_idle_sleeps() -> None:
    """The poll interval is all that wakes it."""
    world = World(poll_interval=10.0)
    world.at(5.0, world.result)
    assert Outcome.FINAL == world.run()
    before = len(world.passes)
    world.at(1005.0, world.sigterm)
    world.loop.idle(lambda _: False)

    assert len(world.passes) - before <= 105


def test_a_quiet_job_of_ten_minutes_makes_few_passes_and_five_requests() -> None:
    """The poll interval is the safety net; requests come with changes only."""
    world = World("classic", wait=10_000.0)
    world.at(600.0, world.result)

    assert Outcome.FINAL == world.run()
    assert 5 == len(world.requests)
    assert len(world.passes) <= 320


def test_a_crash_loop_is_reported_with_what_it_last_said() -> None:
    """Under OnFailure: the row, not each of its texts."""
    world = World("classic", restart_policy="OnFailure", wait=1000.0)
    last = terminated(7, started_at=stamp(0), finished_at=stamp(5))
    for restarts, at in ((2, 20.0), (3, 25.0), (4, 30.0)):
        world.at(
            at,
            lambda restarts=restarts: world.adapter(
                waiting("CrashLoopBackOff"), last=last, restarts=restarts
            ),
        )

    assert world.run(100) is None
    assert [(0.0, "A", False), (20.0, "C", False), (50.0, "C", False)] == world.history


def test_a_result_that_is_written_again_and_again_is_no_storm() -> None:
    """While the adapter may run again each change is revisable: one write a second at most."""
    world = World("classic", restart_policy="OnFailure")
    for step in range(100):
        world.at(5 + step / 50, lambda step=step: world.result(reason=f"Step{step}"))

    assert world.run(20) is None
    assert [5.0, 6.0, 7.0] == [round(at, 1) for at, row, _ in world.history if row == "R"]
    assert "Step99" == world.condition["reason"]


# Files beside ours


class Noise:
    """File events: each draining takes one of the answers, which says whether it was ours."""

    def __init__(self, answers: Iterator[bool]) -> None:
        self._answers = answers

    def fileno(self) -> int:
        return 99

    def drain(self) -> bool:
        return next(self._answers)

    def repair(self) -> bool:
        return False


def test_a_temporary_file_beside_the_result_does_not_hold_it_up() -> None:
    """It is written and renamed: the last of a few events is ours, and no time has passed."""

    def drains() -> Iterator[bool]:
        yield from (False, False, False)
        world.noisy = False
        world.result()
        yield True

    world = World("classic", events=Noise(drains()))
    world.at(9.0, lambda: setattr(world, "noisy", True))

    assert Outcome.FINAL == world.run()
    assert (9.0, "R", True) == world.history[-1]


def test_a_busy_neighbour_does_not_keep_the_loop_busy() -> None:
    """Its events are taken twenty times a second at most, and bring no pass by themselves."""
    drained: list[float] = []

    def drains() -> Iterator[bool]:
        while True:
            drained.append(world.now)
            yield False

    world = World("classic", events=Noise(drains()))
    world.at(1.0, lambda: setattr(world, "noisy", True))
    world.run(21.0)

    assert 10 <= len(world.passes) <= 20
    assert 10 * BURST <= len(drained) <= 20 * (BURST + 40)


# Events


def announced(world: World) -> list[tuple[str, str]]:
    """Type and reason of the Events."""
    return [(event["type"], event["reason"]) for event in world.events]


def test_a_final_verdict_is_announced_after_its_patch() -> None:
    """Once; what may still change is not announced."""
    world = World("classic")
    world.at(5.0, world.result)

    assert Outcome.FINAL == world.run()
    assert [("Normal", "AllGood")] == announced(world)
    assert ["GET", "PATCH", "GET", "PATCH", "POST"] == [method for _, method in world.requests]


def test_a_verdict_that_may_still_change_is_not_announced() -> None:
    """Under OnFailure a result is written at once and announced when the adapter has ended."""
    world = World("classic", restart_policy="OnFailure")
    world.at(5.0, lambda: world.result(success=False, reason="DiskFull"))
    world.at(50.0, lambda: world.end(0))

    assert world.run(40.0) is None
    assert [] == announced(world)
    assert Outcome.FINAL == world.run()
    assert [("Warning", "DiskFull")] == announced(world)


def test_a_verdict_whose_answer_was_lost_is_announced() -> None:
    """Our patch was accepted, and the next read shows it."""
    world = World("classic")
    patch = world.patch_job_status

    def lose_the_answer(*names: str, body: Object, timeout: float = 5.0) -> Object:
        patch(*names, body, timeout=timeout)
        world.patch_job_status = patch  # type: ignore[method-assign]
        raise Unavailable("reset")

    def lose_the_next() -> None:
        world.patch_job_status = (  # type: ignore[method-assign]
            lambda namespace, name, body, timeout=5.0: lose_the_answer(
                namespace, name, body=body, timeout=timeout
            )
        )

    world.at(5.0, lose_the_next, world.result)

    assert Outcome.FINAL == world.run()
    assert [("Normal", "AllGood")] == announced(world)


def test_a_restarted_reporter_does_not_announce_what_stands() -> None:
    """Whose patch was accepted has announced it, or had no time to."""
    world = World()
    world.at(5.0, world.result)
    assert Outcome.FINAL == world.run()
    world.events.clear()
    world.restart()

    assert Outcome.FINAL == world.run()
    assert [] == announced(world)


def test_a_newer_attempts_verdict_is_not_announced() -> None:
    """An older attempt writes nothing more, no Event either."""
    world = World("classic")
    world.at(5.0, lambda: supersede(world), world.result)

    assert Outcome.SUPERSEDED == world.run()
    assert [] == announced(world)


@pytest.mark.parametrize("error", [Conflict("409"), Forbidden("403"), Unavailable("503")])
def test_an_event_that_is_refused_is_not_tried_again(error: KubeError) -> None:
    """The verdict stands; one that is there already (409) is as good."""
    world = World("classic")
    world.at(5.0, lambda: world.fail_next("POST", error), world.result)

    assert Outcome.FINAL == world.run()
    assert 1 == [method for _, method in world.requests].count("POST")
    told = [] if isinstance(error, Conflict) else [error]
    assert told == [failure for _, failure in world.failures]


def test_an_event_that_hangs_costs_a_second_at_most() -> None:
    """Nobody waits longer for what is not the verdict."""
    world = World("classic")

    def hang() -> None:
        world.answer_takes = 100.0

    told = world.published

    def published(statement: Statement, seconds: float) -> None:
        told(statement, seconds)
        if statement.final:
            hang()

    world.published = published  # type: ignore[method-assign]
    world.at(5.0, world.result)

    assert Outcome.FINAL == world.run()
    assert [1.0] == world.event_patience
    assert 6.0 == world.now


@pytest.mark.parametrize(
    ("grace", "end_shown_after", "requests_take", "expected"),
    [(30, 0.0, 0.0, [1.0]), (2, 0.0, 0.0, [1.0]), (2, 0.0, 0.3, [0.9]), (2, 0.4, 0.35, [])],
    ids=["28 s left", "1.5 s left", "0.9 s left", "0.4 s left"],
)
def test_after_sigterm_the_write_budget_bounds_the_event(
    grace: int, end_shown_after: float, requests_take: float, expected: list[float]
) -> None:
    """A failed adapter and SIGTERM; a read and a patch take their part of the time."""
    world = World()
    world.pod["spec"]["terminationGracePeriodSeconds"] = grace
    world.at(5.0, lambda: setattr(world, "answer_takes", requests_take))
    world.at(10.0, world.sigterm)
    world.at(10.0 + end_shown_after, lambda: world.end(1, "Error"))

    assert Outcome.FINAL == world.run()
    assert expected == [round(patience, 3) for patience in world.event_patience]
