"""`status-ctl wait`, from the outside: until when, with what exit code, and what is seen."""

import gzip
import itertools
import json

import pytest

from tests.blackbox.ctl.scripted import Home, Scripted, entry, interrupt, run_status
from tests.http_server import Connection, HttpServer, Request
from tests.scripted_server import Say

RUNNING = run_status("running", entry("e2e"), entry("sysd", "node1"))
EARLY = run_status("failed", entry("e2e"), entry("sysd", "node1", "failed"))
READING = run_status("running", entry("e2e", status="complete"), entry("sysd", "node1"))
PACKING = run_status("post-processing", entry("e2e", status="complete", result_status="passed"))
PASSED = run_status("complete", entry("e2e", status="complete"), final=True)
LOST = run_status(
    "failed", entry("e2e", status="complete"), entry("sysd", "node1", "timed_out"), final=True
)
REJECTED = run_status(
    "complete",
    entry("e2e", status="complete", result_status="passed"),
    entry("sysd", "node1", "complete", result_status="failed"),
    result_status="failed",
    final=True,
)
PART = run_status(
    "running",
    entry("e2e"),
    entry("sysd", "node1", "complete", result_status="failed"),
    result_status="failed",
)
UNKNOWN = run_status(
    "complete", entry("e2e", status="complete", result_status="unknown"), final=True
)
NO_ENTRIES = run_status("complete", final=True)
BEFORE_PLUGINS = run_status("running")


def replies(*documents: dict) -> list[Say]:
    return [
        Say(body=document, headers={"ETag": f'"{number}"'})
        for number, document in enumerate(documents)
    ]


class Dripping(HttpServer):
    """Its answers never end, and never pause for long."""

    def __init__(self, head: bytes, drop: bytes) -> None:
        super().__init__()
        self._head, self._drop = head, drop
        self.listen()

    def exchange(self, connection: Connection, request: Request) -> None:
        connection.send(self._head)
        while not connection.left(0.05):
            connection.send(self._drop)


class TestEnds:
    """What it waits for."""

    @pytest.mark.parametrize(
        ("words", "seen", "code", "asked"),
        [
            ([], (RUNNING, PACKING, PASSED), 0, 3),
            ([], (EARLY, LOST), 1, 2),
            ([], (EARLY, PASSED), 0, 2),
            ([], (NO_ENTRIES,), 1, 1),
            (["--fail-fast"], (BEFORE_PLUGINS, PASSED), 0, 2),
            (["--for", "end"], (PACKING, PASSED), 0, 2),
            (["--fail-fast"], (RUNNING, EARLY), 1, 2),
            (["--fail-fast"], (RUNNING, PASSED), 0, 2),
            ([], ({"status": "complete", "plugins": []},), 1, 1),
            ([], ({"status": "failed", "plugins": []},), 1, 1),
            (["--for", "e2e"], (RUNNING, READING, PACKING), 0, 3),
            (["--for", "e2e", "--delivery-only"], (RUNNING, READING), 0, 2),
            (["--for", "e2e"], (LOST,), 0, 1),
            (["--for", "sysd"], (EARLY,), 1, 1),
            (["--for", "sysd/node1"], (LOST,), 1, 1),
            (["--for", "e2e/global"], (PACKING,), 0, 1),
            (["--for", "e2e", "--fail-fast"], (EARLY, PACKING), 0, 2),
            ([], (PART, REJECTED), 1, 2),
            (["--delivery-only"], (PART, REJECTED), 0, 2),
            (["--fail-fast"], (PART,), 1, 1),
            (["--fail-fast", "--delivery-only"], (PART, REJECTED), 0, 2),
            (["--for", "sysd"], (PART,), 1, 1),
            (["--for", "sysd", "--delivery-only"], (PART,), 0, 1),
            (["--for", "e2e"], (PART, REJECTED), 0, 2),
            ([], (UNKNOWN,), 1, 1),
        ],
    )
    def test_the_end(self, home: Home, words, seen, code: int, asked: int) -> None:
        """The exit code, after no more questions than needed; the last state is shown."""
        with Scripted(status=replies(*seen)) as server:
            found, out, err = home.run("wait", "--url", server.url, "-o", "json", *words)

        assert (code, "") == (found, err)
        assert seen[-1] == json.loads(out)
        assert asked == len(server.requests)

    @pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name"])
    def test_the_form_is_that_of_status(self, home: Home, form: str) -> None:
        """The same words at the end."""
        with Scripted(status=Say(body=LOST)) as server:
            code, out, err = home.run("wait", "--url", server.url, "-o", form)
            same = home.run("status", "--url", server.url, "-o", form)

        assert (1, "") == (code, err)
        assert (code, out, err) == same

    def test_an_entry_that_the_run_has_not(self, home: Home) -> None:
        """4 at once: it would be waited for in vain."""
        with Scripted(status=Say(body=RUNNING)) as server:
            code, out, err = home.run("wait", "--url", server.url, "--for", "typo")

        assert (4, "") == (code, out)
        assert "the run has no entry 'typo'" in err

    @pytest.mark.parametrize(
        ("words", "code", "paths"),
        [
            ([], 0, ["/status?summary=true", "/status"]),
            (["--timeout", "3s"], 3, ["/status?summary=true", "/status"]),
            (["--for", "e2e"], 0, ["/status"]),
        ],
        ids=["the end", "the time is over", "a part of the run"],
    )
    def test_entries_are_read_when_they_are_needed(self, home: Home, words, code, paths) -> None:
        """The end is awaited with summaries; what is shown of it is all entries."""
        entries = [entry("e2e", f"node{number}", "complete") for number in range(20_000)]
        whole = run_status("complete", *entries, final=True)
        end = {name: value for name, value in whole.items() if name != "plugins"}
        numbers = dict.fromkeys(("failed", "unknown"), 0)
        end["counts"] = {"entries": 20_000, "decided": 20_000, "received": 20_000, **numbers}
        begun = end | {"status": "running", "final": False}
        packed = gzip.compress(json.dumps(whole).encode())
        with Scripted(status=Say(body=packed, headers={"Content-Encoding": "gzip"})) as server:
            later = [] if code else [Say(body=end)]
            server.answer("/status?summary=true", Say(body=begun), *later)
            found, out, _ = home.run("wait", "--url", server.url, "-o", "name", *words)

        assert (code, 20_000) == (found, len(out.splitlines()))
        asked = (request.target for request in server.requests)
        assert paths == [path for path, _ in itertools.groupby(asked)]
        assert {"gzip"} == {each.headers["accept-encoding"] for each in server.requests}

    @pytest.mark.parametrize("words", [["--timeout", "1s"], ["--timeout", "0"]])
    def test_the_time_is_over(self, home: Home, words: list[str]) -> None:
        """3, with the state it had; one look at least."""
        with Scripted(status=Say(body=RUNNING)) as server:
            code, out, err = home.run("wait", "--url", server.url, "-o", "name", *words)

        assert (3, "e2e/global\nsysd/node1\n") == (code, out)
        # The last look has little time: on a slow machine that is said before.
        assert err.endswith("status-ctl: timed out: the run is not over\n")

    def test_a_run_that_is_never_seen(self, home: Home) -> None:
        """3, and what was in the way."""
        code, out, err = home.run("wait", "--url", "http://127.0.0.1:1", "--timeout", "1s")

        assert (3, "") == (code, out)
        assert "Connection refused; waiting" in err
        assert "timed out: http://127.0.0.1:1: Connection refused" in err

    @pytest.mark.parametrize(
        ("head", "drop"),
        [
            (b"HTTP/1.1 200 OK\r\nServer: ", b"x"),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b" "),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
        ],
        ids=["head", "continue", "body", "body with a length", "chunk"],
    )
    def test_an_answer_that_comes_drop_by_drop(self, home: Home, head: bytes, drop: bytes) -> None:
        """3: no part of an answer makes its time longer."""
        with Dripping(head, drop) as server:
            url = f"http://127.0.0.1:{server.port}"
            code, _, err = home.run("wait", "--url", url, "--timeout", "1s")

        assert 3 == code
        assert "timed out; waiting" in err


