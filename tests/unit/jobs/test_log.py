"""What `explain` looks for in a reporter's log is what the reporter logs."""

from pathlib import Path

import pytest

from reporter.jobs import reporter_log as log
from tests.unit.jobs.world import explain, failed, job, logged, pod

ROOT = Path(__file__).parents[3] / "reporter"


def test_every_sentence_that_is_looked_for_is_logged():
    """A reworded event would be missed without a word."""
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("sidecar/*.py"))
    wanted = {*log._WRITTEN, *log._NOT_WRITTEN, log._FAILED, "Delivered to the aggregator"}

    assert set() == {sentence for sentence in wanted if f'"{sentence}"' not in sources}


@pytest.mark.parametrize(
    "line",
    [
        logged("Verdict not written yet", "warning", text="access to bucket is forbidden"),
        logged("Verdict not written yet", "warning", text="ErrImagePull: 403 Forbidden"),
        logged("Not delivered to the aggregator", text="403 Forbidden"),
        logged("Not allowed to create Events", "debug", error="403 Forbidden"),
        failed("unavailable", "503: the proxy is forbidden to reach the server"),
        "[warning] Request failed failure='denied' error='PATCH it: 403 Forbidden: by a webhook'",
    ],
    ids=["the adapter's", "a registry's", "an aggregator's", "Events", "another", "a webhook's"],
)
def test_only_a_refused_request_of_the_reporter_is_a_missing_right(line):
    """Other lines carry words that others have written; the true cause is told."""
    lines = [failed("unavailable", "connection timed out"), line]
    found = {each.code: each for each in explain(job(), pod(), log="\n".join(lines))}

    assert "missing-rights" not in found
    assert "NetworkPolicy" in found["not-written"].todo


def test_a_denial_by_admission_is_no_missing_permission():
    lines = failed("denied", 'PATCH it: 403 Forbidden: admission webhook "x" denied the request')
    found = {each.code: each for each in explain(job(), pod(), log=lines)}

    assert "missing-rights" not in found
    assert "admission policy or webhook" in found["not-written"].todo


def test_a_refusal_is_told_with_its_own_words():
    """Not with those of a newer line that only sounds like one."""
    lines = [
        failed("forbidden", "403 Forbidden: jobs"),
        logged("Verdict not written yet", "warning", text="access to bucket is forbidden"),
    ]

    assert "Request failed: 403 Forbidden: jobs" == log.refused("\n".join(lines))
