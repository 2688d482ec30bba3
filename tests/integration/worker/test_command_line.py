"""From arguments to a command, as plugin definitions of many years write them."""

import pytest

from reporter.worker.command_line import Help, Splat, UsageError, Version, Work, parse


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("worker global", Work("global")),
        ("worker global -v 5 --logtostderr", Work("global")),
        ("--level=trace worker global", Work("global")),
        ("--level trace worker global", Work("global")),
        ("worker --v=5 global --alsologtostderr=true -v5 -v=5", Work("global")),
        ("worker single-node", Work("node")),
        ("worker single-node --sleep -1", Work("node", -1)),
        ("worker single-node --sleep=-1 -v 5", Work("node", -1)),
        ("worker single-node --sleep=3600", Work("node", 3600)),
        ("worker single-node --sleep 0", Work("node", 0)),
        ("splat /tmp/sonobuoy", Splat("/tmp/sonobuoy")),
        ("version", Version()),
        ("help", Help()),
        ("--help", Help()),
        ("worker global -h", Help()),
    ],
)
def test_commands(line: str, expected: object) -> None:
    """Logging flags are taken wherever they stand, and mean nothing."""
    assert expected == parse(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "worker",
        "worker local",
        "worker global extra",
        "splat",
        "splat a b",
        "run",
        "-",
        "worker global --unknown",
        "worker global -vv",
        "worker single-node --sleep",
        "worker single-node --sleep=soon",
    ],
)
def test_what_makes_no_command(line: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(UsageError):
        parse(line.split())
