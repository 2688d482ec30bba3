"""`log-analysis`: what becomes of logs, whatever is in them, and of an operator's patterns."""

from __future__ import annotations

import gzip
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from reporter.collect import log_analysis
from reporter.collect.log_analysis import main
from reporter.results.manual import parse
from reporter.results.report import Report, Room

OOM = "Out of memory: Killed process 48113 (postgres) total-vm:9437184kB"
NOW = datetime.now(UTC)
COMPLETE = '{"status": "complete"}'


def ago(hours: float, form: str = "%Y-%m-%dT%H:%M:%S.%f+00:00") -> str:
    """A time as logs have it, in the zone UTC."""
    return (NOW - timedelta(hours=hours)).strftime(form)


def journal(*messages: str, program: str = "kernel:") -> str:
    return "".join(f"{ago(1)} node1 {program} {each}\n" for each in messages)


class Node:
    """A node whose logs were kept."""

    def __init__(self, folder: Path) -> None:
        self._logs, self._out = folder / "logs", folder / "log-analysis"
        self._logs.mkdir()
        self._out.mkdir()
        self.record(COMPLETE)

    def record(self, text: str) -> None:
        (self._logs / "gather.json").write_text(text)

    def log(self, name: str, text: str, *, hours: float = 0.0) -> Path:
        """Have a log that was last written so long ago."""
        path = self._logs / f"{name}.gz"
        path.write_bytes(gzip.compress(text.encode()))
        os.utime(path, (time.time() - hours * 3600,) * 2)
        return path

    def analyse(self, **variables: str) -> tuple[int, dict[str, tuple[str, str]]]:
        """Return the exit code, and of the tests of the report status and text, as it is read."""
        told = {"GATHER_OUT": str(self._out), **variables}
        code = main(told)
        report = Report("report.yaml", Room.of_list())
        report.read(parse, [(self._out / "report.yaml").read_bytes()])
        assert "" == report.note
        return code, {
            each.name: (each.status, each.details.get("message", "")) for each in report.item.items
        }


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def failed(tests: dict[str, Any]) -> list[str]:
    return [name for name, (status, _) in tests.items() if status == "failed"]


def test_a_healthy_node_passes(node: Node) -> None:
    node.log("journal-kernel", journal("eth0: link becomes ready"))

    code, tests = node.analyse()

    assert (0, {"passed"}) == (code, {status for status, _ in tests.values()})


def test_what_was_found_is_said_with_its_newest_line(node: Node) -> None:
    node.log("journal-kernel", journal(OOM, OOM.replace("48113", "50000")))

    code, tests = node.analyse()

    assert (0, ["oom-kill-node"]) == (code, failed(tests))
    text = tests["oom-kill-node"][1]
    assert "2 lines in journal-kernel" in text
    assert f"node1 kernel: {OOM.replace('48113', '50000')}" in text


def test_a_line_that_is_in_several_logs_is_counted_once(node: Node) -> None:
    for name in ("kern.log", "messages", "syslog"):
        node.log(name, journal(OOM))

    assert "1 line in kern.log" in node.analyse()[1]["oom-kill-node"][1]


@pytest.mark.parametrize(
    ("name", "form", "head"),
    [
        ("syslog", "%Y-%m-%dT%H:%M:%S.%f+02:00", "node1 kernel: "),
        ("kern.log", "%b %d %H:%M:%S", "node1 kernel: [  3.1] "),
        ("kubelet.log", "I%m%d %H:%M:%S.000000", "  1187 kubelet.go:1] "),
        ("k3s.log", 'time="%Y-%m-%dT%H:%M:%SZ"', 'level=info msg="" '),
    ],
)
def test_only_the_last_hours_of_a_file_count(node: Node, name: str, form: str, head: str) -> None:
    """By the time of its last line: the zone, the year and the clock of a log may be any."""
    kubelet = name.startswith("k") and name != "kern.log"
    text = "PLEG is not healthy: pleg was last seen active 4m ago" if kubelet else OOM
    lines = [(30, text), (5, text), (4, text), (0.1, "fine")]
    node.log(name, "".join(f"{ago(at, form)} {head}{said}\n" for at, said in lines))

    (found,) = failed(node.analyse()[1])

    assert f"2 lines in {name}" in node.analyse()[1][found][1]
    assert [] == failed(node.analyse(LOG_HOURS="3")[1])


def test_the_turn_of_the_year_in_a_log_without_years(node: Node) -> None:
    lines = [("Dec 29 10:00:00", OOM), ("Dec 31 23:00:00", OOM), ("Jan  1 01:00:00", "fine")]
    node.log("kern.log", "".join(f"{at} node1 kernel: {said}\n" for at, said in lines))

    assert "1 line in kern.log" in node.analyse()[1]["oom-kill-node"][1]


