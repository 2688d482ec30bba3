"""`status-ctl results` and `facts` of a run that goes on, from a real aggregator."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reporter.common.defaults import ADAPTER_RESULT
from tests.aggregators.served import Aggregator
from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.integration.results.test_facts_command import facts
from tests.scripted_server import Say

PLUGINS = [
    {"name": "unit", "nodes": ["node1", "node2", "node3"], "result_format": "junit"},
    {"name": "host-facts", "nodes": ["node1", "node2"]},
    {"name": "logs"},
]
SUITE = """<testsuite name="disks"><testcase name="opens"/>
<testcase name="waits"><skipped/></testcase>{}</testsuite>"""
GZIP = {"Content-Type": "application/gzip"}
CLOSES = '<testcase name="closes"><failure>is open</failure></testcase>'


@pytest.fixture
def aggregator(tmp_path: Path) -> Iterator[Aggregator]:
    document = {"run": "nightly", "plugins": PLUGINS}
    with Aggregator(tmp_path / "run", document, "--status-scope", "local") as running:
        yield running


def local(aggregator: Aggregator) -> tuple[str, str]:
    return "--url", f"http://127.0.0.1:{aggregator.status_port}"


def archive(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(f"host/{name}.json")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def send(aggregator: Aggregator, plugin: str, key: str, body: bytes, **headers: str) -> None:
    assert 200 == aggregator.worker(plugin).put(key, body, **headers).status


def test_nothing_has_arrived(home: Home, aggregator: Aggregator) -> None:
    """4: there is nothing to show."""
    for command in ("results", "facts"):
        code, out, err = home.run(command, *local(aggregator))
        assert (4, "", "status-ctl: there are no results yet: the run is running\n") == (
            code,
            out,
            err,
        )


def test_what_arrived_is_shown(home: Home, aggregator: Aggregator) -> None:
    """A failed test with its text; an error in place of a result; what is missing is no failure."""
    for node, bad in (("node1", CLOSES), ("node2", "")):
        body = SUITE.format(bad).encode()
        send(aggregator, "unit", f"by-node/{node}/unit", body, **{"Content-Type": "text/xml"})
    told = json.dumps({"error": "no disk", "cause": "worker_error"}).encode()
    send(aggregator, "logs", "global/logs", told, **{"Result-Outcome": "error"})
    aggregator.wait_status(
        lambda found: all(
            each["result_status"] for each in found["plugins"] if each["status"] == "complete"
        )
    )
    code, out, err = home.run("results", *local(aggregator))

    assert 1 == code
    assert "status-ctl: partial: 2 of 6 results have arrived, the run is failed\n" == err
    table = [line.split() for line in out[: out.index("\n\n")].splitlines()[1:]]
    assert [
        ["unit", "failed", "5", "2", "1", "2", "0"],
        ["logs", "failed", "1", "0", "1", "0", "0"],
    ] == table
    assert "\nfailed: unit > node1 > result > disks > closes\n    is open\n" in out
    assert "\nfailed: logs > worker_error: no disk\n" in out

    code, out, err = home.run("results", *local(aggregator), "--node", "node2", "-o", "json")
    (unit,) = json.loads(out)["plugins"]
    assert (3, True) == (code, json.loads(out)["partial"])
    assert ("passed", {"passed": 1, "skipped": 1}, []) == (
        unit["status"],
        unit["counts"],
        unit["tests"],
    )
    code, _, err = home.run("results", *local(aggregator), "--mode", "detailed")
    assert "tests that passed are listed when the run is over" in err
    assert 4 == home.run("results", *local(aggregator), "--mode", "dump")[0]
    assert 4 == home.run("results", *local(aggregator), "--plugin", "host-facts")[0]


def test_a_plugin_that_goes_on_has_not_passed(home: Home, aggregator: Aggregator) -> None:
    send(aggregator, "host-facts", "by-node/node1/host-facts", b"data")
    code, out, _ = home.run("results", *local(aggregator))
    assert (3, ["host-facts", "running"]) == (code, out.splitlines()[1].split()[:2])
    _, out, _ = home.run("results", *local(aggregator), "-o", "junit")
    assert '<testcase classname="partial" name="the run is not over">\n      <skipped/>' in out


def test_results_without_a_report_as_junit(home: Home, aggregator: Aggregator) -> None:
    """The same test cases as when the run is over: an adapter's result, and an error."""
    said = json.dumps({"status": "failure", "reason": "NoQuota", "message": "none left"}).encode()
    kind = {"Result-Format": ADAPTER_RESULT, "Content-Type": "application/json"}
    send(aggregator, "host-facts", "by-node/node1/host-facts", said, **kind)
    told = json.dumps({"error": "no disk", "cause": "worker_error"}).encode()
    send(aggregator, "logs", "global/logs", told, **{"Result-Outcome": "error"})
    _, out, _ = home.run("results", *local(aggregator), "-o", "junit")
    cases = {
        (case.get("classname"), case.get("name")): (
            case.find("properties/property").get("value"),
            case.find("failure").get("message"),
        )
        for case in ElementTree.fromstring(out).iter("testcase")
        if case.get("classname") != "partial"
    }

    assert {
        ("host-facts", "host-facts/node1"): ("NoQuota", "NoQuota: none left"),
        ("logs", "logs"): ("worker_error: no disk", "worker_error: no disk"),
    } == cases