class TestTrouble:
    """What it does not give up for."""

    def test_an_aggregator_that_restarts(self, home: Home) -> None:
        """Away, not a status, and back: told once each, and waited for."""
        seen = [Say(503), Say(body=b"<html>"), Say(404), *replies(PASSED)]
        with Scripted(status=seen) as server:
            code, out, err = home.run("wait", "--url", server.url, "-o", "name")

        assert (0, "e2e/global\n") == (code, out)
        assert ["answered 503; waiting", "is not a run status; waiting", "status; waiting"] == [
            line[-len(end) :]
            for line, end in zip(
                err.splitlines(),
                ["answered 503; waiting", "is not a run status; waiting", "status; waiting"],
                strict=True,
            )
        ]

    def test_forbidden_ends_it(self, home: Home) -> None:
        """4: rights do not come by themselves."""
        with Scripted(status=Say(403, b"for others")) as server:
            code, out, err = home.run("wait", "--url", server.url)

        assert (4, "") == (code, out)
        assert "for others (forbidden)" in err

    @pytest.mark.parametrize(
        "wrong", [["--timeout", "soon"], ["--timeout", "-5"], ["--for"], ["--fail"]], ids=" ".join
    )
    def test_usage(self, home: Home, wrong: list[str]) -> None:
        """2."""
        code, out, err = home.run("wait", *wrong)

        assert (2, "") == (code, out)
        assert "error: " in err


class TestTerminal:
    """What a person sees."""

    def test_a_bar_until_the_end(self, home: Home) -> None:
        """One line that is taken away before the result."""
        with Scripted(status=replies(RUNNING, PASSED)) as server:
            code, out = home.terminal("wait", "--url", server.url, "--no-color")

        assert 0 == code
        assert "[........................] running: 0 of 2 done (0%)" in out
        assert "\r\x1b[K\r\x1b[K" in out or "\r\x1b[Kcomplete: 1 of 1 done" in out
        assert out.rstrip().endswith("e2e     -     complete  -       -         -     -")

    def test_ctrl_c(self, home: Home) -> None:
        """130 at once, and the bar is gone."""
        pressed = []

        def seen(text: str, pid: int) -> None:
            if "running: 0 of 2" in text and not pressed:
                pressed.append(pid)
                interrupt(pid)

        with Scripted(status=Say(body=RUNNING)) as server:
            code, out = home.terminal("wait", "--url", server.url, seen=seen)

        assert 130 == code
        assert out.endswith("\r\x1b[K")

    def test_the_phases_of_the_end(self, home: Home) -> None:
        """In a pipe each is told once; on a terminal it stands beside the bar."""
        packing = {**PACKING, "launcher": {"step": "removing"}}
        removing = {**PASSED, "launcher": {"step": "removing"}}
        with Scripted(status=[Say(body=each) for each in (packing, packing, removing)]) as server:
            code, out, err = home.run("wait", "--url", server.url)
        with Scripted(status=[Say(body=packing), Say(body=PASSED)]) as server:
            _, shown = home.terminal("wait", "--url", server.url, "--no-color")

        assert 0 == code
        assert "status-ctl: finishing\nstatus-ctl: removing the plugins\n" == err
        assert "final, removing the plugins, run" in out
        assert "1 of 1 done (100%), finishing, run" in shown
        assert "status-ctl: finishing" not in shown
