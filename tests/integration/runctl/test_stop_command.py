"""`status-ctl stop`, with a real aggregator behind a port-forward, and `status-ctl open`."""

from __future__ import annotations

import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.served import Aggregator, plan
from tests.blackbox.ctl.cluster import add_aggregator
from tests.blackbox.ctl.scripted import BOUND, Home, Scripted, entry, interrupt, run_status
from tests.fakekube import FakeKube, Rule
from tests.integration.runctl.test_run_in_the_cluster import tls  # noqa: F401  # a fixture
from tests.scripted_server import Cut, Say

NODES = ("node1", "node2")
FORWARD = Rule(("get",), ("pods/portforward",))
RUNNING = run_status("running", entry("e2e"), run="nightly")


@pytest.fixture
def at_home(at_home: Home, fake: FakeKube) -> Home:
    """A person who may use port-forwards."""
    fake.tokens.roles["person"] = (*fake.tokens.roles["person"], FORWARD)
    return at_home


@pytest.fixture
def aggregator(tmp_path: Path, fake: FakeKube) -> Iterator[Aggregator]:
    """That of the run nightly."""
    with Aggregator(tmp_path / "run", plan("sysd", NODES)) as running:
        add_aggregator(fake, launched="nightly", listens=running.status_port)
        yield running


def test_what_came_is_packed(at_home: Home, aggregator: Aggregator) -> None:
    """The run has not passed, and says of each result why; then there is nothing to stop."""
    aggregator.worker("sysd").put("by-node/node1/sysd", b"data")
    code, out, err = at_home.run("stop", "run/nightly")
    told = "status-ctl: run nightly stopped, entries without a result: 1\n"
    assert (0, "", told) == (code, out, err)

    code, out, _ = at_home.run("wait", "run/nightly")
    assert 1 == code
    assert "Stopped: stopped on request before its result arrived" in out
    assert 0 == at_home.run("retrieve", "nightly")[0]
    assert (0, "status-ctl: run nightly is already over\n") == at_home.run("stop", "nightly")[::2]


@pytest.mark.parametrize("plugin", ["disk/x", ""])
def test_a_plugin_that_the_run_does_not_have(
    at_home: Home, aggregator: Aggregator, plugin: str
) -> None:
    """No name is what a script gives whose variable is empty."""
    code, _, err = at_home.run("stop", "nightly", "--plugin", plugin)
    assert (4, "status-ctl: not stopped: the run has no such plugin\n") == (code, err)
    assert "running" == aggregator.status()["status"]


def test_every_result_of_a_plugin_is_in(at_home: Home, fake: FakeKube) -> None:
    """Nothing is left to do, as for who stops it twice."""
    with Scripted(status=Say(body=RUNNING)) as server:
        server.answer("/stop?plugin=e2e", Say(body={"stopped": 0}))
        add_aggregator(fake, launched="nightly", listens=server.port)
        code, _, err = at_home.run("stop", "nightly", "--plugin", "e2e")

    assert 0 == code
    assert "plugin e2e of run nightly: nothing to stop" in err
    assert "Jobs that `cleanup` keeps remain until `status-ctl delete`" in err


def test_without_the_right_to_reach_it(at_home: Home, fake: FakeKube) -> None:
    fake.tokens.roles["person"] = (Rule(("get", "list"), ("pods",)),)
    with Scripted(status=Say(body=RUNNING)) as server:
        add_aggregator(fake, "running", launched="nightly", listens=server.port)
        codes = {}
        for command in ("stop", "open"):
            code, _, err = at_home.run(command, "nightly")
            codes[command] = code, "pods/portforward: create, get" in err

    assert {"stop": (4, True), "open": (4, True)} == codes


def test_the_aggregator_ends_before_it_answers(at_home: Home, fake: FakeKube) -> None:
    """Nobody knows whether it has stopped anything; to repeat it does no harm."""
    with Scripted(status=Say(body=RUNNING), stop=Cut()) as server:
        add_aggregator(fake, launched="nightly", listens=server.port)
        code, _, err = at_home.run("stop", "nightly")

    assert 4 == code
    assert "it may have been stopped; repeat the command" in err


class TestOpen:
    """`status-ctl open`."""

    @pytest.mark.parametrize("secure", [False, True], ids=["plain", "TLS"])
    def test_the_page_is_at_the_url(
        self,
        at_home: Home,
        fake: FakeKube,
        tls: ssl.SSLContext,  # noqa: F811
        secure: bool,
    ) -> None:
        """As often as it is asked for; without a terminal no browser is opened."""
        document = run_status("running", entry("e2e", message="x" * 300_000), run="nightly")
        with Scripted(status=Say(body=document), tls=tls if secure else None) as server:
            add_aggregator(fake, launched="nightly", listens=server.port, tls=secure)
            trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            with at_home.started("open", "nightly", BROWSER="false") as process:
                assert process.stdout is not None
                url = process.stdout.readline().decode().strip()
                bodies = set()
                for _ in range(2):
                    with urllib.request.urlopen(
                        f"{url}status", timeout=BOUND, context=trusting
                    ) as answer:
                        bodies.add(answer.read())
                interrupt(process.pid)
                assert 130 == process.wait(BOUND)

        assert url.startswith(f"{'https' if secure else 'http'}://127.0.0.1:")
        (body,) = bodies
        assert len(body) > 300_000

    def test_the_browser_is_opened_on_a_terminal(self, at_home: Home, fake: FakeKube) -> None:
        def seen(text: str, pid: int) -> None:
            if "browser has http://127.0.0.1:" in text:
                interrupt(pid)

        with Scripted(status=Say(body=RUNNING)) as server:
            add_aggregator(fake, launched="nightly", listens=server.port)
            code, out = at_home.terminal(
                "open", "nightly", seen=seen, BROWSER="echo browser has %s"
            )

        assert 130 == code
        assert "press Ctrl-C to close the port" in out
