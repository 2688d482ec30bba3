"""The end of a run is known, but its entries do not come."""

import argparse
import io
import itertools

import pytest

from reporter.run.view import Look, ReadOutcome
from reporter.runctl import origin
from reporter.runctl import wait as command
from reporter.runctl.follow import Deadline
from reporter.runctl.server import ANSWER, Address, ByHttp, StatusServer
from reporter.runctl.wait import Goal, RunBar, wait
from tests.blackbox.ctl.scripted import Scripted, entry, run_status
from tests.scripted_server import Say


def test_entries_that_never_come_after_a_summary_that_said_the_end():
    """Too large, or the way is too slow: how the run ended is known all the same."""
    run = run_status("complete", entry("e2e"))
    summary = {name: value for name, value in run.items() if name != "plugins"} | {
        "final": True,
        "counts": {"entries": 1, "decided": 1, "received": 1, "failed": 0, "unknown": 0},
    }
    with Scripted(status=Say(503)) as server:
        server.answer("/status?summary=true", Say(body=summary))
        chosen = ByHttp(StatusServer(Address(server.url)))
        code, look = wait(
            chosen, Goal(), Deadline(None, sleep=lambda _: None), RunBar(io.StringIO())
        )
        chosen.server.close()

    assert (0, summary) == (code, look.document)


def test_what_a_pod_waits_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Once, long before it is a failure; the first look is at the summary alone."""
    pod = {"phase": "Pending", "reason": "ErrImagePull", "message": "not found"}
    now = itertools.count()
    waiting = run_status("running", entry("e2e", pod=pod))
    summary = {name: value for name, value in waiting.items() if name != "plugins"} | {
        "counts": {"entries": 1, "decided": 0, "received": 0, "failed": 0, "unknown": 0},
    }
    looks = iter([summary, *[waiting] * 9, run_status("complete", entry("e2e"), final=True)])

    class Run:
        name, pause = "run", 1.0

        def look(self, timeout=ANSWER, *, entries=True):
            return Look(ReadOutcome.OK, next(looks))

    bar = RunBar(io.StringIO())
    code, _ = wait(Run(), Goal(), Deadline(None, lambda: next(now), lambda _: None), bar)

    assert 0 == code
    assert "status-ctl: e2e/global: Pending: ErrImagePull: not found\n" == capsys.readouterr().err


@pytest.mark.parametrize(("reachable", "breaks", "after"), [(1, 0, 61), (1, 1, 92), (0, 0, None)])
def test_a_pod_that_is_cut_off_from_the_aggregator(reachable, breaks, after) -> None:
    """For a minute without a break; who has not asked for that waits until the end."""
    pod = {"phase": "Running", "reason": "AggregatorUnreachable", "message": "cannot resolve r"}
    cut_off, fine = (run_status("running", entry("e2e", **more)) for more in ({"pod": pod}, {}))
    end = run_status("complete", entry("e2e"), final=True)
    now, looks = 0.0, iter([*[cut_off] * 30, *[fine] * breaks, *[cut_off] * 100, end])

    class Run:
        name, pause = "run", 1.0

        def look(self, timeout=ANSWER, *, entries=True):
            nonlocal now
            now += 1
            return Look(ReadOutcome.OK, next(looks))

    deadline = Deadline(None, lambda: now, lambda _: None)
    code, look = wait(Run(), Goal(reachable=bool(reachable)), deadline, RunBar(io.StringIO()))

    assert ((1, cut_off, after) if after else (0, end, now)) == (code, look.document, now)


@pytest.mark.parametrize(("timeout", "given"), [(0.0, ANSWER), (1.0, 1.0), (None, ANSWER)])
def test_how_long_an_answer_may_take(timeout, given):
    """What is left of the time; without any time one look is taken all the same, in peace."""
    asked = []

    class Slow:
        name, pause = "slow", 1.0

        def look(self, timeout=ANSWER, *, entries=True):
            asked.append(timeout)
            return Look(ReadOutcome.OK, run_status("complete", entry("e2e"), final=True))

    code, _ = wait(Slow(), Goal(), Deadline(timeout, lambda: 5.0), RunBar(io.StringIO()))

    assert (0, [given]) == (code, asked[:1])


def test_the_entries_of_a_run_for_which_nobody_wants_to_wait() -> None:
    """The first look is at the summary, and there is no time for a second one; they are shown."""
    whole = run_status("running", entry("e2e"))
    counted = {"entries": 1, "decided": 0, "received": 0, "failed": 0, "unknown": 0}

    class Run:
        pause = 1.0

        def look(self, timeout=ANSWER, *, entries=True):
            shown = whole | {"counts": counted}
            if not entries:
                del shown["plugins"]
            return Look(ReadOutcome.OK, shown)

    code, look = wait(Run(), Goal(), Deadline(0.0), RunBar(io.StringIO()))

    assert (3, whole["plugins"]) == (code, look.document["plugins"])


@pytest.mark.parametrize(("name", "given"), [("first", ANSWER), ("run/first", 1.0)])
def test_finding_a_run_takes_no_time_from_the_look_at_it(
    monkeypatch: pytest.MonkeyPatch, name: str, given: float
) -> None:
    """Neither do credentials. One that is over is known to be, however short the timeout."""
    now, asked = 0.0, list[float]()

    class Slow:
        pause = 1.0

        def exists(self, timeout):
            nonlocal now
            now += 2
            return True

        def look(self, timeout=ANSWER, *, entries=True):
            asked.append(timeout)
            return Look(ReadOutcome.OK, run_status("complete", entry("e2e"), final=True))

    def by_cluster(*_):
        nonlocal now
        now += 3
        return Slow()

    monkeypatch.setattr(origin, "by_cluster", by_cluster)
    monkeypatch.setattr(command, "Deadline", lambda timeout: Deadline(timeout, lambda: now))
    parser = argparse.ArgumentParser()
    command.arguments(parser)

    assert 0 == command.run(parser.parse_args([name, "--timeout", "1s"]))
    assert [given] == asked
