"""`log-analysis`: what becomes of logs, whatever is in them, and of an operator's patterns."""

from __future__ import annotations

import gzip
import os
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from reporter.collect import log_analysis
from reporter.collect.log_analysis import main
from reporter.results.manual import parse
from reporter.results.report import Report, Room

OOM = "Out of memory: Killed process 48113 (postgres) total-vm:9437184kB"
PLEG = (
    '"Skipping pod synchronization" err="PLEG is not healthy: pleg was last seen active 4m ago; '
    'threshold is 3m0s"'
)
STOPPED = "kubelet.service: Failed with result 'exit-code'."
NOT_READY = '"Container runtime network not ready" networkReady="NetworkReady=false"'
NOW = datetime.now(UTC)
COMPLETE = '{"status": "complete"}'


def ago(hours: float, form: str = "%Y-%m-%dT%H:%M:%S.%f+00:00") -> str:
    """A time as logs have it, in the zone UTC."""
    return (NOW - timedelta(hours=hours)).strftime(form)


def journal(*messages: str, program: str = "kernel:", hours: float = 1) -> str:
    return "".join(f"{ago(hours)} node1 {program} {each}\n" for each in messages)


HEALTHY = "".join(
    journal("fine", program=program, hours=hours)
    for hours in (24, 12, 0)
    for program in ("kernel:", "kubelet[1]:", "systemd[1]:")
)


class Node:
    """A node whose logs were kept; one has lines of everybody of all hours, and all is well."""

    def __init__(self, folder: Path) -> None:
        self._logs, self._out = folder / "logs", folder / "log-analysis"
        self._logs.mkdir()
        self._out.mkdir()
        self.record(COMPLETE)
        self.log("daemon.log", HEALTHY)

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
        self.items = yaml.safe_load((self._out / "report.yaml").read_text())["items"]
        report = Report("report.yaml", Room.of_list())
        report.read(parse, [(self._out / "report.yaml").read_bytes()])
        assert "" == report.note
        return code, {
            each.name: (each.status, each.details.get("message", "")) for each in report.item.items
        }

    def details(self, name: str) -> dict[str, str]:
        """Return the details of a test of the last report."""
        return next(each["details"] for each in self.items if each["name"] == name)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def named(tests: dict[str, Any], wanted: str) -> list[str]:
    return [name for name, (status, _) in tests.items() if status == wanted]


def failed(tests: dict[str, Any]) -> list[str]:
    return named(tests, "failed")


def test_a_healthy_node_passes(node: Node) -> None:
    code, tests = node.analyse()

    assert (0, {"passed"}) == (code, {status for status, _ in tests.values()})


def test_what_was_found_is_said_with_its_newest_line(node: Node) -> None:
    node.log("journal-kernel", journal(OOM, OOM.replace("48113", "50000")))

    code, tests = node.analyse()

    assert (0, ["oom-kill-node"]) == (code, failed(tests))
    text = tests["oom-kill-node"][1]
    assert "2 lines in journal-kernel" in text
    assert f"node1 kernel: {OOM.replace('48113', '50000')}" in text


def test_the_newest_line_of_a_journal_is_its_first(node: Node) -> None:
    """So is the newest one with a pattern."""
    node.log("journal-kernel", journal(f"{OOM} new", hours=1) + journal(f"{OOM} old", hours=2))

    assert node.analyse()[1]["oom-kill-node"][1].endswith(" new")


