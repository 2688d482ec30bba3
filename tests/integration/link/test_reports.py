"""Error reports: to an aggregator that knows them, and to one of Sonobuoy."""

import json

import pytest

from reporter.link import Outcome, ResultSource
from tests.aggregators.scripted import BEAT
from tests.archives.tars import contents
from tests.integration.link.scripted import Scripted
from tests.scripted_server import Cut, Say

SONOBUOY = Say(404, b"404 page not found\n")


def test_report_to_our_aggregator(connect):
    """Marked as what it is, with a name; asked first who the peer is, even with beats off."""
    with Scripted() as server:
        client = connect(server.config(heartbeat_seconds=0))
        delivery = client.report_error("no result: \u00e4", "no_done_file", evidence={"exit": 3})
        beat, report = server.heard(2)
    assert (Outcome.ACCEPTED, 1) == (delivery.outcome, delivery.attempts)
    assert ("GET", "PUT") == (beat.method, report.method)
    assert {
        "error": "no result: \u00e4",
        "cause": "no_done_file",
        "exit": 3,
    } == json.loads(report.body)
    assert {
        "result-outcome": "error",
        "content-type": "application/json",
        "content-disposition": 'attachment; filename="error.json"',
    }.items() <= report.headers.items()


@pytest.mark.parametrize(
    ("answer", "requests"),
    [
        (BEAT, "GET PUT"),
        (SONOBUOY, "GET"),
        (Say(403), "GET GET PUT"),
        (Say(410), "GET GET PUT"),
        (Say(500), "GET GET PUT"),
        (Say(503), "GET GET PUT"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Say) else None,
)
def test_what_a_heartbeat_told_about_the_peer_is_kept(connect, answer, requests):
    """Trouble tells nothing about it: it is asked again before a report."""
    with Scripted(health=[answer, BEAT]) as server:
        client = connect(server.config())
        assert answer.status == client.heartbeat().status
        delivery = client.report_error("x", "y")
        assert requests.split() == [request.method for request in server.requests]
    assert ("PUT" in requests) == delivery.delivered


def test_w9_no_report_to_an_aggregator_of_sonobuoy(connect):
    """W9: it would book the report as a good result."""
    with Scripted(health=[SONOBUOY]) as server:
        delivery = connect(server.config()).report_error("x", "y")
        assert ["GET"] == [request.method for request in server.requests]
    assert (Outcome.REFUSED, 404) == (delivery.outcome, delivery.status)
    assert not delivery.delivered


def test_w19_unreadable_file_to_an_aggregator_of_sonobuoy(connect):
    """W19: as its own worker reports it, but never typed gzip and without a name."""
    with Scripted(health=[SONOBUOY]) as server:
        delivery = connect(server.config()).report_error("no", "unreadable", unreadable="a.tar.gz")
        (report,) = [request for request in server.requests if request.method == "PUT"]
    assert delivery.delivered
    assert (b'{"error": "no"}', "application/octet-stream") == (
        report.body,
        report.headers["content-type"],
    )
    assert not {"content-disposition", "result-outcome"} & report.headers.keys()


def test_w19_unreadable_file_to_ours(connect):
    """W19: an error report like any other."""
    with Scripted() as server:
        connect(server.config()).report_error("no", "unreadable", unreadable="a.tar.gz")
        report = server.heard(2)[1]
    assert ("error", "application/json") == (
        report.headers["result-outcome"],
        report.headers["content-type"],
    )


def test_partial_output_goes_as_an_archive_with_the_words_in_it(connect, tmp_path):
    """As `error.json`, which a file of that name cannot hide."""
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "error.json").write_text("the plugin's own")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "error.json").write_text("another")
    partial = ResultSource.from_directory(tmp_path)
    with Scripted() as server:
        assert connect(server.config()).report_error("x", "y", partial).delivered
        report = server.heard(2)[1]
    assert {
        "result-outcome": "error",
        "content-type": "application/gzip",
        "content-disposition": 'attachment; filename="results.tar.gz"',
    }.items() <= report.headers.items()
    found = contents(report.body)
    assert {"error": "x", "cause": "y"} == json.loads(found.pop("error.json"))
    assert {
        "output/a.txt": b"a",
        "output/error.json": b"the plugin's own",
        "output/sub/error.json": b"another",
    } == found


def test_archive_of_the_callers_own_is_sent_as_it_is(connect):
    """What is in it is the caller's business."""
    partial = ResultSource.from_bytes(b"not looked at", "p.tar.gz", "application/gzip")
    with Scripted() as server:
        connect(server.config()).report_error("x", "y", partial)
        assert b"not looked at" == server.heard(2)[1].body


def test_digest_of_a_report_is_that_of_what_was_sent(connect, fake_time, tmp_path):
    """A file of the caller's that has changed before it went out."""
    path = tmp_path / "p.tar.gz"
    path.write_bytes(b"at first")
    fake_time.at(0.1, lambda: path.write_bytes(b"in the end"))
    with Scripted(health=[Say(503), BEAT]) as server:
        delivery = connect(server.config()).report_error("x", "y", ResultSource.from_file(path))
        (put,) = server.heard(1, "results")
    assert (b"in the end", put.digest) == (put.body, delivery.digest)


def test_peer_is_asked_again_until_it_answers(connect, fake_time):
    """Who cannot be asked cannot be told either: tried again like a result."""
    with Scripted(health=[Cut(), Say(503), BEAT]) as server:
        delivery = connect(server.config()).report_error("x", "y")
    assert (Outcome.ACCEPTED, 3) == (delivery.outcome, delivery.attempts)
    assert 2 == len(fake_time.waits)


def test_refused_at_the_question(connect):
    """A closed run takes no report."""
    with Scripted(health=[Say(410, b"run is closed\n")]) as server:
        delivery = connect(server.config()).report_error("x", "y")
    assert (Outcome.REFUSED, "410 run is closed") == (delivery.outcome, delivery.text)
