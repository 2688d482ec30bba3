"""A result on its way: answers, retries, windows, ends."""

import errno
import hashlib
import io
import itertools
import json
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from reporter import __version__
from reporter.link import Outcome, ResultSource, SourceError, TimeLimits
from reporter.link.messages import digest_header
from tests.integration.link.scripted import Scripted
from tests.scripted_server import Cut, Say, Silence

DATA = b'{"passed": 3}'
SHA = hashlib.sha256(DATA).hexdigest()
RESULT = ResultSource.from_bytes(DATA, "a.json")
HASTY = TimeLimits(connect=20, handshake=50, silence=2.0)


class SecondPass(io.FileIO):
    """Something happens when the file, once measured, is read to be sent."""

    passes = 0

    def seek(self, *where):
        self.passes += 1
        if self.passes == 2:
            self.second_pass()
        return super().seek(*where)


def test_a_worker_says_which_it_is_and_when_it_worked(connect):
    """The end is when the result is there, not when a try succeeds; its own facts are kept."""
    now = itertools.count()
    told = {"check": "1.4 \u00e4\n", "started_at": "noon", "tries": 3}
    with Scripted(results=[Say(500), Say()]) as server:
        client = connect(server.config(), wall=lambda: next(now), metadata=told)
        client.put_result(RESULT)
        first, second = (request.headers["result-metadata"] for request in server.heard(2))
    assert first == second
    said = json.loads(first)
    begin, end = said.pop("reporter.started_at"), said.pop("reporter.ended_at")
    assert "1970-01-01T00:00:00Z" < begin < end
    assert told | {"tries": "3", "reporter.version": __version__} == said


def test_metadata_that_nobody_would_keep(connect):
    """Known at once, not when hours of work are over."""
    with Scripted() as server, pytest.raises(ValueError, match="longer than 4096"):
        connect(server.config(), metadata={"log": "x" * 4096})


def test_request_as_the_contract_wants_it(connect):
    """W2: one PUT with type, name, length and digest, not chunked; names are quoted once."""
    with Scripted() as server:
        delivery = connect(server.config(node="node 1%")).put_result(RESULT)
        (request,) = server.heard(1)
    assert (Outcome.ACCEPTED, 200, 1, SHA) == (
        delivery.outcome,
        delivery.status,
        delivery.attempts,
        delivery.digest,
    )
    assert ("PUT", "/api/v1/results/by-node/node%201%25/e2e", DATA) == (
        request.method,
        request.target,
        request.body,
    )
    assert {
        "content-type": "application/json",
        "content-disposition": 'attachment; filename="a.json"',
        "content-length": "13",
        "content-digest": digest_header(SHA),
    }.items() <= request.headers.items()
    assert not {"transfer-encoding", "expect", "content-encoding"} & request.headers.keys()


@pytest.mark.parametrize(
    ("acts", "outcome", "attempts"),
    [
        ([Say(500), Say(500), Say(200)], Outcome.ACCEPTED, 3),
        ([Say(409)], Outcome.DUPLICATE, 1),
        ([Say(403)], Outcome.REFUSED, 1),
        ([Say(301, headers={"Location": "/api/v1/results/global/e2e"})], Outcome.REFUSED, 1),
        ([Cut(), Say(409)], Outcome.DUPLICATE, 2),
    ],
    ids=lambda value: None if isinstance(value, int) else str(value)[:40],
)
def test_w5_answers(connect, acts, outcome, attempts):
    """W5: what is success, what is final, what is tried again; a redirect is never followed."""
    with Scripted(results=acts) as server:
        delivery = connect(server.config()).put_result(RESULT)
        assert (outcome, attempts) == (delivery.outcome, delivery.attempts)
        assert attempts == len(server.requests)
    assert all(request.method == "PUT" for request in server.requests)


BUSY = Say(503, headers={"Retry-After": "5", "Result-Busy": "true"})


@pytest.mark.parametrize("first", [[], [Say(500)]], ids=["at once", "in a retry window"])
def test_an_aggregator_that_is_busy_is_no_failure(connect, fake_time, first):
    """Neither 120 s nor 600 s end it: the aggregator is there, and its window waits as well."""
    with Scripted(results=[*first, *[BUSY] * 100, Say()]) as server:
        delivery = connect(server.config()).put_result(RESULT)
    assert (Outcome.ACCEPTED, 101 + len(first)) == (delivery.outcome, delivery.attempts)
    assert fake_time.elapsed > 1_000.0


def test_a_result_that_waited_its_turn_outlives_the_aggregators_restart(
    connect, fake_time, tmp_path
):
    """Half an hour unread on one connection, which breaks; the delivery goes on from there."""
    path = tmp_path / "a.json"
    path.write_bytes(DATA)

    class Waiting(SecondPass):
        def second_pass(self):
            fake_time.now += 1_700.0

    with Scripted(results=[Cut(), Say(503), Say()]) as server:
        source = ResultSource("a.json", lambda: Waiting(path))
        delivery = connect(server.config()).put_result(source)
    assert (Outcome.ACCEPTED, 3) == (delivery.outcome, delivery.attempts)


