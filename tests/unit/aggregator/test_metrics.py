"""The aggregator's metrics: what a scrape shows, and how many series it can ever have."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from reporter import __version__
from reporter.aggregator import metrics
from reporter.common import log
from reporter.common.metrics import Page
from reporter.run.entry import Entry, State
from reporter.run.heartbeats import Beat
from reporter.run.plan import Plan, Plugin
from reporter.run.record import Rank, Record
from reporter.run.state import Phase, Snapshot, Tar
from tests.promtool import promtool

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
PLAN = Plan("run-1", (Plugin("e2e"), Plugin("sysd", nodes=("node1", "node2", "node3"))))
E2E, NODE1, NODE2, NODE3 = PLAN.keys
RESULT = Record(Rank.RESULT, 5.0, digest="ab", size=3)
FULL = Snapshot(
    plan=PLAN,
    revision=42,
    phase=Phase.RUNNING,
    started_at=0.0,
    entries={
        E2E: Entry(E2E, replace(RESULT, verdict="passed")),
        NODE1: Entry(NODE1, replace(RESULT, verdict="failed")),
        NODE2: Entry(NODE2),
        NODE3: Entry(NODE3),
    },
    progress={},
    beats={E2E: Beat(1.0), NODE2: Beat(82.5), NODE3: Beat(90.0)},
)
OVER = replace(FULL, phase=Phase.CLOSED, tar=Tar("t", "", "ab", 1))
FACTS = {"connections": 3, "uploads": 1, "store_writable": False, "disk_free_bytes": 5}


def scrape(
    subject: metrics.Metrics, accept: str = "", run: Snapshot = FULL, **facts: float | None
) -> Page:
    """A scrape of a run in which that is the case."""
    return subject.render(accept, run, mono=100.0, expires_at=2e9, **(FACTS | facts))


def series(page: Page, accept: str = "") -> dict[tuple[str, ...], float]:
    """Every sample of a scrape as {(name without prefix, label values ...): value}."""
    text = page.body.decode()
    parse = (
        openmetrics_parser.text_string_to_metric_families
        if accept
        else text_string_to_metric_families
    )
    samples = [sample for family in parse(text) for sample in family.samples]
    found = {
        (s.name.removeprefix("status_aggregator_"), *(v for _, v in sorted(s.labels.items()))): (
            s.value
        )
        for s in samples
    }
    assert len(samples) == len(found)
    return found


def used() -> metrics.Metrics:
    """Metrics after everything happened, hostile values included."""
    subject = metrics.Metrics(float)
    for route in (*metrics.ROUTES, 'no "such"\n route'):
        subject.request(route, 200, 0.02, 10)
    subject.request("results", 409, 9.0, 0)
    for reason in (*metrics.TLS_FAILURES, "no such reason"):
        subject.tls_failure(reason, "", "")
    subject.observe_commit(0.003, 7)
    subject.count("annotation_failures")
    subject.count("lost_results", 2)
    return subject


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_everything_told_is_shown(accept: str):
    """In both formats."""
    shown = series(scrape(used(), accept), accept)

    assert 1.0 == shown["requests_total", "409", "results"]
    assert 2.0 == shown["requests_total", "200", "other"]
    assert 2.0 == shown["request_duration_seconds_count", "results"]
    assert 1.0 == shown["request_duration_seconds_bucket", "5.0", "results"]
    assert 10.0 == shown["received_bytes_total", "progress"]
    assert 2.0 == shown["tls_failures_total", "other"]
    assert 7.0 == shown["store_operations_total",]
    assert 0.003 == shown["store_commit_duration_seconds_sum",]
    assert 2.0 == shown["entries", "sysd", "running"]
    assert 1.0 == shown["entries", "sysd", "complete"]
    assert 0.0 == shown["entries", "sysd", "failed"]
    assert 17.5 == shown["last_heartbeat_age_seconds", "sysd"]
    assert 2e9 == shown["certificate_expiry_timestamp_seconds", "run"]
    assert 1.0 == shown["run_status", "running"]
    assert 0.0 == shown["run_status", "failed"]
    assert [0.0, 1.0, 0.0] == [shown["run_result", result] for result in metrics.RESULTS]
    assert [0.0, 1.0, 0.0] == [shown["results", "sysd", result] for result in metrics.RESULTS]
    assert [1.0, 0.0, 0.0] == [shown["results", "e2e", result] for result in metrics.RESULTS]
    assert 0.0 == shown["run_final",]
    assert 42.0 == shown["revision",]
    assert 3.0 == shown["connections",]
    assert 1.0 == shown["uploads",]
    assert 0.0 == shown["store_writable",]
    assert 5.0 == shown["disk_free_bytes",]
    assert 1.0 == shown["annotation_failures_total",]
    assert 2.0 == shown["lost_results_total",]
    assert log.dropped() == shown["log_events_dropped_total",]
    version = ".".join(map(str, sys.version_info[:3]))
    assert 1.0 == shown["build_info", version, __version__]


def test_unknown_facts_have_no_series():
    """An age that nobody knows must not look like 0."""
    fresh = replace(FULL, beats={})
    shown = series(scrape(metrics.Metrics(float), run=fresh, disk_free_bytes=None))

    assert "disk_free_bytes" not in {name for name, *_ in shown}
    assert "last_heartbeat_age_seconds" not in {name for name, *_ in shown}
    assert 0.0 == shown["tls_failures_total", "certificate"]


def test_states_are_those_of_the_run():
    """Every state of an entry has its label."""
    assert tuple(State) == metrics.STATES


def test_a_page_shows_one_moment():
    """The second one nothing of the first."""
    subject = metrics.Metrics(float)
    first, second = scrape(subject), scrape(subject, run=replace(OVER, revision=43, beats={}))

    assert b"status_aggregator_revision 42.0" in first.body
    assert b"status_aggregator_revision 43.0" in second.body
    assert b"status_aggregator_last_heartbeat_age_seconds{" not in second.body
    assert [False, True] == [first.final, second.final]


def test_nodes_are_not_named():
    """Scrapes need no credentials: of the plan they show the plugins alone."""
    families = text_string_to_metric_families(scrape(used()).body.decode())
    labels = {name for family in families for sample in family.samples for name in sample.labels}

    of_runs = {"plugin", "state", "status", "result", "certificate"}
    assert labels == of_runs | {"route", "code", "le", "reason", "version", "python"}


def test_no_label_from_outside():
    """Only names of the plan; routes and reasons that are not ours become `other`."""
    text = scrape(used()).body.decode()

    assert "no such" not in text
    assert 'no "such"' not in text


def test_promtool_finds_nothing_to_criticise():
    """Names and types follow Prometheus' conventions."""
    assert ("", "") == promtool("check", "metrics", given=scrape(used()).body)