@pytest.mark.parametrize("say", [Say(503, "try again"), Say(409, "no"), Say(200, "garbage")])
def test_a_report_that_cannot_be_read_is_no_pass(home: Home, say: Say) -> None:
    said = {"result_status": "failed", "result_counts": {"passed": 3, "failed": 1}}
    document = run_status("running", entry("e2e", "", "complete") | said, run="nightly")
    with Scripted(status=Say(body=document)) as server:
        server.answer("/results/e2e/global/report", say)
        code, out, err = home.run("results", "--url", server.url)

    assert (4, "") == (code, out)
    assert f"answered {say.status} for the report of e2e/global" in err


def test_the_facts_of_nodes_that_have_sent_them(home: Home, aggregator: Aggregator) -> None:
    """Whatever others have sent, also what is compressed and no archive."""
    body = archive(facts=facts("node1"), other=b"{}")
    send(aggregator, "host-facts", "by-node/node1/host-facts", body, **GZIP)
    named = {"Content-Disposition": 'attachment; filename="log.gz"'}
    send(aggregator, "logs", "global/logs", gzip.compress(b"a line"), **GZIP, **named)
    code, out, err = home.run("facts", *local(aggregator))

    assert (3, "status-ctl: partial: 2 of 6 results have arrived, the run is running\n") == (
        code,
        err,
    )
    assert "node1  Debian 12" in out
    _, out, _ = home.run("facts", *local(aggregator), "-o", "json")
    assert (True, ["node1"]) == (
        (found := json.loads(out))["partial"],
        [each["node"] for each in found["nodes"]],
    )


@pytest.mark.parametrize(
    ("second", "why"),
    [
        (Say(410, "the result is in the tarball: see /results"), "answered 410 for the result of"),
        (Say(503, "the results cannot be read"), "answered 503 for the result of"),
        (Say(200, b"x" * 300, GZIP, length=1000, close=True), "was cut off"),
    ],
    ids=["packed meanwhile", "not readable", "cut off"],
)
def test_facts_that_cannot_be_read_are_not_missing(home: Home, second: Say, why: str) -> None:
    done = [entry("host-facts", node, "complete") for node in ("node1", "node2")]
    with Scripted(status=Say(body=run_status("running", *done, run="nightly"))) as server:
        server.answer("/results/host-facts/node1", Say(200, archive(facts=facts("node1")), GZIP))
        server.answer("/results/host-facts/node2", second)
        code, out, err = home.run("facts", "--url", server.url)

    assert (4, "") == (code, out)
    assert why in err


def test_a_plugin_without_facts_is_not_asked_for_all_its_results(home: Home) -> None:
    done = [entry("unit", f"node{at}", "complete") for at in range(9)]
    with Scripted(status=Say(body=run_status("running", *done, run="nightly"))) as server:
        for each in done:
            server.answer(f"/results/unit/{each['node']}", Say(200, b"<xml/>"))
        assert 4 == home.run("facts", "--url", server.url)[0]
        asked = [each for each in server.requests if "/results/" in str(each)]

    assert 3 == len(asked)