def test_w5_refusals_end_with_the_window(connect, fake_time, events):
    """W5: from the first answer of 500 on there are 120 s, with tries at most 15 s apart."""
    with Scripted(results=[Say(500, b"error handling result e2e/global: no\n")]) as server:
        delivery = connect(server.config()).put_result(RESULT)
    assert (Outcome.GAVE_UP, 500) == (delivery.outcome, delivery.status)
    assert "500 error handling result e2e/global: no" == delivery.text
    assert pytest.approx(120.0) == fake_time.elapsed
    assert 15.0 >= max(fake_time.waits)
    assert len(fake_time.waits) + 1 == delivery.attempts == len(server.requests)
    assert {"retry"} == {name for name, _ in events}


def test_w6_aggregator_comes_back_after_60_seconds(connect, fake_time):
    """W6: refused connections are tried again until it is there."""
    with Scripted(listening=False) as server:
        fake_time.at(60.0, server.listen)
        delivery = connect(server.config()).put_result(RESULT)
    assert (Outcome.ACCEPTED, 200) == (delivery.outcome, delivery.status)
    assert 60.0 <= fake_time.elapsed <= 75.0


def test_w6_aggregator_never_comes(connect, fake_time):
    """W6: after 600 s it is given up."""
    with Scripted(listening=False) as server:
        delivery = connect(server.config()).put_result(RESULT)
    assert (Outcome.GAVE_UP, 0) == (delivery.outcome, delivery.status)
    assert "cannot connect to 127.0.0.1: Connection refused" == delivery.text
    assert pytest.approx(600.0) == fake_time.elapsed
    assert 15.0 >= max(fake_time.waits)


OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.mark.parametrize(
    ("held", "told"), [(SHA, []), (OTHER, [("another_result_held", {"ours": SHA, "held": OTHER})])]
)
def test_duplicate_of_another_result_is_told(connect, events, held, told):
    """Success it is, but somebody should know; our own may have arrived at the first try."""
    acts = [Silence(), Say(409, headers={"Result-Digest": digest_header(held)})]
    with Scripted(results=acts) as server:
        delivery = connect(server.config(), limits=HASTY).put_result(RESULT)
    assert (Outcome.DUPLICATE, True, 2) == (delivery.outcome, delivery.delivered, delivery.attempts)
    assert held == delivery.held
    assert told == [event for event in events if event[0] == "another_result_held"]


def test_stop_ends_a_wait_and_leaves_the_grace_period(connect, fake_time):
    """A signal: the next try at once, and no more after the grace period less two seconds."""
    fake_time.stop_at = 20.0
    with Scripted(results=[Say(500)]) as server:
        delivery = connect(server.config(grace_seconds=30)).put_result(RESULT)
    assert Outcome.GAVE_UP == delivery.outcome
    assert 46.0 <= fake_time.elapsed <= 48.0
    tried_at = itertools.accumulate(fake_time.waits)
    assert any(moment == pytest.approx(20.0) for moment in tried_at)


def test_after_a_signal_tries_still_wait_for_each_other(connect, fake_time, events):
    """The stop event is set for good; an aggregator must not be hammered for it."""
    fake_time.stop_at = 0.0
    with Scripted(results=[Say(500)]) as server:
        connect(server.config(grace_seconds=30)).put_result(RESULT)
    delays = [facts["delay"] for name, facts in events if name == "retry"]
    assert [0.999, 1.998, 3.996, 7.992] == pytest.approx(delays[:4])
    assert sum(delays) == pytest.approx(fake_time.elapsed)


LATER = Say(503, headers={"Retry-After": "30"})


def test_an_end_that_is_known_late_leaves_time_for_the_last_try(connect, fake_time):
    """A Pod's, which its SIGTERM brings: no wish of the aggregator reaches beyond it."""
    fake_time.stop_at = 20.0
    end = fake_time.start + 40.0
    with Scripted(results=[LATER, LATER, Say()]) as server:
        client = connect(
            server.config(grace_seconds=1), ends=lambda: end if fake_time.is_set() else math.inf
        )
        assert client.put_result(RESULT).delivered
    assert 20.0 == fake_time.waits[0]
    assert 39.0 == fake_time.elapsed


@pytest.mark.parametrize("act", [Silence(), Say(pace=0.2)], ids=["silent", "drips"])
def test_an_end_cuts_a_try_that_is_under_way(connect, act):
    """Neither silence nor an answer byte by byte stretches it."""
    with Scripted(results=[act]) as server:
        end = time.monotonic() + 1.5
        client = connect(server.config(), clock=time.monotonic, ends=lambda: end)
        delivery = client.put_result(RESULT)
    assert (Outcome.GAVE_UP, 0, "timed out") == (delivery.outcome, delivery.status, delivery.text)


def test_close_ends_a_delivery_that_is_under_way(connect):
    """Another thread's, which would go on for minutes."""
    with Scripted(results=[Silence()]) as server:
        client = connect(server.config(), clock=time.monotonic)
        with ThreadPoolExecutor(1) as pool:
            sent = pool.submit(client.put_result, RESULT)
            server.heard(1)
            client.close()
            assert (Outcome.GAVE_UP, 1) == (sent.result().outcome, sent.result().attempts)


