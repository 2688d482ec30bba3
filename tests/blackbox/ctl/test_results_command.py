"""`status-ctl results`: what tests say, from tarballs, directories and runs."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests import forked

LAUNCHER = str(Path("cmd/status-ctl.py").absolute())
BOUND = 60.0
UNIT = """\
name: unit
status: failed
meta: {type: summary}
items:
- name: junit.xml
  status: failed
  meta: {file: results/global/junit.xml, type: file, unlisted: 'passed: 990'}
  items:
  - name: disks
    status: failed
    items:
    - {name: opens, status: passed, details: {system-out: fine}}
    - {name: waits, status: skipped}
    - {name: closes, status: failed, details: {failure: "is open\\nline 7 \\e[31m"}}
"""
LOGS = """\
name: logs
status: passed
items:
- name: node1
  status: passed
  meta: {type: node}
  items:
  - {name: node2, status: passed, meta: {file: results/node1/log}}
- name: node2
  status: failed
  meta: {type: node}
  items:
  - {name: no answer, status: timeout, details: {error: no answer}}
"""
MINE = """\
name: mine
status: 'degraded: 1, passed: 1'
items:
- {name: a, status: degraded, details: {output: "%s"}}
- {name: b, status: passed}
""" % ("x\\n" * 23)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """An unpacked tarball of three plugins."""
    for name, text in {"unit": UNIT, "logs": LOGS, "mine": MINE}.items():
        folder = tmp_path / "got" / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "sonobuoy_results.yaml").write_text(text)
    return tmp_path / "got"


def packed(results: Path) -> Path:
    """The same as a tarball."""
    path = results.parent / "results.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(results, "")
    return path


def call(*arguments: str, command: str = "results") -> tuple[int, str, str]:
    """Run it: exit code, output, standard error."""
    command = [LAUNCHER, command, *arguments]
    done = forked.run(command, capture_output=True, timeout=BOUND)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_what_failed_comes_with_its_text(results: Path) -> None:
    """Nothing in it moves the terminal's cursor; what is not listed is counted.

    A text that is the test's name is not said twice.
    """
    code, out, err = call(str(packed(results)))
    assert (1, "") == (code, err)
    table = [line.split() for line in out[: out.index("\n\n")].splitlines()]
    assert [
        ["PLUGIN", "RESULT", "TESTS", "PASSED", "FAILED", "SKIPPED", "OTHER"],
        ["logs", "passed", "2", "1", "1", "0", "0"],
        ["mine", "degraded:", "1,", "passed:", "1", "2", "1", "0", "0", "1"],
        ["unit", "failed", "993", "991", "1", "1", "0"],
    ] == table
    long = "    x\n" * 20
    assert (
        "\ntimeout: logs > node2 > no answer\n"
        f"\ndegraded: mine > a\n{long}    ... 3 more lines\n"
        "\nfailed: unit > junit.xml > disks > closes\n    is open\n    line 7 [31m\n"
    ) == out[out.index("\n\n") + 1 :]


def test_a_snapshot_that_misses_something(results: Path) -> None:
    """Its plugin has passed all the same; only who looks at the index would know."""
    folder = results / "plugins" / "cluster-snapshot"
    folder.mkdir()
    (folder / "sonobuoy_results.yaml").write_text("name: cluster-snapshot\nstatus: passed\n")
    (results / "resources").mkdir()
    named = [{"resource": f"r{at}", "truncated": "full", "redacted": 2} for at in range(7)]
    index = {
        "complete": False,
        "stopped": "out of time",
        "resources": [*named, {"resource": "pods", "group": "metrics.k8s.io", "error": "no"}],
        "groupErrors": [{"group": "a.example.com"}],
        "namespaceErrors": [{"namespace": "team-a", "error": "it was deleted"}],
        "podlogs": {"truncated": "full", "redacted": 1},
    }
    (results / "resources" / "index.json").write_text(json.dumps(index))
    _, _, err = call(str(results), "--plugin", "cluster-snapshot")

    assert (
        "status-ctl: the snapshot is not complete: out of time; truncated: r0, r1, r2, r3, r4 "
        "and 3 more; failed: pods.metrics.k8s.io; API groups that did not answer: a.example.com; "
        "namespaces that failed: team-a\n"
        "status-ctl: values redacted in the snapshot: 15\n"
    ) == err


@pytest.mark.parametrize(
    ("words", "code", "statuses"),
    [
        ((), 1, ["timeout", "degraded", "failed"]),
        (
            ("--mode", "detailed"),
            1,
            ["timeout", "passed", "degraded", "passed", "failed", "passed", "skipped"],
        ),
        (("--mode", "detailed", "--failed"), 1, ["timeout", "degraded", "failed"]),
        (("--plugin", "unit"), 1, ["failed"]),
        (("--plugin", "logs", "--node", "node1", "--mode", "detailed"), 0, ["passed"]),
        # A test of node1 has the name of that node.
        (("--node", "node2", "--mode", "detailed"), 1, ["timeout"]),
    ],
)
def test_as_data(results: Path, words, code, statuses) -> None:
    """What failed comes first in each plugin."""
    found, out, _ = call(str(results), *words, "-o", "json")
    plugins = json.loads(out)["plugins"]
    assert (code, statuses) == (
        found,
        [test["status"] for plugin in plugins for test in plugin["tests"]],
    )
    _, out, _ = call(str(results), *words, "-o", "yaml")
    assert plugins == yaml.safe_load(out)["plugins"]


def test_each_test_in_a_line(results: Path) -> None:
    _, out, _ = call(str(results), "--mode", "detailed", "--plugin", "unit")
    lines = [json.loads(line) for line in out.splitlines()]
    assert {
        "name": "closes",
        "status": "failed",
        "path": ["unit", "junit.xml", "disks"],
        "details": {"failure": "is open\nline 7 \x1b[31m"},
        "meta": {},
    } == lines[0]
    assert ["closes", "opens", "waits"] == [line["name"] for line in lines]


def test_the_files_as_they_are(results: Path) -> None:
    _, out, _ = call(str(results), "--mode", "dump", "--plugin", "logs")
    assert LOGS == out


def test_as_junit(results: Path) -> None:
    """For tools that read nothing else."""
    code, out, _ = call(str(results), "-o", "junit")
    root = ElementTree.fromstring(out)
    told = {
        (case.get("classname"), case.get("name")): [part.tag for part in case]
        for case in root.iter("testcase")
    }
    assert {
        ("unit.junit.xml.disks", "opens"): [],
        ("unit.junit.xml.disks", "waits"): ["skipped"],
        ("unit.junit.xml.disks", "closes"): ["failure"],
        ("logs.node1", "node2"): [],
        ("logs.node2", "no answer"): ["failure"],
        ("mine", "a"): ["error"],
        ("mine", "b"): [],
    } == told
    assert 1 == code
    assert "is open\nline 7 [31m" == root.find(".//failure[@message='failed']").text
    (suite,) = (each for each in root if each.get("name") == "unit")
    assert ("3", "1", "1") == tuple(suite.get(name) for name in ("tests", "failures", "skipped"))


QUOTA = """\
name: quota
items:
- name: node1
  meta: {type: node}
  items:
  - name: r.json
    items:
    - name: %s
      status: %s
      meta: {file: results/node1/r.json, type: verdict}
      details: {reason: %s, message: no quota}
