"""What the aggregator says of itself: its log, its probes, the facts of a scrape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from reporter.aggregator.entry_log import EntryLog
from reporter.aggregator.health import STALLED, Health
from reporter.aggregator.metrics import Metrics
from reporter.common import log
from reporter.common.log import RateLimitedLog
from reporter.run.clock import RunClock
from reporter.run.entry import Entry, Window
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.record import Cause, Rank, Record
from reporter.run.state import Phase, Snapshot
from tests.aggregators.contexts import context

E2E, NODE1, NODE2 = Key("e2e", "global"), Key("sysd", "node1"), Key("sysd", "node2")
PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", nodes=("node1", "node2"))))
RESULT = Record(Rank.RESULT, 5.0, digest="ab", size=3, filename="r", notes=("link a",))
GUESS = Record(Rank.AGGREGATOR, 4.0, cause=Cause.DEADLINE, text="late")


def snapshot(**entries: Entry) -> Snapshot:
    """A run with some entries changed, by the name of their constant."""
    changed = {globals()[name]: entry for name, entry in entries.items()}
    return Snapshot(
        plan=PLAN,
        revision=len(entries),
        phase=Phase.RUNNING,
        started_at=0.0,
        entries={key: changed.get(key, Entry(key)) for key in PLAN.keys},
        progress={},
        beats={},
    )


class TestRateLimitedLog:
    """Once a minute."""

    def test_the_same_thing(self):
        """What was swallowed is told with the next one."""
        said, limited = [], RateLimitedLog()

        def write(event: str, **fields: object) -> None:
            said.append((event, fields))

        for now in (0.0, 1.0, 59.9, 60.0, 61.0, 300.0, 400.0):
            limited.say(now, write, "Trouble", error="x")

        assert [
            ("Trouble", {"error": "x"}),
            ("Trouble", {"error": "x", "repeated": 2}),
            ("Trouble", {"error": "x", "repeated": 1}),
            ("Trouble", {"error": "x"}),
        ] == said

    def test_different_things(self):
        """Each has its own minute."""
        said, limited = [], RateLimitedLog()
        for about in ("a", "b", "a"):
            limited.say(0.0, said.append, about, about=about)

        assert ["a", "b"] == said

    def test_things_by_the_thousand(self):
        """They fill neither the log nor the memory; the oldest are forgotten."""
        said, limited = [], RateLimitedLog()

        def write(event: str, **fields: object) -> None:
            said.append((event, fields))

        for about in range(2_000):
            limited.say(0.0, write, "Trouble", about=about)
        limited.say(0.0, write, "Other trouble")
        assert [*[("Trouble", {})] * 20, ("Other trouble", {})] == said
        limited.say(60.0, write, "Trouble", about=1_999)
        assert ("Trouble", {"repeated": 1}) == said[-1]
        assert 1_024 == len(limited._said)


def watched(first: Snapshot) -> Callable[[Snapshot], None]:
    """An entry log that has seen a run, to be shown others."""
    entry_log = EntryLog(first, lambda _: PLAN.keys, lambda: 0.0)
    return lambda snapshot: [*entry_log.look(snapshot)]


class TestEntryLog:
    """One event per fact."""

    @pytest.mark.parametrize(
        ("entry", "expected"),
        [
            (
                Entry(E2E, RESULT),
                {
                    "level": "info",
                    "message": "Result stored",
                    "key": "e2e/global",
                    "file": "r",
                    "bytes": 3,
                    "sha256": "ab",
                    "notes": 1,
                    "late": False,
                },
            ),
            (
                Entry(E2E, replace(RESULT, verdict="passed", reason="AllGood", message="fine")),
                {
                    "level": "info",
                    "message": "Result stored",
                    "key": "e2e/global",
                    "file": "r",
                    "bytes": 3,
                    "sha256": "ab",
                    "notes": 1,
                    "late": False,
                    "verdict": "passed",
                    "reason": "AllGood",
                    "text": "fine",
                },
            ),
            (
                Entry(E2E, replace(RESULT, verdict="failed", reason="DiskSlow", message="80 ms")),
                {
                    "level": "warning",
                    "message": "Result stored",
                    "key": "e2e/global",
                    "file": "r",
                    "bytes": 3,
                    "sha256": "ab",
                    "notes": 1,
                    "late": False,
                    "verdict": "failed",
                    "reason": "DiskSlow",
                    "text": "80 ms",
                },
            ),
            (
                Entry(E2E, GUESS),
                {
                    "level": "warning",
                    "message": "Result given up",
                    "key": "e2e/global",
                    "cause": "deadline",
                    "text": "late",
                },
            ),
            (
                Entry(E2E, Record(Rank.WORKER, 1.0, cause=Cause.WORKER_ERROR, text="x")),
                {
                    "level": "warning",
                    "message": "Worker reported an error",
                    "key": "e2e/global",
                    "reason": "",
                    "text": "x",
                },
            ),
            (
                Entry(E2E, Record(Rank.LOST, 1.0, cause=Cause.LOST, text="gone")),
                {
                    "level": "error",
                    "message": "Result lost",
                    "key": "e2e/global",
                    "text": "gone",
                },
            ),
            (
                Entry(E2E, window=Window(0.0, 120.0, "bad archive"), attempts=1),
                {
                    "level": "warning",
                    "message": "Upload failed, may be retried",
                    "key": "e2e/global",
                    "attempts": 1,
                    "until": "1970-01-01T00:02:00+00:00",
                    "text": "bad archive",
                },
            ),
        ],
        ids=["result", "passed", "failed check", "guess", "worker error", "lost", "attempt"],
    )
    def test_facts(self, entry, expected):
        """Once, however often it is looked at."""
        with log.capture() as events:
            look = watched(snapshot())
            look(snapshot())
            look(snapshot(E2E=entry))
            look(snapshot(E2E=entry))

        assert [expected] == events

    def test_late_result(self):
        """What replaced our guess is said to be late."""
        with log.capture() as events:
            look = watched(snapshot(E2E=Entry(E2E, GUESS)))
            late = snapshot(E2E=Entry(E2E, RESULT, superseded=GUESS))
            look(replace(late, revision=7))

        assert [("Result stored", True)] == [(e["message"], e["late"]) for e in events]

    def test_a_log_of_thousands_is_written_in_pieces(self):
        """Requests are answered in between; what has not changed is not even looked at."""
        keys = tuple(Key("p", f"n{number}") for number in range(50))
        plan = Plan("r", (Plugin("p", nodes=tuple(key.node for key in keys)),))
        first = replace(snapshot(), plan=plan, entries={key: Entry(key) for key in keys})
        last = replace(first, revision=50, entries={key: Entry(key, GUESS) for key in keys})
        asked = []

        def changes(since: int) -> tuple[Key, ...]:
            asked.append(since)
            return keys if since < 50 else ()

        with log.capture() as events:
            entry_log = EntryLog(first, changes, lambda: 0.0)
            counts = [len(events) for _ in entry_log.look(last)]
            assert [] == list(entry_log.look(last))

        assert [20, 40, 50] == counts
        assert [0, 50] == asked

    def test_a_worker_that_fails_again_and_again(self):
        """A line a minute; how many tries there were is in the next one."""
        with log.capture() as events:
            look = watched(snapshot())
            for attempts in range(1, 500):
                entry = Entry(E2E, window=Window(0.0, 120.0, "bad archive"), attempts=attempts)
                look(replace(snapshot(E2E=entry), revision=attempts))

        assert [1] == [each["attempts"] for each in events]

    def test_what_only_moves_is_no_event(self):
        """A deadline that is set, a window that a restart has made longer."""
        with log.capture() as events:
            look = watched(snapshot(E2E=Entry(E2E, window=Window(0.0, 1.0, "x"), attempts=1)))
            moved = Entry(E2E, window=Window(0.0, 31.0, "x"), attempts=1, deadline=9.0)
            look(replace(snapshot(E2E=moved), revision=7))

        assert [] == events


class TestWhatTheListenersTell:
    """Requests and handshakes."""

    def test_what_somebody_should_look_at(self):
        """Failures and refusals of workers, once a minute for each kind."""
        now = [0.0]
        with log.capture() as events:
            metrics = Metrics(lambda: now[0])
            for code in (200, 403, 403, 409, 500, 507, 500):
                metrics.request("results", code, 0.1, 5)
            refused = ("result e2e/global", "unexpected", "10.0.0.9", "sysd/*")
            metrics.refused(*refused)
            metrics.refused(*refused)
            metrics.tls_failure("certificate", "10.0.0.1", "expired")
            metrics.tls_failure("certificate", "10.0.0.1", "expired")
            metrics.tls_failure("timeout", "10.0.0.2", "")
            now[0] = 60.0
            metrics.refused(*refused)
            metrics.unexpected("accept", ValueError("x"))

        assert [
            ("Request failed", 500),
            ("Request failed", 507),
            ("Request refused", "10.0.0.9"),
            ("TLS handshake failed", "10.0.0.1"),
            ("TLS handshake failed", "10.0.0.2"),
            ("Request refused", "10.0.0.9"),
            ("Unexpected error", "accept"),
        ] == [(e["message"], e.get("code") or e.get("peer") or e.get("where")) for e in events]
        assert ("result e2e/global", "unexpected", "sysd/*") == (
            events[2]["request"],
            events[2]["why"],
            events[2]["certificate"],
        )
        assert 1 == events[5]["repeated"]
        assert "ValueError: x" in events[6]["exception"]
        page = metrics.render("", snapshot(), mono=0.0, expires_at=0.0).body.decode()
        assert 'status_aggregator_requests_total{code="403",route="results"} 2.0' in page
        assert 'status_aggregator_tls_failures_total{reason="certificate"} 2.0' in page

    def test_a_worker_that_invents_names_of_plugins(self):
        """Refused for one reason, with one certificate: one line, and how many there were."""
        now = [0.0]
        with log.capture() as events:
            metrics = Metrics(lambda: now[0])
            for number in range(5_000):
                what, peer = f"result p{number}/global", f"10.0.{number % 250}.1"
                metrics.refused(what, "unexpected", peer, "sysd/*")
            metrics.refused("result e2e/global", "not permitted", "10.0.0.9", "sysd/*")
            now[0] = 60.0
            metrics.refused("result p/global", "unexpected", "10.0.0.9", "sysd/*")

        shown = [(each["request"], each.get("repeated")) for each in events]
        assert [
            ("result p0/global", None),
            ("result e2e/global", None),
            ("result p/global", 4_999),
        ] == shown


class TestHealth:
    """Probes and the facts of a scrape."""

    @pytest.fixture
    def world(self) -> SimpleNamespace:
        """Everything in order; each test breaks one thing."""
        return SimpleNamespace(
            mono=100.0,
            wall=1_000.0,
            writable=True,
            snapshot=snapshot(E2E=Entry(E2E, RESULT)),
            free=lambda: 11,
            expires_at=2_000.0,
            listening=True,
            connections=3,
        )

    def health(self, world: SimpleNamespace) -> Health:
        """The health of that world."""
        store = SimpleNamespace(snapshot=lambda: world.snapshot, writable=world.writable)
        clock = RunClock(lambda: world.mono, lambda: world.wall)
        settings = {"disk_reserve_bytes": 10}
        shared = context(PLAN, Path(), store=store, now=clock, settings=settings)
        shared.layout.free = world.free
        authority = SimpleNamespace(
            expired=lambda now: now >= world.expires_at, expires_at=world.expires_at
        )
        return Health(shared, authority, world, SimpleNamespace(active=2))

    def scraped(self, world: SimpleNamespace) -> set[str]:
        """The lines of a scrape, without their prefix."""
        page = self.health(world).scrape("").body.decode()
        return {line.removeprefix("status_aggregator_") for line in page.splitlines()}

    def problems(self, world: SimpleNamespace) -> dict[str, str]:
        """What is not in order."""
        return {name: why for name, why in self.health(world).checks().items() if why}

    def test_in_order(self, world):
        """All four are named."""
        assert {} == self.problems(world)
        assert ["worker-listener", "store", "disk", "certificates"] == list(
            self.health(world).checks()
        )

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            ({"listening": False}, {"worker-listener": "workers cannot connect"}),
            ({"writable": False}, {"store": "not writable"}),
            ({"free": lambda: 10}, {"disk": "below the reserve"}),
            ({"expires_at": 1_000.0}, {"certificates": "expired"}),
        ],
    )
    def test_problems(self, world, change, problem):
        """Each by its own name."""
        vars(world).update(change)

        assert problem == self.problems(world)

    def test_disk_that_cannot_be_asked(self, world):
        """No exception reaches the probe, and the scrape has no such fact."""

        def broken() -> int:
            raise OSError(5, "Input/output error")

        world.free = broken

        assert {"disk": "unreadable"} == self.problems(world)
        assert not any(line.startswith("disk_free_bytes") for line in self.scraped(world))

    def test_listener_closed_on_purpose(self, world):
        """After the run nobody needs to connect, nor to trust us."""
        world.listening, world.wall = False, world.expires_at
        health = self.health(world)
        health.done_listening = True

        assert {None} == set(health.checks().values())

    def test_alive(self, world):
        """While the loop has ticked lately."""
        health = self.health(world)
        world.mono += STALLED - 1
        assert health.alive
        world.mono += 1
        assert not health.alive
        health.ticked = world.mono
        assert health.alive

    def test_scrape(self, world):
        """What no row of the run knows."""
        world.writable = False

        assert {
            'certificate_expiry_timestamp_seconds{certificate="run"} 2000.0',
            "connections 3.0",
            "uploads 2.0",
            "store_writable 0.0",
            "disk_free_bytes 11.0",
        } <= self.scraped(world)
