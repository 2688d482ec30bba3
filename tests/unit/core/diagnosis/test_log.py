"""What `explain` looks for in a reporter's log is what the reporter logs."""

from pathlib import Path

from reporter.core.diagnosis import log

ROOT = Path(__file__).parents[4] / "reporter"


def test_every_sentence_that_is_looked_for_is_logged():
    """A reworded event would be missed without a word."""
    sources = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("sidecar/*.py"))
    wanted = {*log._WRITTEN, *log._NOT_WRITTEN, log._FAILED, "Delivered to the aggregator"}

    assert set() == {sentence for sentence in wanted if f'"{sentence}"' not in sources}