@pytest.mark.parametrize(
    "act",
    [
        Silence(),
        Silence(after=1000),
        Say(cut=0),
        Say(cut=9),
    ],
    ids=["silent", "stops reading", "hangs up", "cut"],
)
def test_w22_no_try_hangs(connect, act):
    """W22: silence, and an answer that breaks off; the next try delivers."""
    big = ResultSource.from_bytes(os.urandom(20_000_000), "a.bin")
    with Scripted(results=[act, Say()]) as server:
        delivery = connect(server.config(), limits=HASTY).put_result(big)
    assert (Outcome.ACCEPTED, 2) == (delivery.outcome, delivery.attempts)


@pytest.mark.parametrize("cut", [12, 21, 60])
def test_w22_status_counts_though_the_rest_is_cut(connect, cut):
    """W22: an aggregator says 200 only when the bytes are safe."""
    with Scripted(results=[Say(body=b"x" * 50, cut=cut)]) as server:
        delivery = connect(server.config()).put_result(RESULT)
    assert (Outcome.ACCEPTED, 1) == (delivery.outcome, delivery.attempts)


def test_w22_cut_at_50_places(connect, fake_time):
    """W22: wherever the connection ends, reset or closed, the whole result arrives once."""
    data = os.urandom(200_000)
    source = ResultSource.from_bytes(data, "a.bin")
    cuts = [Cut(n * len(data) // 49, reset=bool(n % 2)) for n in range(50)]
    with Scripted() as server:
        client = connect(server.config())
        for cut in cuts:
            server.script("results", cut, Say())
            delivery = client.put_result(source)
            assert (Outcome.ACCEPTED, 2) == (delivery.outcome, delivery.attempts), cut
        assert [data] * 50 == [request.body for request in server.requests[1::2]]


@pytest.mark.parametrize("status", [403, 409, 410, 413, 503])
@pytest.mark.parametrize("discard", [5.0, 0.0], ids=["discarded", "closed at once"])
def test_early_answer_to_30_megabytes_is_read(connect, status, discard):
    """The aggregator answers before the body is sent: the answer counts, not the reset."""
    big = ResultSource.from_bytes(os.urandom(30_000_000), "a.bin")
    early = Say(status, b"result e2e/global: no\n", early=True, discard=discard)
    with Scripted(results=[early, Say()]) as server:
        delivery = connect(server.config()).put_result(big)
    if status == 503:
        assert (Outcome.ACCEPTED, 2) == (delivery.outcome, delivery.attempts)
    else:
        outcome = Outcome.DUPLICATE if status == 409 else Outcome.REFUSED
        assert (outcome, status, 1) == (delivery.outcome, delivery.status, delivery.attempts)
        assert f"{status} result e2e/global: no" == delivery.text


@pytest.mark.parametrize("tickets", [0, 2])
def test_session_tickets_are_no_early_answer(connect, tickets):
    """With TLS 1.3 a server may speak first, without an answer to anything."""
    big = ResultSource.from_bytes(bytes(3_000_000), "a.bin")
    with Scripted(tickets=tickets) as server:
        delivery = connect(server.config()).put_result(big)
        assert 3_000_000 == server.heard(1)[0].length
    assert (Outcome.ACCEPTED, 1) == (delivery.outcome, delivery.attempts)


def test_file_that_shrinks_while_it_is_sent_is_measured_again(connect, tmp_path):
    """The first try fails and the next one sends what is there now."""
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * 10_000_000)

    class Shrinking(SecondPass):
        def second_pass(self):
            path.write_bytes(b"short")

    with Scripted() as server:
        delivery = connect(server.config()).put_result(
            ResultSource("a.log", lambda: Shrinking(path))
        )
        assert b"short" == server.requests[-1].body
    assert (Outcome.ACCEPTED, 2) == (delivery.outcome, delivery.attempts)


def test_source_that_fails_while_it_is_sent(connect, tmp_path):
    """A disk error is no transport error: trying again is the caller's business."""
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(1_000_000))

    class Failing(SecondPass):
        def second_pass(self):
            raise OSError(errno.EIO, "Input/output error")

    with Scripted() as server, pytest.raises(SourceError, match="Input/output error"):
        connect(server.config()).put_result(ResultSource("a.bin", lambda: Failing(path)))


@pytest.mark.parametrize("start", [0.0, 23.5], ids=["in the end", "at the start"])
def test_certificate_about_to_expire_is_told_once(connect, events, start):
    """Less than an hour: said as soon as it is known, so that something can be done about it."""
    hours = itertools.chain([start], itertools.repeat(23.5))
    with Scripted() as server:
        client = connect(server.config(), wall=lambda: time.time() + next(hours) * 3600)
        assert (start > 0) == len(events)
        client.put_result(RESULT)
    assert ["certificate_expires"] == [name for name, _ in events]
    assert 0 < events[0][1]["seconds"] < 3600
