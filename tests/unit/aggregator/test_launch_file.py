"""What is to be launched, as the aggregator reads it at its start."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reporter.aggregator.run_plan import keep_launch, launch_of
from reporter.aggregator.settings import Settings
from reporter.errors import SettingsError
from reporter.run.launch_file import encode_launch
from reporter.run.plan import Plan, Plugin
from tests.integration.launch.world import launch_of as made
from tests.integration.launch.world import plan_of

PLAN = plan_of()
PATHS = {"PLAN": "plan.json", "STATE": "state", "OUTPUT": "out"}


def given(path: Path | str, **more: str) -> Settings:
    return Settings.read(PATHS | {"LAUNCH": str(path), "POD_NAMESPACE": "space"} | more)


def test_nothing_is_launched_unless_asked() -> None:
    """As before there were launchers."""
    assert launch_of(Settings.read(PATHS), PLAN) is None


def test_a_launch_that_fits_its_plan(tmp_path: Path) -> None:
    """Read as it was written."""
    path = tmp_path / "launch.json"
    path.write_text(encode_launch(made(PLAN)))

    assert made(PLAN) == launch_of(given(path), PLAN)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """The run has it beside its plan; one that is there counts, and has to be right."""
    state, path = tmp_path / "state", tmp_path / "launch.json"
    state.mkdir()
    keep_launch(made(PLAN), state / "launch.json")

    chosen = given(path, STATE=str(state))
    assert made(PLAN) == launch_of(chosen, PLAN)
    assert 0o600 == (state / "launch.json").stat().st_mode & 0o777
    path.write_text("{")
    with pytest.raises(SettingsError, match=re.escape("launch.json: not JSON")):
        launch_of(chosen, PLAN)


def test_what_is_kept_is_not_written_again(tmp_path: Path) -> None:
    """A disk that is full must not keep a run from going on."""
    kept = tmp_path / "launch.json"
    keep_launch(made(PLAN), kept)
    before = kept.stat()
    keep_launch(made(PLAN), kept)

    after = kept.stat()  # it was read, so its time of access may differ
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    ("content", "more", "problem"),
    [
        (None, {}, "launch.json: No such file or directory"),
        ("{", {}, "launch.json: not JSON"),
        ("{}", {}, "launch.json: "),
        ("{}", {"POD_NAMESPACE": ""}, "LAUNCH: requires POD_NAMESPACE"),
        (encode_launch(made(PLAN)), {}, "launch.json: plugin other of the plan is missing"),
    ],
)
def test_what_cannot_be_launched(
    tmp_path: Path, content: str | None, more: dict[str, str], problem: str
) -> None:
    """Named with its file, before anything is made."""
    path = tmp_path / "launch.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError) as caught:
        launch_of(given(path, **more), Plan("r1", (*PLAN.plugins, Plugin("other"))))

    assert problem in caught.value.problems[0]
