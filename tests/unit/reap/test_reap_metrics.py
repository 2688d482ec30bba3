"""What the reaper counts."""

from reporter.reap.metrics import ReaperMetrics


def test_what_is_counted() -> None:
    """A reason that an adapter gave makes no label; after a broken pass the facts stay."""
    metrics = ReaperMetrics()
    for reason in ("AdapterTimeout", "AllChecked"):
        metrics.reaped(reason)
    metrics.passed(done=True, waiting=3, failures=1, now=100.0)
    metrics.passed(done=False, waiting=0, failures=1, now=200.0)

    lines = metrics.page("").body.decode().splitlines()
    counted = [line for line in lines if not line.startswith("#") and not line.endswith(" 0.0")]
    assert {
        'reports_total{reason="AdapterTimeout"} 1.0',
        'reports_total{reason="FromResult"} 1.0',
        'passes_total{result="done"} 1.0',
        'passes_total{result="failed"} 1.0',
        "failures_total 2.0",
        "open_jobs 3.0",
        "last_pass_timestamp_seconds 100.0",
    } == {
        line.removeprefix("status_reporter_reaper_") for line in counted if "_created" not in line
    }
