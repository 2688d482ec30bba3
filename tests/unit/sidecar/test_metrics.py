"""Metrics: what a scrape shows, and how many series it can ever have."""

from __future__ import annotations

import re
import threading
from typing import get_args

import pytest
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from reporter import errors
from reporter.sidecar import metrics
from reporter.sidecar.files import ReadOutcome
from tests.promtool import promtool

OPENMETRICS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


def series(subject, accept=""):
    """Every sample of a scrape as {(name, sorted labels): value}."""
    text = subject.render(accept).body.decode()
    parse = (
        openmetrics_parser.text_string_to_metric_families
        if "openmetrics" in accept
        else text_string_to_metric_families
    )
    samples = [sample for family in parse(text) for sample in family.samples]
    found = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in samples}
    assert len(samples) == len(found)
    return found


def values(subject, name):
    """The values of one metric by its label values."""
    return {
        "".join(value for _, value in labels): amount
        for (found, labels), amount in series(subject).items()
        if found == f"status_reporter_{name}"
    }


def used():
    """Metrics after every label was used and every fact was told, hostile ones included."""
    subject = metrics.Metrics("0.1.0", dropped_logs=lambda: 3)
    for status in metrics.STATUSES:
        for reason in ("AdapterTimeout", "AdapterOOMKilled", "AdapterRunning"):
            subject.set_condition(status, reason, from_file=False, final=True)
        subject.set_condition(status, 'evil"\n\\', from_file=True, final=True)
    for outcome in (*metrics.READS, "no such outcome", "x" * 100):
        subject.observe_read(outcome)
    for result in (*metrics.PUBLISHES, "no such result"):
        subject.observe_publish(result, seconds=0.1, now=1.7e9)
    for seconds in (0.001, 0.05, 0.2, 0.7, 3, 100):
        subject.observe_publish("written", seconds=seconds, now=1.7e9)
    for failure in (*metrics.FAILURES, "no such failure"):
        subject.observe_failure(failure)
    subject.set_adapter(137, 4)
    subject.set_progress(completed=1, total=2, failures=3, errors=4)
    subject.observed(1.7e9)
    return subject


@pytest.mark.parametrize("accept", ["", OPENMETRICS])
def test_there_are_never_more_than_38_series(accept):
    """Whatever happens in a reporter's life, in both formats."""
    assert len(series(used(), accept)) <= 38


def test_both_formats_show_the_same():
    """Prometheus sees the same facts whichever format it asks for."""
    subject = used()

    assert series(subject) == series(subject, OPENMETRICS)


def test_unknown_facts_have_no_series():
    """An exit code, a time or a progress that nobody knows is not 0."""
    expected = {
        "build_info",
        "verdict_final",
        "result_reads_total",
        "publishes_total",
        "failures_total",
        "publish_duration_seconds_bucket",
        "publish_duration_seconds_count",
        "publish_duration_seconds_sum",
        "log_events_dropped_total",
    }

    assert {f"status_reporter_{name}" for name in expected} == {
        name for name, _ in series(metrics.Metrics("0.1.0"))
    }


def test_facts_that_became_unknown_lose_their_series():
    """A new run of the adapter has no exit code yet."""
    subject = used()
    subject.set_adapter(None, None)
    subject.set_progress(completed=5)

    assert {} == values(subject, "adapter_exit_code")
    assert {} == values(subject, "adapter_restarts_total")
    assert {"": 5.0} == values(subject, "progress_completed")
    assert {} == values(subject, "progress_expected")


@pytest.mark.parametrize(("from_file", "shown"), [(False, "AdapterTimeout"), (True, "FromResult")])
def test_a_new_condition_takes_the_place_of_the_old_one(from_file, shown):
    """Two reasons at a time would be two verdicts; adapters may invent some, and series must not
    follow them, nor a look-alike of ours.
    """
    subject = metrics.Metrics("0.1.0")
    subject.set_condition("Unknown", "AdapterRunning", from_file=False, final=False)
    assert ({"AdapterRunning": 1.0}, {"": 0.0}) == (
        values(subject, "verdict"),
        values(subject, "verdict_final"),
    )
    subject.set_condition("False", "AdapterTimeout", from_file=from_file, final=True)

    assert {"True": 0.0, "False": 1.0, "Unknown": 0.0} == values(subject, "condition")
    assert ({shown: 1.0}, {"": 1.0}) == (
        values(subject, "verdict"),
        values(subject, "verdict_final"),
    )


