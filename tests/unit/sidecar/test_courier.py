"""The courier between the sidecar and an aggregator, with a scripted client and clock."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reporter.link import Delivery, NoAnswer, Outcome, Reply, TrustError
from reporter.link import Progress as Update
from reporter.sidecar.aggregator import UPDATE_PAUSE, Courier, ReporterVerdict, Result
from reporter.verdict.payloads import Progress

BOUND = 20.0


class Client:
    """Writes down what it is asked and answers from a list; the last answer repeats."""

    def __init__(self, *answers, delivery=None) -> None:
        self.answers = list(answers) or [200]
        self.delivery = delivery or Delivery(Outcome.ACCEPTED, 200, 1, "d1")
        self.updates: list[Update] = []
        self.sent: list[tuple] = []
        self.formats: list[str] = []
        self.began, self.asked = threading.Semaphore(0), threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def post_progress(self, update: Update) -> Reply:
        self.began.release()
        assert self.gate.wait(BOUND)
        self.updates.append(update)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.asked.release()
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer)

    def put_result(self, source, *, result_format) -> Delivery:
        self.formats.append(result_format)
        with source.open() as content:
            content.measure()
            self.sent.append((source.name, b"".join(content.pieces()), content.content_type))
        return self._deliver()

    def report_error(self, text, cause, *, evidence, result_format) -> Delivery:
        self.formats.append(result_format)
        self.sent.append((text, cause, evidence))
        return self._deliver()

    def _deliver(self) -> Delivery:
        if isinstance(self.delivery, Exception):
            raise self.delivery
        return self.delivery


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def carrying(client: Client, clock: Clock | None = None) -> Iterator[tuple[Courier, list]]:
    """A courier at work, and what it has said."""
    said: list = []
    courier = Courier(
        client,
        on_event=lambda event, fields: said.append((event, fields)),
        clock=clock or Clock(),
        rng=lambda: 0.0,
    )
    courier.start()
    try:
        yield courier, said
    finally:
        client.gate.set()
        courier.close()
        courier._thread.join(BOUND)


class TestProgress:
    """Newest wins, and not too often."""

    def test_goes_out_as_an_update_that_replaces(self):
        """What the adapter left out is zero."""
        client = Client()
        with carrying(client) as (courier, _):
            courier.progress(Progress(msg="m", completed=3, failures=("f",)))
            assert client.asked.acquire(timeout=BOUND)

        assert [Update(msg="m", completed=3, failures=("f",))] == client.updates

    def test_newest_replaces_what_waits(self):
        """While one is on its way the others become one."""
        client, clock = Client(), Clock()
        client.gate.clear()
        with carrying(client, clock) as (courier, _):
            for number in range(10):
                courier.progress(Progress(completed=number))
            clock.now += UPDATE_PAUSE
            client.gate.set()
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)

        assert 9 == client.updates[-1].completed
        assert len(client.updates) <= 2

    def test_one_that_failed_is_sent_again_unless_a_newer_one_comes(self):
        """The end of the work is not lost to a moment without network."""
        client, clock = Client(NoAnswer("gone"), 200), Clock()
        with carrying(client, clock) as (courier, said):
            courier.progress(Progress(completed=7))
            assert client.asked.acquire(timeout=BOUND)
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)

        assert [7, 7] == [update.completed for update in client.updates]
        assert [0, 200] == [f["status"] for event, f in said if event == "progress"]

    def test_one_that_hung_is_not_sent_again_before_the_parcel(self):
        """The parcel has half a minute; another hang would cost it a third of that."""
        client, clock = Client(NoAnswer("timed out")), Clock()
        client.gate.clear()
        with carrying(client, clock) as (courier, said):
            courier.progress(Progress(completed=7))
            assert client.began.acquire(timeout=BOUND)
            courier.conclude(Result("r.json", b"{}"))
            clock.now += 10.0
            client.gate.set()
            assert courier.done.wait(BOUND)

        assert ["progress", "delivered", "progress"] == [event for event, _ in said]
        assert 1 == len(client.sent)

    def test_the_newest_that_was_not_taken_follows_a_delivery(self):
        """An aggregator that was away and is back shows how far the work has come."""
        client = Client(NoAnswer("away"), NoAnswer("away"), 200)
        with carrying(client) as (courier, said):
            courier.progress(Progress(completed=7))
            assert client.asked.acquire(timeout=BOUND)
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)

        assert [("progress", 0), ("progress", 0), ("delivered", None), ("progress", 200)] == [
            (event, fields.get("status")) for event, fields in said
        ]

    def test_one_that_hangs_after_the_delivery_holds_nobody_up(self):
        """The parcel is delivered: nobody has to wait, or to say that it is not."""

        class Away(Client):
            def _deliver(self) -> Delivery:
                self.gate.clear()
                return super()._deliver()

        client = Away(NoAnswer("away"))
        with carrying(client) as (courier, said):
            courier.progress(Progress(completed=7))
            assert client.asked.acquire(timeout=BOUND)
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)
            assert ["progress", "progress", "delivered"] == [event for event, _ in said]

        assert 3 == len(client.updates)

    def test_unexpected_error_does_not_cost_the_parcel(self):
        """The thread that carries both goes on."""
        client = Client(RuntimeError("bug"), 200)
        with carrying(client) as (courier, _):
            courier.progress(Progress(completed=7))
            assert client.asked.acquire(timeout=BOUND)
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)

        assert 1 == len(client.sent)

    @pytest.mark.parametrize("status", [403, 404, 410])
    def test_nothing_more_once_the_answer_is_final(self, status):
        """A closed run or a foreign plan will not change its mind."""
        client, clock = Client(status), Clock()
        with carrying(client, clock) as (courier, _):
            courier.progress(Progress(completed=1))
            assert client.asked.acquire(timeout=BOUND)
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)
            courier.progress(Progress(completed=2))

        assert 1 == len(client.updates)


class TestParcel:
    """One delivery, whose end is told."""

    def test_result_goes_out_as_the_file_it_is(self):
        """Name, bytes and type."""
        client = Client()
        with carrying(client) as (courier, said):
            assert not courier.busy
            courier.conclude(Result("adapter-result.json", b'{"status":"success"}'))
            assert courier.done.wait(BOUND)
            assert not courier.busy

        expected = ("adapter-result.json", b'{"status":"success"}', "application/json")
        assert [expected] == client.sent
        assert ["status-reporter.io/adapter-result.v1"] == client.formats
        assert ["delivered"] == [event for event, _ in said]

    def test_sleeper_is_woken_after_the_end_is_to_be_seen(self):
        """Who looks when woken finds the courier at rest: else it would sleep out its time."""
        seen = []
        courier = Courier(
            Client(),
            on_event=lambda event, fields: seen.append(courier.busy),
            wake=lambda: seen.append(courier.busy),
            clock=Clock(),
        )
        courier.conclude(Result("r.json", b"{}"))
        courier.start()
        courier._thread.join(BOUND)

        assert [True, False] == seen

    @pytest.mark.parametrize(("unknown", "status"), [(False, "failure"), (True, "unknown")])
    def test_failure_goes_out_with_its_evidence(self, unknown, status):
        """Under one key, beside message and reason; and whether it is a failure at all."""
        client = Client()
        with carrying(client) as (courier, _):
            courier.conclude(
                ReporterVerdict("killed", "AdapterOOMKilled", {"file": "absent"}, unknown)
            )
            assert courier.done.wait(BOUND)

        facts = {"evidence": {"file": "absent"}, "status": status}
        assert [("killed", "AdapterOOMKilled", facts)] == client.sent
        assert ["status-reporter.io/adapter-result.v1"] == client.formats

    def test_first_parcel_counts(self):
        """A verdict that is final stays."""
        client = Client()
        with carrying(client) as (courier, _):
            courier.conclude(ReporterVerdict("one", "One", {}))
            courier.conclude(ReporterVerdict("two", "Two", {}))
            assert courier.done.wait(BOUND)

        assert [("one", "One", {"status": "failure"})] == client.sent

    @pytest.mark.parametrize(
        ("delivery", "text"),
        [
            (Delivery(Outcome.REFUSED, 403, 1, "", "403 no"), "403 no"),
            (Delivery(Outcome.GAVE_UP, 0, 9, "", "no answer"), "no answer"),
            (TrustError("another CA"), "another CA"),
            (OSError("no memory file"), "no memory file"),
        ],
    )
    def test_failed_delivery_is_told(self, delivery, text):
        """Whatever went wrong, the courier ends and says why."""
        client = Client(delivery=delivery)
        with carrying(client) as (courier, said):
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)

        assert [("lost", text)] == [(event, fields["text"]) for event, fields in said]

    def test_unexpected_error_is_a_failed_delivery_too(self):
        """The Pod must not wait half a minute for a thread that has died."""
        client = Client(delivery=RuntimeError("bug"))
        with carrying(client) as (courier, said):
            courier.conclude(Result("r.json", b"{}"))
            assert courier.done.wait(BOUND)

        assert [("lost", "RuntimeError: bug")] == [(e, f["text"]) for e, f in said]
