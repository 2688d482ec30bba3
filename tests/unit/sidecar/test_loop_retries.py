"""When the loop tries again and when it gives up, on a clock of the test's own."""

from typing import Any

import pytest

from reporter.errors import Conflict, Forbidden, InvalidRequest, Unavailable
from reporter.sidecar.publish import LoopOutcome
from reporter.verdict.facts import PodSeen, PodUnknown
from reporter.verdict.pod import Names, read_pod
from tests.unit.sidecar.loop_world import IMAGE, World, rows, running, stamp, waiting

_BUSY = [Unavailable("x", retry_after=30.0)] * 1_000


def cut_off(form: str = "native", *, since: float = 4.0, grace: int = 30, **options: Any) -> World:
    """The API goes away, a result comes, the adapter ends, and SIGTERM with it."""
    world = World(form, **options)
    world.pod["spec"]["terminationGracePeriodSeconds"] = grace
    world.away(since == 0.0)
    world.at(since, world.away)
    world.at(5.0, world.result)
    world.at(6.0, world.end, world.sigterm)
    return world


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


def test_sigterm_does_not_sit_out_an_old_back_off() -> None:
    """There is no time for it."""
    world = World()
    world.errors = [Unavailable("x", retry_after=30.0)]
    world.at(1.0, world.result)
    world.at(2.0, world.sigterm)

    assert LoopOutcome.FINAL == world.run()
    assert [(2.0, "R", True)] == world.history


def test_retry_after_never_reaches_beyond_the_grace_period() -> None:
    """One more try is made while it can still be of use."""
    world = World("classic")
    world.pod["spec"]["terminationGracePeriodSeconds"] = 10
    world.at(1.0, world.result, world.sigterm)
    world.errors = [Unavailable("x", retry_after=30.0)] * 2

    assert LoopOutcome.FINAL == world.run()
    at, row, final = world.history[-1]
    assert ("R", True) == (row, final)
    assert at <= 9.0


@pytest.mark.parametrize("error", [Forbidden("x"), InvalidRequest("x"), Unavailable("x")])
def test_the_classic_form_gives_up_a_minute_after_the_wait_time(error: Exception) -> None:
    """The verdict was known long before; an outage of the wait time's length costs nothing."""
    world = World("classic", wait=100.0)
    world.errors = [error] * 10_000  # type: ignore[list-item]
    world.at(5.0, world.result)

    assert LoopOutcome.GAVE_UP == world.run()
    assert 160.0 <= world.now <= 165.0


def test_the_classic_form_tries_a_late_verdict_for_a_minute() -> None:
    """Decided after the wait time: a minute from then."""
    world = World("classic", wait=100.0, adapter=waiting("PodInitializing"))
    world.at(500.0, world.away, lambda: world.adapter(running(stamp(500))))
    world.at(501.0, world.result)

    assert LoopOutcome.GAVE_UP == world.run()
    assert 561.0 <= world.now <= 566.0


def test_another_verdict_has_a_minute_of_its_own() -> None:
    """It was decided while an earlier one still waited to be written."""
    world = World("classic", wait=20.0, adapter=waiting("PodInitializing"))
    world.at(450.0, lambda: world.adapter(running(stamp(450))))
    world.at(449.0, lambda: world.errors.extend([Unavailable("x")] * 1000))
    world.at(501.0, world.result)

    assert LoopOutcome.GAVE_UP == world.run()
    assert 561.0 <= world.now <= 566.0


def test_the_classic_form_gives_up_on_an_api_it_never_saw() -> None:
    """No Pod, no Job: a Pod must not stay for ever because of its reporter."""
    world = World("classic", wait=100.0)
    world.away()

    assert LoopOutcome.GAVE_UP == world.run()
    assert 160.0 <= world.now <= 165.0


def test_no_back_off_reaches_beyond_the_end_of_the_classic_form() -> None:
    """The server wishes for half a minute: it is asked once more before it is given up."""
    world = World("classic", wait=100.0)
    world.at(5.0, world.result, lambda: world.errors.extend(_BUSY))
    world.at(157.0, world.errors.clear)

    assert LoopOutcome.FINAL == world.run()
    assert 157.0 <= world.now <= 162.0