def test_everything_told_is_shown():
    """Each method ends in its series."""
    subject = used()

    assert {"": 137.0} == values(subject, "adapter_exit_code")
    assert {"": 4.0} == values(subject, "adapter_restarts_total")
    assert {"written": 7.0, "failed": 2.0} == values(subject, "publishes_total")
    expected = dict.fromkeys(("absent", "unreadable", "torn", "invalid", "valid"), 1.0)
    assert expected == values(subject, "result_reads_total")
    expected = {"0.05": 2.0, "0.25": 4.0, "1.0": 5.0, "5.0": 6.0, "+Inf": 7.0}
    assert expected == values(subject, "publish_duration_seconds_bucket")
    assert {"": 7.0} == values(subject, "publish_duration_seconds_count")
    assert {"": 1.7e9} == values(subject, "last_publish_timestamp_seconds")
    assert {"": 1.7e9} == values(subject, "last_observation_timestamp_seconds")
    assert {"": 1.0} == values(subject, "progress_completed")
    assert {"": 2.0} == values(subject, "progress_expected")
    assert {"": 3.0} == values(subject, "progress_failures")
    assert {"": 4.0} == values(subject, "progress_errors")
    assert {"": 3.0} == values(subject, "log_events_dropped_total")


def test_every_class_of_api_failure_has_its_label():
    """The labels are the names in errors.py, an unknown one counts as the plain error."""
    classes = vars(errors).values()
    names = {each.failure for each in classes if hasattr(each, "failure")}
    shown = values(used(), "failures_total")

    assert {name: 2.0 if name == "error" else 1.0 for name in names} == shown


def test_every_outcome_of_a_look_at_the_file_has_its_label():
    """What the source says is what is counted."""
    assert set(get_args(ReadOutcome)) == set(metrics.READS)


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        ("text/plain", False),
        ("text/plain;version=0.0.4;q=0.3,*/*;q=0.2", False),
        ("text/html", False),
        ("application/openmetrics-text", True),
        ("application/openmetrics-text; version=1.0.0", True),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=new", False),
        ("application/openmetrics-text; version=1.x", False),
        ("application/openmetrics-text; version=" + "9" * 5000, False),
        ("application/openmetrics-text; version=1.0.0.\u0663", False),
        ("application/openmetrics-text; version=1.0.0.\rX-Evil: 1", False),
        (";,=;q", False),
        (OPENMETRICS, True),
    ],
)
def test_the_format_is_negotiated(accept, openmetrics):
    """OpenMetrics for whom prefers it, the old text for everybody else."""
    page = metrics.Metrics("0.1.0").render(accept)

    expected = "application/openmetrics-text" if openmetrics else "text/plain"
    assert expected == page.content_type.split(";")[0]
    assert openmetrics == page.body.endswith(b"# EOF\n")


def test_a_page_is_final_exactly_when_its_text_says_so():
    """Told from another thread meanwhile, page and flag still agree: linger depends on it."""
    subject = metrics.Metrics("0.1.0")
    rounds = 300

    def tell():
        for turn in range(rounds):
            subject.set_condition("True", "R", from_file=True, final=turn % 2 == 0)

    teller = threading.Thread(target=tell)
    teller.start()
    pages = []
    while teller.is_alive():
        pages.append(subject.render())
    teller.join()

    for page in [*pages, subject.render()]:
        (shown,) = re.findall(rb"^status_reporter_verdict_final (\S+)$", page.body, re.MULTILINE)
        assert page.final == (shown == b"1.0")


def test_promtool_finds_nothing_to_criticise():
    """Names and types follow Prometheus' conventions."""
    assert ("", "") == promtool("check", "metrics", given=used().render().body)