def test_from_when_to_when_logs_were_read_is_in_the_report_and_the_record(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    node.log("journal", journal("new", hours=0) + journal("old", hours=24))
    node.log("journal-kernel", "")
    node.log("boot.log", "[  OK  ] Started foo\n")

    node.analyse()

    form = "%b %d %H:%M:%S"
    windows = {
        "boot.log": "1 line",
        "daemon.log": f"9 lines, {ago(24, form)} to {ago(0, form)}",
        "journal": f"2 lines, {ago(24, form)} to {ago(0, form)}",
        "journal-kernel": "0 lines",
    }
    assert windows.items() <= node.details("logs").items()
    said = capsys.readouterr().err.splitlines()
    assert {f"{name}: {each}" for name, each in windows.items()} <= set(said)


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
    text = PLEG if kubelet else OOM
    lines = [(30, text), (5, text), (4, text), (0.1, "fine")]
    node.log(name, "".join(f"{ago(at, form)} {head}{said}\n" for at, said in lines))

    (found,) = failed(node.analyse()[1])

    assert f"2 lines in {name}" in node.analyse()[1][found][1]
    assert [] == failed(node.analyse(LOG_HOURS="3")[1])
    assert node.details("logs")[name].startswith("1 line, ")


def test_the_turn_of_the_year_in_a_log_without_years(node: Node) -> None:
    lines = [("Dec 29 10:00:00", OOM), ("Dec 31 23:00:00", OOM), ("Jan  1 01:00:00", "fine")]
    node.log("kern.log", "".join(f"{at} node1 kernel: {said}\n" for at, said in lines))

    assert "1 line in kern.log" in node.analyse()[1]["oom-kill-node"][1]


def test_a_log_that_nobody_writes_any_more_says_nothing(node: Node) -> None:
    node.log("kern.log", journal(OOM), hours=25)
    node.log("daemon.log", "", hours=25)

    code, tests = node.analyse()

    assert (1, []) == (code, failed(tests))
    assert "unknown" == tests["logs"][0]
    assert tests["logs"][1].endswith("the logs go back only 0.0 of the last 24 hours")


def test_logs_that_do_not_go_back_far_enough(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a journal that a talkative program has pushed the rest out of."""
    node.log("daemon.log", HEALTHY.replace(ago(24), ago(6)).replace(ago(12), ago(1)))

    assert ("unknown", "the logs go back only 6.0 of the last 24 hours") == node.analyse()[1][
        "logs"
    ]
    assert "passed" == node.analyse(LOG_HOURS="6")[1]["logs"][0]

    # A node that has started since has no older ones.
    monkeypatch.setattr(time, "clock_gettime", lambda _: 6.1 * 3600)
    assert "passed" == node.analyse()[1]["logs"][0]


@pytest.mark.parametrize(
    ("name", "lines", "unknown"),
    [
        # RKE2's kubelet has a file of its own; here it was not read.
        ("journal", journal("up", program="rke2[1]:"), {"kubelet-pleg", "kubelet-stopped"}),
        ("journal", journal("up", program="systemd[1]:"), {"kubelet-pleg"}),
        ("kubelet.log", "I1128 04:12:07.901274    1187 up\n", {"kubelet-stopped"}),
        ("cloud-init.log", "2026-11-28 01:00:00,000 - up\n", {"kubelet-pleg", "kubelet-stopped"}),
    ],
    ids=["rke2", "systemd", "kubelet", "cloud-init"],
)
def test_nobody_whose_lines_were_not_read_is_said_to_be_healthy(
    node: Node, name: str, lines: str, unknown: set[str]
) -> None:
    """Of the kernel there are none here; one that is quiet is not in the journal that was read."""
    node.log("daemon.log", journal("up", program="sshd[1]:", hours=24) + journal("x", program="a:"))
    node.log(name, lines)

    code, tests = node.analyse()

    assert (1, []) == (code, failed(tests))
    told = {"oom-kill-node", "kubelet-pleg", "kubelet-stopped"}
    assert {"oom-kill-node", *unknown} == told & set(named(tests, "unknown"))
    assert tests["logs"][1].startswith("no lines of kernel; ")
    node.log("journal-kernel", "")
    assert "passed" == node.analyse()[1]["oom-kill-node"][0]


@pytest.mark.parametrize(
    "program", ["kubenswrapper", "hyperkube", "k0s", "microk8s.daemon-kubelite"]
)
def test_a_kubelet_under_another_name(node: Node, program: str) -> None:
    node.log("journal", journal(PLEG, program=f"{program}[1]:"))

    assert ["kubelet-pleg"] == failed(node.analyse()[1])


def test_a_container_that_reaches_its_own_limit_is_told_and_fails_no_node(node: Node) -> None:
    node.log("journal-kernel", journal("Memory cgroup out of memory: Killed process 911 (python3)"))

    code, tests = node.analyse()

    assert (0, ["oom-kill-container"]) == (code, named(tests, "skipped"))
    assert "1 line in journal-kernel" in tests["oom-kill-container"][1]


@pytest.mark.parametrize(
    ("program", "line", "hours", "bad"),
    [
        # A kubelet restarts all the time until its node joins, k3s fails whenever it is stopped.
        ("systemd", STOPPED, [5 + n / 360 for n in range(300)], False),
        ("systemd", STOPPED, [2, 6, 10], False),
        ("systemd", STOPPED, [3 + n / 4 for n in range(5)], True),
        # Every five seconds for 40 seconds at three reboots; for an hour.
        ("kubelet", NOT_READY, [at + n / 720 for at in (1, 5, 9) for n in range(8)], False),
        ("kubelet", NOT_READY, [3 + n / 720 for n in range(720)], True),
    ],
)
def test_what_a_healthy_node_says_at_its_start_counts_where_it_goes_on(
    node: Node, program: str, line: str, hours: list[float], bad: bool
) -> None:
    """Whether the newest line is first, or the oldest."""
    lines = [journal(line, program=f"{program}[1]:", hours=each) for each in sorted(hours)]
    node.log("journal", "".join(lines))
    first = failed(node.analyse()[1])
    node.log("journal", "")
    node.log("syslog", "".join(reversed(lines)))

    assert (bad, first) == (bool(first), failed(node.analyse()[1]))


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
    """They are added; one with the name of a built-in one changes that."""
    node.log("journal-kernel", journal(OOM))
    node.log("journal", journal(*["lost quorum"] * 5000, program="etcd[5]:"))
    added = """
- {name: etcd, description: etcd has lost its quorum., programs: [etcd], match: [gone, lost*quorum]}
- {name: oom-kill-node, unless: [(postgres)]}
- {name: often, match: [quorum], minimum: 5000}
- {name: rare, match: [quorum], minimum: 5001}
- {name: of-other-nodes, match: [a], programs: [nobody]}
"""

    code, tests = node.analyse(LOG_PATTERNS=added)

    assert (0, ["etcd", "often"]) == (code, failed(tests))
    assert "passed" == tests["of-other-nodes"][0]
    assert tests["etcd"][1].startswith("etcd has lost its quorum. 5000 lines in journal, ")


def test_a_built_in_pattern_is_switched_off_in_one_line(node: Node) -> None:
    """Whether it is found, or nobody knows."""
    node.log("daemon.log", journal("fine", hours=24) + journal(OOM, hours=0))
    off = "\n".join(
        f"- {{name: {name}, fails: false}}"
        for name, (status, _) in node.analyse()[1].items()
        if status in {"failed", "unknown"} and name != "logs"
    )

    code, tests = node.analyse(LOG_PATTERNS=off)

    assert (0, []) == (code, failed(tests))
    assert {"oom-kill-node", "kubelet-pleg"} <= set(named(tests, "skipped"))


def test_patterns_that_are_wrong_are_said_in_the_report(node: Node) -> None:
    node.log("journal-kernel", journal(OOM))

    code, tests = node.analyse(LOG_PATTERNS="- {match: [a]}")

    said = ("unknown", "LOG_PATTERNS: line 1: [0].name: is required")
    assert (1, said, ["oom-kill-node"]) == (code, tests["logs"], failed(tests))


def test_hours_that_are_wrong_are_said_once(tmp_path: Path) -> None:
    """The gatherer `logs` has said it, and has kept nothing."""
    node = Node(tmp_path)
    (tmp_path / "logs" / "daemon.log.gz").unlink()
    said = "LOG_HOURS is not a number from 1 to 168"
    node.record(f'{{"status": "failed", "stderr": "{said}\\n"}}')

    code, tests = node.analyse(LOG_HOURS="-1")

    assert (1, ("unknown", said)) == (code, tests["logs"])


def test_hostile_lines_and_patterns_of_many_stars_take_no_longer_than_there_is(node: Node) -> None:
    """A regular expression of this kind would not end, and each line takes its time."""
    node.log("journal", journal(*["a" * 4000] * 4000, program="evil[1]:"))
    stars = "".join(f"- {{name: s{n}, match: ['{'*a' * 1600}*b']}}\n" for n in range(30))
    began = time.time()

    code, tests = node.analyse(LOG_PATTERNS=stars, GATHER_DEADLINE=str(began + 13))

    assert (1, []) == (code, failed(tests))
    assert "out of time in journal" in tests["logs"][1]
    assert time.time() - began < 13


def test_what_was_found_before_the_time_was_over_is_reported(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.log("daemon.log", "")
    node.log("journal-kernel", journal(OOM, *["fine"] * 5))
    monkeypatch.setattr(time, "time", partial(next, count()))  # a second for each line

    code, tests = node.analyse(GATHER_DEADLINE="14")

    assert (1, ["oom-kill-node"]) == (code, failed(tests))


def test_what_follows_in_a_line_that_is_too_long_is_nobodys(node: Node) -> None:
    start = journal("", program="app[1]:").rstrip("\n")
    node.log("journal", start + "x" * (4096 - len(start)) + journal(OOM) + journal("fine"))

    code, tests = node.analyse()

    assert (0, []) == (code, failed(tests))
    assert node.details("logs")["journal"].startswith("2 lines, ")


def test_a_report_has_no_passwords_of_urls_and_no_control_characters(node: Node) -> None:
    line = f"{OOM} \x1b[31mhttps://user:hunter2@example.com/"
    node.log("journal-kernel", journal(line))

    text = node.analyse()[1]["oom-kill-node"][1]

    assert text.endswith("[31mhttps://[redacted]@example.com/")
    assert "\x1b" not in text


def test_without_the_gatherer_logs_there_is_nothing_to_say(tmp_path: Path) -> None:
    out = tmp_path / "log-analysis"
    out.mkdir()

    assert 1 == main({"GATHER_OUT": str(out)})
    assert "the gatherer logs: not run" in (out / log_analysis.REPORT).read_text()
