"""What the aggregator makes of an error that nobody foresaw."""

import json

import pytest

from reporter.aggregator import FAILED, UNFINISHED, listeners, main
from reporter.aggregator.service import Service
from reporter.common import log
from reporter.common.lifecycle import Stop


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"EXIT_WHEN_FINISHED": "true"}, UNFINISHED),
        ({"LAUNCH": "launch.json"}, UNFINISHED),
        ({}, FAILED),
    ],
)
def test_an_error_that_nobody_foresaw_is_no_verdict(tmp_path, monkeypatch, more, code):
    """Python's own exit code for it, 1, says that the run has failed, and ends the Job for good."""

    async def breaks(self: Service) -> int:
        raise ExceptionGroup("tasks", [KeyError("what a page of the database lacks")])

    for place, name in ((log, "configure"), (log, "report_crashes"), (listeners, "open_files")):
        monkeypatch.setattr(place, name, lambda *_: None)
    monkeypatch.setattr(main, "launch_of", lambda *_: None)
    monkeypatch.setattr(Service, "run", breaks)
    (tmp_path / "plan.json").write_text(json.dumps({"run": "r", "plugins": [{"name": "a"}]}))
    environ = {
        "PLAN": str(tmp_path / "plan.json"),
        "STATE": str(tmp_path / "state"),
        "OUTPUT": str(tmp_path / "out"),
        **more,
    }

    with log.capture() as events:
        assert code == main.main(["run"], environ, Stop())

    assert "Unexpected error" == events[-1]["message"]
    assert "what a page of the database lacks" in events[-1]["exception"]