- name: node2
  meta: {type: node}
  items:
  - name: gone
    status: failed
    meta: {file: errors/node2/error.json, type: verdict}
    details: {error: gone}
"""


@pytest.mark.parametrize(
    ("reason", "status", "message"),
    [("Missing", "failed", "Missing: no quota"), ("Enough", "passed", None)],
)
@pytest.mark.parametrize("words", [(), ("--node", "node1")])
def test_a_verdict_as_junit(tmp_path: Path, words, reason, status, message) -> None:
    """One test case for its plugin and node, whatever its reason is this time."""
    folder = tmp_path / "plugins" / "quota"
    folder.mkdir(parents=True)
    (folder / "sonobuoy_results.yaml").write_text(QUOTA % (reason, status, reason))
    _, out, _ = call(str(tmp_path), "-o", "junit", *words)
    cases = {each.get("name"): each for each in ElementTree.fromstring(out).iter("testcase")}
    case, other = cases["quota/node1"], cases.get("quota/node2")
    failure = case.find("failure")

    assert "quota" == case.get("classname")
    assert reason == case.find("properties/property[@name='reason']").get("value")
    assert message == (None if failure is None else failure.get("message"))
    assert other is None if words else "gone" == other.find("failure").get("message")


@pytest.mark.parametrize("meta", ["type: verdict", "type: verdict, file: a", "file: ['x']"])
def test_a_verdict_that_nobody_knows_as_junit(results: Path, meta: str) -> None:
    """A tarball from elsewhere: what its results lack costs no other plugin its own."""
    folder = results / "plugins" / "other"
    folder.mkdir()
    item = f"- {{name: Missing, status: failed, meta: {{{meta}}}}}"
    (folder / "sonobuoy_results.yaml").write_text(f"name: other\nitems:\n{item}\n")
    code, out, err = call(str(results), "-o", "junit")
    suites = {each.get("name") for each in ElementTree.fromstring(out)}

    assert (1, "", {"unit", "logs", "mine", "other"}) == (code, err, suites)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        (UNIT, ("--plugin", "none"), "status-ctl: no results of plugin none found\n"),
        (UNIT, ("--node", "none"), "status-ctl: no results of node none found\n"),
        (
            "a: [",
            (),
            "status-ctl: plugin x: sonobuoy_results.yaml cannot be read\n"
            "status-ctl: no results found\n",
        ),
    ],
)
def test_nothing_to_show_is_no_success(tmp_path: Path, text, words, said) -> None:
    folder = tmp_path / "plugins" / "x"
    folder.mkdir(parents=True)
    (folder / "sonobuoy_results.yaml").write_text(text)
    assert (1, "", said) == call(str(tmp_path), *words)


def test_a_file_that_says_better_of_itself_than_its_tests_is_not_believed(results: Path) -> None:
    assert 1 == call(str(results), "--plugin", "logs")[0]
    assert 0 == call(str(results), "--plugin", "logs", "--node", "node1")[0]


def test_a_damaged_tarball(results: Path) -> None:
    path = packed(results)
    path.write_bytes(path.read_bytes()[:-60])
    code, out, err = call(str(path))
    assert (1, "") == (code, out)
    assert err.startswith("status-ctl: cannot be read: ")


def test_wrong_usage(results: Path) -> None:
    code, _, err = call(str(results), "--mode", "dump", "--failed")
    assert 2 == code
    assert "--mode dump cannot be used with --failed" in err
    assert 4 == call("./none.tar.gz")[0]


@pytest.mark.parametrize("command", ["results", "facts"])
def test_a_run_is_named_like_everywhere(command) -> None:
    """As NAME or run/NAME: neither is taken for a file."""
    for name in ("mine", "run/mine"):
        code, _, err = call(name, "--url", "https://127.0.0.1:1", command=command)
        assert (2, True) == (code, "a RUN and --url cannot be used together" in err), err
    code, _, err = call("not_a_run", command=command)
    assert (2, True) == (code, "no such file, and not a run name: 'not_a_run'" in err), err
    assert 4 == call("run/none.tar.gz", command=command)[0]
