"""A file that can be opened and not read is named, by every command that takes files."""

import sys
from pathlib import Path

import pytest

from tests import forked

STATUS_CTL = str(Path(__file__).resolve().parents[3] / "cmd" / "status-ctl.py")
FILE = "/proc/self/mem"
COMMANDS = [
    ["inject", "-f"],
    ["uninject", "-f"],
    ["lint", "-f"],
    ["images", "-f"],
    ["validate", "--plugin"],
    ["validate"],
    ["results"],
]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's /proc")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_whose_reading_fails(command: list[str]) -> None:
    """One line; the exit code is that of the command for what cannot be read."""
    done = forked.run([STATUS_CTL, *command, FILE], capture_output=True, text=True, timeout=60)

    assert (4 if command == ["results"] else 2, "") == (done.returncode, done.stdout)
    assert f"status-ctl: cannot read {FILE}: Input/output error\n" == done.stderr


@pytest.mark.parametrize("command", COMMANDS[:6], ids=" ".join)
def test_standard_input_whose_reading_fails(command: list[str]) -> None:
    """It has no name of its own."""
    with Path(FILE).open("rb") as opened:
        done = forked.run(
            [STATUS_CTL, *command, "-"], stdin=opened, capture_output=True, text=True, timeout=60
        )

    said = "status-ctl: cannot read standard input: Input/output error\n"
    assert (2, "", said) == (done.returncode, done.stdout, done.stderr)