def test_a_log_that_nobody_writes_any_more_says_nothing(node: Node) -> None:
    node.log("kern.log", journal(OOM), hours=25)

    code, tests = node.analyse()

    assert (1, []) == (code, failed(tests))
    assert ("unknown", "no log has lines of the last 24 hours") == tests["logs"]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (
            '{"status": "partial", "stderr": "/var/log/journal: journalctl: chroot: denied\\n"}',
            "/var/log/journal: journalctl: chroot: denied",
        ),
        ('{"status": "failed", "limit": "seconds"}', "the gatherer logs: failed"),
    ],
)
def test_where_logs_are_missing_a_node_is_not_said_to_be_healthy(
    node: Node, record: str, said: str
) -> None:
    """What was found in the others still counts."""
    node.record(record)
    node.log("cloud-init.log", journal("fine"))
    code, tests = node.analyse()
    node.log("kern.log", journal(OOM))

    assert (1, ("unknown", said), []) == (code, tests["logs"], failed(tests))
    assert ["oom-kill-node"] == failed(node.analyse()[1])


def test_a_log_that_was_cut_off_counts_to_its_end(node: Node) -> None:
    """`logs` was killed while it wrote."""
    path = node.log("journal-kernel", journal(OOM) + "".join(map(str, range(10_000))))
    path.write_bytes(path.read_bytes()[:5_000])

    assert ["oom-kill-node"] == failed(node.analyse()[1])


def test_an_operators_patterns(node: Node) -> None:
    """They are added; one with the name of a built-in one replaces it."""
    node.log("journal-kernel", journal(OOM))
    node.log("journal", journal("lost quorum", "lost quorum", program="etcd[5]:"))
    added = """
- {name: etcd, description: etcd has lost its quorum., programs: [etcd], match: [gone, lost*quorum]}
- {name: oom-kill-node, programs: [kernel], match: [Out of memory], unless: [(postgres)]}
- {name: rare, match: [quorum], minimum: 3}
"""

    code, tests = node.analyse(LOG_PATTERNS=added)

    assert (0, ["etcd"]) == (code, failed(tests))
    assert tests["etcd"][1].startswith("etcd has lost its quorum. 2 lines in journal, ")


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"LOG_PATTERNS": "- {match: [a]}"}, "LOG_PATTERNS: line 1: [0].name: is required"),
        ({"LOG_HOURS": "-1"}, "LOG_HOURS is not a number from 1 to 168"),
    ],
)
def test_settings_that_are_wrong_are_said_in_the_report(
    node: Node, variables: dict[str, str], said: str
) -> None:
    node.log("journal-kernel", journal(OOM))

    code, tests = node.analyse(**variables)

    assert (1, ("unknown", said), ["oom-kill-node"]) == (code, tests["logs"], failed(tests))


def test_hostile_lines_and_a_pattern_of_many_stars_take_no_time(node: Node) -> None:
    """A regular expression of this kind would not end; here it is over before a test's bound."""
    node.log("journal", journal("a" * 2**20, program="evil[1]:") * 4)
    stars = "*a" * 5000

    code, tests = node.analyse(LOG_PATTERNS=f"- {{name: stars, match: ['{stars}*b']}}")

    assert (0, []) == (code, failed(tests))


def test_no_time_is_left(node: Node) -> None:
    """What was found until then is reported before the gatherer would be killed."""
    node.log("journal-kernel", journal(OOM, *["fine"] * 2000))

    code, tests = node.analyse(GATHER_DEADLINE=str(int(time.time())))

    assert (1, ["oom-kill-node"]) == (code, failed(tests))
    assert ("unknown", "out of time in journal-kernel") == tests["logs"]


def test_a_report_has_no_passwords_of_urls_and_no_control_characters(node: Node) -> None:
    line = f"{OOM} \x1b[31mhttps://user:hunter2@example.com/"
    node.log("journal-kernel", journal(line))

    text = node.analyse()[1]["oom-kill-node"][1]

    assert text.endswith("[31mhttps://[redacted]@example.com/")
    assert "\x1b" not in text


def test_more_lines_than_are_counted(node: Node) -> None:
    node.log("journal-kernel", journal(*[OOM] * 1500))

    assert "at least 1000 lines in" in node.analyse()[1]["oom-kill-node"][1]


def test_without_the_gatherer_logs_there_is_nothing_to_say(tmp_path: Path) -> None:
    out = tmp_path / "log-analysis"
    out.mkdir()

    assert 1 == main({"GATHER_OUT": str(out)})
    assert "the gatherer logs has not run" in (out / log_analysis.REPORT).read_text()