@pytest.mark.parametrize("form", ["native", "classic"])
def test_a_grace_period_that_is_known_when_it_is_over(form: str) -> None:
    """Both the Pod and the Job can be read again: one more try, and no back-off before it."""
    world = World(form)
    world.shown = PodUnknown()
    world.errors.extend(_BUSY)
    world.at(1.0, world.result)
    world.at(2.0, world.end, world.sigterm)
    world.at(40.0, lambda: setattr(world, "shown", None), world.errors.clear)

    assert LoopOutcome.FINAL == world.run()
    assert (40.0, "R", True) == world.history[-1]


def test_a_grace_period_that_is_known_when_it_is_over_and_a_job_that_is_not() -> None:
    """The one more try fails: that is the end."""
    world = World()
    world.shown = PodUnknown()
    world.errors.extend(_BUSY)
    world.at(1.0, world.result)
    world.at(2.0, world.end, world.sigterm)
    world.at(40.0, lambda: setattr(world, "shown", None))

    assert LoopOutcome.GAVE_UP == world.run()
    assert (40.0, "GET") == world.requests[-1]


def test_a_result_of_a_pod_that_was_never_shown_is_handed_over_and_not_written() -> None:
    """An attempt that cannot say whose it is must not outrank one that can."""
    world = World()
    world.shown = PodUnknown()
    world.at(1.0, world.result)
    world.at(2.0, world.sigterm)

    assert world.run(60) is None
    assert [] == world.history
    assert {"R"} == {report.row for _, report in world.withheld_at}


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
    world.errors = [Forbidden("x")] * 100
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert world.now > 5000.0


@pytest.mark.parametrize("error", [Forbidden("x"), InvalidRequest("x")])
def test_a_verdict_that_is_refused_is_told_at_once(error: Exception) -> None:
    """Whoever else waits for it must not wait for the write, which is tried on."""
    world = World()
    world.at(4.0, lambda: world.errors.extend([error] * 5))  # type: ignore[list-item]
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    at, report = world.withheld_at[0]
    assert world.published_at[-1][1].report == report
    assert 5.0 == at < world.now


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_a_verdict_that_is_refused_again_and_again_is_told_once(method: str) -> None:
    """The Pod is asked by each pass, and before each PATCH; not to tell the same again."""
    world = World()
    world.errors_of[method] = [Forbidden("x")] * 1_000
    world.at(3.0, world.delete)
    world.at(5.0, world.sigterm)

    assert LoopOutcome.GAVE_UP == world.run()
    assert [5.0] == [at for at, _ in world.withheld_at]
    tries = [asked for at, asked in world.requests if at >= 5.0]
    assert len([at for at in world.pod_asked if at >= 5.0]) <= len(tries)


