"""The courier between the sidecar and an aggregator, with a scripted client and clock."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from reporter.link import Delivery, NoAnswer, Outcome, Reply, TrustError
from reporter.link import Progress as Update
from reporter.sidecar.courier import UPDATE_PAUSE, Courier
from reporter.verdict.facts import Progress

BOUND = 20.0
DELIVERED = (True, "")


class Client:
    """Writes down what it is asked and answers from a list; the last answer repeats."""

    def __init__(self, *answers, delivery=None) -> None:
        self.answers = list(answers) or [200]
        self.delivery = delivery or Delivery(Outcome.ACCEPTED, 200, 1, "d1")
        self.updates: list[Update] = []
        self.sent = 0
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

    def deliver(self) -> Delivery:
        self.sent += 1
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
        on_update=said.append,
        on_delivery=lambda delivery, text: said.append((delivery is not None, text)),
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


def finish(courier: Courier, client: Client) -> None:
    """Hand the delivery over and wait for its end."""
    courier.conclude(client.deliver)
    assert courier.done.wait(BOUND)


def carried(client: Client, update: Progress) -> list:
    """Carry an update, which is asked for before the delivery is handed over."""
    with carrying(client) as (courier, said):
        courier.progress(update)
        assert client.asked.acquire(timeout=BOUND)
        finish(courier, client)
    return said


class TestProgress:
    """Newest wins, and not too often."""

    def test_goes_out_as_an_update_that_replaces(self):
        """What the adapter left out is zero."""
        client = Client()

        assert [200, DELIVERED] == carried(client, Progress(msg="m", completed=3, failures=("f",)))
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
            finish(courier, client)

        assert 9 == client.updates[-1].completed
        assert len(client.updates) <= 2

    def test_one_that_failed_is_sent_again_unless_a_newer_one_comes(self):
        """The end of the work is not lost to a moment without network."""
        client = Client(NoAnswer("gone"), 200)

        assert [0, 200, DELIVERED] == carried(client, Progress(completed=7))
        assert [7, 7] == [update.completed for update in client.updates]

    def test_one_that_hung_is_not_sent_again_before_the_delivery(self):
        """The delivery has half a minute; another hang would cost it a third of that."""
        client, clock = Client(NoAnswer("timed out")), Clock()
        client.gate.clear()
        with carrying(client, clock) as (courier, said):
            courier.progress(Progress(completed=7))
            assert client.began.acquire(timeout=BOUND)
            courier.conclude(client.deliver)
            clock.now += 10.0
            client.gate.set()
            assert courier.done.wait(BOUND)

        assert [0, DELIVERED, 0] == said
        assert 1 == client.sent

    def test_the_newest_that_was_not_taken_follows_a_delivery(self):
        """An aggregator that was away and is back shows how far the work has come."""
        client = Client(NoAnswer("away"), NoAnswer("away"), 200)

        assert [0, 0, DELIVERED, 200] == carried(client, Progress(completed=7))

    def test_one_that_hangs_after_the_delivery_holds_nobody_up(self):
        """It is delivered: nobody has to wait, or to say that it is not."""

        class Away(Client):
            def deliver(self) -> Delivery:
                self.gate.clear()
                return super().deliver()

        client = Away(NoAnswer("away"))
        with carrying(client) as (courier, said):
            courier.progress(Progress(completed=7))
            assert client.asked.acquire(timeout=BOUND)
            finish(courier, client)
            assert [0, 0, DELIVERED] == said

        assert 3 == len(client.updates)

    def test_unexpected_error_does_not_cost_the_delivery(self):
        """The thread that carries both goes on."""
        client = Client(RuntimeError("bug"), 200)

        assert DELIVERED in carried(client, Progress(completed=7))

    @pytest.mark.parametrize("status", [403, 404, 410])
    def test_nothing_more_once_the_answer_is_final(self, status):
        """A closed run or a foreign plan will not change its mind."""
        client, clock = Client(status), Clock()
        with carrying(client, clock) as (courier, _):
            courier.progress(Progress(completed=1))
            assert client.asked.acquire(timeout=BOUND)
            finish(courier, client)
            courier.progress(Progress(completed=2))

        assert 1 == len(client.updates)


class TestDelivery:
    """One, whose end is told."""

    def test_is_told_and_is_the_end(self):
        """Busy until then."""
        client = Client()
        with carrying(client) as (courier, said):
            assert not courier.busy
            finish(courier, client)
            assert not courier.busy

        assert [DELIVERED] == said

    def test_sleeper_is_woken_after_the_end_is_to_be_seen(self):
        """Who looks when woken finds the courier at rest: else it would sleep out its time."""
        seen, client = [], Client()
        courier = Courier(
            client,
            on_update=lambda _: None,
            on_delivery=lambda *_: seen.append(courier.busy),
            wake=lambda: seen.append(courier.busy),
            clock=Clock(),
        )
        courier.conclude(client.deliver)
        courier.start()
        courier._thread.join(BOUND)

        assert [True, False] == seen

    def test_first_counts(self):
        """A verdict that is final stays."""
        client, other = Client(), Client()
        with carrying(client) as (courier, _):
            courier.conclude(client.deliver)
            courier.conclude(other.deliver)
            assert courier.done.wait(BOUND)

        assert (1, 0) == (client.sent, other.sent)

    @pytest.mark.parametrize(
        ("delivery", "told"),
        [
            (Delivery(Outcome.REFUSED, 403, 1, "", "403 no"), (True, "403 no")),
            (Delivery(Outcome.GAVE_UP, 0, 9, "", "no answer"), (True, "no answer")),
            (TrustError("another CA"), (False, "another CA")),
            (OSError("no memory file"), (False, "no memory file")),
            # The Pod must not wait half a minute for a thread that has died.
            (RuntimeError("bug"), (False, "RuntimeError: bug")),
        ],
    )
    def test_that_failed_is_told(self, delivery, told):
        """Whatever went wrong, the courier ends and says why."""
        client = Client(delivery=delivery)
        with carrying(client) as (courier, said):
            finish(courier, client)

        assert [told] == said
