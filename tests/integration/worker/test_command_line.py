"""From arguments to a command, as plugin definitions of many years write them."""

import pytest

from reporter.worker.command_line import UsageError, parse

GLOBAL, NODE = ["worker", "global"], ["worker", "single-node"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("worker global", (GLOBAL, 0)),
        ("worker global -v 5 --logtostderr", (GLOBAL, 0)),
        ("--level=trace worker global", (GLOBAL, 0)),
        ("--level trace worker global", (GLOBAL, 0)),
        ("worker --v=5 global --alsologtostderr=true -v5 -v=5", (GLOBAL, 0)),
        ("worker single-node", (NODE, 0)),
        ("worker single-node --sleep -1", (NODE, -1)),
        ("worker single-node --sleep=-1 -v 5", (NODE, -1)),
        ("worker single-node --sleep=3600", (NODE, 3600)),
        ("worker single-node --sleep 0", (NODE, 0)),
        ("splat /tmp/sonobuoy", (["splat", "/tmp/sonobuoy"], 0)),
        ("version", (["version"], 0)),
        ("help", (["help"], 0)),
        ("--help", (["help"], 0)),
        ("worker global -h", (["help"], 0)),
    ],
)
def test_commands(line: str, expected: object) -> None:
    """Logging flags are taken wherever they stand, and mean nothing."""
    assert expected == parse(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "worker global --unknown",
        "worker global -vv",
        "worker single-node --sleep",
        "worker single-node --sleep=soon",
    ],
)
def test_flags_that_are_not_known(line: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UsageError):
        parse(line.split())