def test_a_verdict_that_is_only_late_is_not_told_before_it_is_written() -> None:
    """It may still become another one."""
    world = World()
    world.errors = [Unavailable("x"), Conflict("x")] * 3
    world.at(5.0, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert [] == world.withheld_at


@pytest.mark.parametrize(("form", "left"), [("native", 25.0), ("classic", 5.0)])
def test_an_outage_that_is_longer_than_the_grace_period(form: str, left: float) -> None:
    """Others hear of the verdict while there is time to do something with it.

    Soon where the adapter is known to be dead; it may write another result until then.
    """
    world = cut_off(form)

    assert LoopOutcome.GAVE_UP == world.run()
    at, report = world.withheld_at[0]
    assert ("True", "AllGood") == (report.status, report.reason)
    assert world.now - left <= at <= world.now - left + 3.0


def test_an_outage_that_began_before_the_pod_was_seen() -> None:
    """Its grace period is unknown: others hear soon, and writing goes on."""
    world = cut_off(since=0.0, grace=300)
    world.at(200.0, lambda: world.away(False))

    assert LoopOutcome.FINAL == world.run()
    at, report = world.withheld_at[0]
    assert ("True", "AllGood") == (report.status, report.reason)
    assert 11.0 <= at <= 12.0
    assert 200.0 <= world.now <= 206.0


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("hangs", [True, False], ids=["hangs", "asks for half a minute"])
def test_others_hear_soon_whatever_requests_do(seen: bool, hangs: bool) -> None:
    """Of a Pod that was never seen, too; two requests may hang one after the other."""
    world = World(watched=False)
    world.shown = None if seen else PodUnknown()

    def trouble() -> None:
        world.hangs = hangs
        world.errors = [Unavailable("x", retry_after=30.0)] * 1_000

    world.at(4.0, trouble)
    world.at(5.0, world.result)
    world.at(6.0, world.end, world.sigterm)
    world.run(100)

    at, _ = world.withheld_at[0]
    assert world.requested_at is not None
    assert 5.0 <= at - world.requested_at <= 5.0 + 2 * 5.0


def test_a_verdict_that_is_written_at_the_last_moment_was_told_long_before() -> None:
    """An API server that comes back accepts connections before it answers: requests hang.

    What is left of the grace period would not be enough to deliver it.
    """
    world = cut_off(grace=60, watched=False)
    world.at(58.0, lambda: setattr(world, "hangs", True))
    world.at(62.0, lambda: setattr(world, "hangs", False), lambda: world.away(False))

    assert LoopOutcome.FINAL == world.run()
    assert world.published_at[-1][0] > 60.0
    assert 11.0 <= world.withheld_at[0][0] <= 12.0


def test_an_outage_without_end_before_the_pod_was_seen() -> None:
    """Whoever has not been killed after ten minutes gives up; it tried twice a second."""
    world = cut_off(since=0.0)

    assert LoopOutcome.GAVE_UP == world.run()
    assert 606.0 == pytest.approx(world.now, abs=0.6)
    assert len(world.requests) < 5_000


def test_an_outage_that_ends_soon_leaves_the_verdict_to_the_write() -> None:
    world = cut_off()
    world.at(9.0, lambda: world.away(False))

    assert LoopOutcome.FINAL == world.run()
    assert [] == world.withheld_at


@pytest.mark.parametrize("file", ["garbage", "nothing"])
def test_only_the_adapters_own_word_is_told_before_the_end(file: str) -> None:
    """What we would say ourselves may change once the Pod is seen again."""
    world = World()
    if file == "garbage":
        world.at(3.0, world.garbage)
    world.at(4.0, world.away)
    world.at(6.0, world.end, world.sigterm)
    world.at(20.0, lambda: world.away(False))
    world.run(100)

    assert [] == [at for at, _ in world.withheld_at if at < 6.0 + 28.0 - 5.0]


def test_a_verdict_that_may_be_wrong_is_not_told() -> None:
    """Time is over, but what the Pod is like now nobody can see."""
    world = World(wait=10.0)
    world.errors = [Forbidden("x")] * 1_000
    world.at(1.0, lambda: setattr(world, "shown", PodSeen(read_pod(world.pod, Names()), False)))

    assert world.run(60) is None
    assert [] == world.withheld_at


def test_a_verdict_that_is_not_final_is_not_told() -> None:
    world = World(adapter=waiting(IMAGE))
    world.errors = [Forbidden("x")] * 1_000

    assert world.run(60) is None
    assert [] == world.withheld_at


def test_an_adapter_that_may_run_again_is_not_given_up() -> None:
    """Under OnFailure an early end would be counted against the Job's back-off limit."""
    world = World("classic", restart_policy="OnFailure", wait=100.0)
    world.errors = [Forbidden("x")] * 10_000
    world.at(5.0, world.result)

    assert world.run(1000) is None


def test_an_answer_that_got_lost_is_no_second_write() -> None:
    """The PATCH was carried out: the next read shows it; the verdict is told and announced once."""
    world = World("classic")
    world.at(1.0, world.lose_answer, world.result)

    assert LoopOutcome.FINAL == world.run()
    assert [("A", False), ("R", True)] == rows(world)
    assert 2 == sum(method == "PATCH" for _, method in world.requests)
    assert ["AllGood"] == [event["reason"] for event in world.events]
