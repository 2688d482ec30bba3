"""`status-ctl watch`: live on a terminal, a line for every change elsewhere."""

import json
from typing import Any

import yaml

from tests.blackbox.ctl.scripted import Home, Scripted, entry, interrupt, run_status
from tests.scripted_server import Say

BEGUN = run_status("running", entry("e2e", progress={"total": 4, "completed": 1, "msg": "one"}))
QUIET = run_status(
    "running",
    entry("e2e", progress={"total": 4, "completed": 1, "msg": "one"}, **{"last-heartbeat": 9}),
    revision=43,
)
ONWARD = run_status("running", entry("e2e", progress={"total": 4, "completed": 3, "msg": "three"}))
DONE = run_status("complete", entry("e2e", status="complete"), final=True)
LOST = run_status("failed", entry("e2e", status="failed"), final=True)


def launcher(step: str, **more: Any) -> dict:
    return {"step": step, "degraded": None, "stays": [], **more}


def upload(state: str, error: str | None = None) -> dict:
    return {"host": "store", "state": state, "error": error, "at": "2026-01-01T00:00:00Z"}


def told(out: str) -> list[str]:
    """The lines without their times."""
    return [line.partition("Z  ")[2] for line in out.splitlines()]


def server(*documents: dict) -> Scripted:
    return Scripted(status=[Say(body=document) for document in documents])


class TestPipe:
    """Plain lines."""

    def test_a_line_for_every_change(self, home: Home) -> None:
        """The age of a heartbeat is none; the summary follows."""
        with server(BEGUN, QUIET, ONWARD, DONE) as asked:
            code, out, err = home.run("watch", "--url", asked.url)

        assert (0, "") == (code, err)
        assert [
            "e2e/global  running  1/4  one",
            "running: 0 of 1 done (0%), run 5e1f0c6a",
            "e2e/global  running  3/4  three",
            "running: 0 of 1 done (0%), run 5e1f0c6a",
            "e2e/global  complete",
            "complete: 1 of 1 done (100%), final, run 5e1f0c6a",
        ] == told(out)

    def test_a_worker_that_falls_silent(self, home: Home) -> None:
        """Its line says what is new."""
        silent = run_status("running", entry("e2e", stale=True), revision=43)
        with server(run_status("running", entry("e2e")), silent, DONE) as asked:
            _, out, _ = home.run("watch", "--url", asked.url)

        told_of_it = [line for line in told(out) if line.startswith("e2e/global")]
        assert ["e2e/global  running", "e2e/global  running stale"] == told_of_it[:2]

    def test_rows_for_many_are_said_once(self, home: Home) -> None:
        """By the annotations of a large run several rows have one key."""
        alike = [entry("disk", "*"), entry("disk", "*", status="complete")]
        now, end = run_status("running", *alike), run_status("complete", *alike, final=True)
        with server(now, {**now, "revision": 43}, end) as asked:
            code, out, err = home.run("watch", "--url", asked.url)

        assert (0, "") == (code, err)
        assert [
            "disk/*  running",
            "disk/*  complete",
            "running: 1 of 2 done (50%), run 5e1f0c6a",
            "complete: 1 of 2 done (50%), final, run 5e1f0c6a",
        ] == told(out)

    def test_what_is_said_of_the_whole_run(self, home: Home) -> None:
        """Who is skipped, what holds the launcher up, what stays, the upload: once per change."""
        skips = [{"name": "e2e", "node": "win1", "reason": "not Linux"}]
        begun = {**BEGUN, "skipped": skips, "upload": upload("waiting")}
        since = {"since": "2026-01-01T00:00:05.1Z", "reason": "watching Jobs: 403"}
        held_up = {**begun, "launcher": launcher("watching", degraded=since)}
        stays = [{"object": "Job r1", "reason": "it is being deleted"}]
        ended = {**DONE, "skipped": skips, "launcher": launcher("done", stays=stays)}
        packing = {**ended, "status": "post-processing", "final": False}
        with server(
            {**begun, "launcher": launcher("watching")},
            held_up,
            held_up,
            {**begun, "launcher": launcher("watching"), "error": "disk full"},
            {**packing, "upload": upload("waiting")},
            {**packing, "upload": upload("uploading")},
            {**packing, "upload": upload("uploading", "503")},
            {**ended, "upload": upload("uploaded")},
        ) as asked:
            code, out, err = home.run("watch", "--url", asked.url)

        running = "running: 0 of 1 done (0%), run 5e1f0c6a"
        assert (0, "") == (code, err)
        assert [
            "e2e/global  running  1/4  one",
            "the results will be uploaded to store",
            "plugin e2e skips node win1: not Linux",
            running,
            "the launcher has been blocked since 2026-01-01T00:00:05Z: watching Jobs: 403",
            running,
            "the aggregator itself failed: disk full",
            "the launcher is no longer blocked",
            running,
            "e2e/global  complete",
            "Job r1 could not be removed: it is being deleted",
            "post-processing: 1 of 1 done (100%), finishing, run 5e1f0c6a",
            "uploading the results to store",
            "post-processing: 1 of 1 done (100%), uploading the results, run 5e1f0c6a",
            "uploading the results to store; it is tried again: 503",
            "post-processing: 1 of 1 done (100%), uploading the results, run 5e1f0c6a",
            "the results were uploaded to store",
            "complete: 1 of 1 done (100%), final, run 5e1f0c6a",
        ] == told(out)

    def test_a_document_without_all_of_it(self, home: Home) -> None:
        """As the annotations give it: what it leaves out is not told again afterwards."""
        whole = {**BEGUN, "skipped": [{"name": "e2e", "node": "win1", "reason": "not Linux"}]}
        with server(whole, {**BEGUN, "partial": True}, whole, DONE) as asked:
            _, out, _ = home.run("watch", "--url", asked.url)

        assert 1 == [line.endswith("skips node win1: not Linux") for line in told(out)].count(True)

    def test_a_check_that_failed(self, home: Home) -> None:
        """Its line says why, and so does the exit code."""
        why = {"result_status": "failed", "reason": "DiskSlow", "message": "80 ms"}
        failed = run_status("complete", entry("e2e", status="complete", **why), final=True)
        with server(BEGUN, failed) as asked:
            code, out, _ = home.run("watch", "--url", asked.url)

        assert 1 == code
        assert [
            "e2e/global  complete  failed  DiskSlow: 80 ms",
            "complete, 1 of 1 failed: 1 of 1 done (100%), final, run 5e1f0c6a",
        ] == told(out)[2:]

    def test_a_document_for_every_change(self, home: Home) -> None:
        """JSON has one a line, YAML one after `---`."""
        with server(BEGUN, QUIET, DONE) as asked:
            _, out, _ = home.run("watch", "--url", asked.url, "-o", "json")
        assert [BEGUN, DONE] == [json.loads(line) for line in out.splitlines()]
        with server(BEGUN, DONE) as asked:
            _, out, _ = home.run("watch", "--url", asked.url, "-o", "yaml")
        assert [BEGUN, DONE] == list(yaml.safe_load_all(out))

    def test_a_key_for_every_change(self, home: Home) -> None:
        """As a script wants it."""
        with server(BEGUN, QUIET, ONWARD, LOST) as asked:
            found = home.run("watch", "--url", asked.url, "-o", "name")

        assert (1, "e2e/global\n" * 3, "") == found

    def test_a_remark_on_the_status(self, home: Home) -> None:
        """Told once, and nobody waits for it."""
        with server({**BEGUN, "api_version": "v2"}, {**DONE, "api_version": "v2"}) as asked:
            code, _, err = home.run("watch", "--url", asked.url)

        assert 0 == code
        assert ["status version v2, but this command supports v1"] == [
            line.partition(": ")[2].partition(": ")[2] for line in err.splitlines()
        ]

    def test_trouble_is_told_once(self, home: Home) -> None:
        """And waited for."""
        with Scripted(status=[Say(503), Say(503), Say(body=DONE)]) as asked:
            code, _, err = home.run("watch", "--url", asked.url)

        assert (0, f"status-ctl: {asked.url}: answered 503; waiting\n") == (code, err)


class TestTerminal:
    """Drawn in place."""

    def test_the_table_is_drawn_again_and_stays_at_the_end(self, home: Home) -> None:
        """Nothing is left of the former one."""
        with server(BEGUN, ONWARD, DONE) as asked:
            code, out = home.terminal("watch", "--url", asked.url, "--no-color")

        first, *drawn = out.split("\x1b[H")[1:]
        assert 0 == code
        assert first.startswith("\x1b[2J")
        assert ["1/4", "3/4"] == [
            found for found in ("1/4", "3/4") if any(found in one for one in (first, *drawn))
        ]
        assert drawn[-1].startswith("\x1b[Jcomplete: 1 of 1 done (100%), final")

    def test_more_entries_than_lines(self, home: Home) -> None:
        """Those that need attention are seen; how many are left out is said."""
        entries = [entry("e2e", f"n{at}", "complete") for at in range(500)]
        entries[400] = entry("e2e", "bad", "failed")
        document = run_status("failed", *entries, final=True)
        going = {**document, "final": False}
        with server(going, document) as asked:
            code, out = home.terminal("watch", "--url", asked.url, "--no-color", rows=12)

        drawn = out.split("\x1b[H")[1]
        lines = drawn.splitlines()
        assert 1 == code
        assert 12 >= len(lines)
        assert "failed, still running, 1 of 500 failed: 500 of 500 done (100%)" in lines[0]
        assert lines[3].startswith("e2e     bad   failed")
        assert "... and 493 more" in drawn
        assert "n499" in out.split("\x1b[H")[-1]

    def test_a_narrow_terminal(self, home: Home) -> None:
        """No line goes on in the next one: what is drawn would move up."""
        with server(BEGUN, DONE) as asked:
            _, out = home.terminal("watch", "--url", asked.url, "--no-color", columns=30)

        drawn = out.split("\x1b[H")[1].replace("\x1b[2J", "").replace("\x1b[K", "")
        assert 30 >= max(map(len, drawn.splitlines()))
        assert "running: 0 of 1 done (0%), ru…" == drawn.splitlines()[0]

    def test_a_dumb_terminal(self, home: Home) -> None:
        """Plain lines, as in a pipe: it cannot be written over."""
        with server(BEGUN, DONE) as asked:
            _, out = home.terminal("watch", "--url", asked.url, TERM="dumb")

        assert "\x1b" not in out
        assert "e2e/global  running  1/4  one" in out

    def test_trouble_stands_above_the_last_state(self, home: Home) -> None:
        """The table does not vanish with the aggregator."""
        with Scripted(status=[Say(body=BEGUN), Say(503), Say(body=DONE)]) as asked:
            _, out = home.terminal("watch", "--url", asked.url, "--no-color")

        drawn = next(one for one in out.split("\x1b[H") if "answered 503; waiting" in one)
        assert "1/4" in drawn

    def test_ctrl_c(self, home: Home) -> None:
        """130 at once."""
        pressed = []

        def seen(text: str, pid: int) -> None:
            if "1/4" in text and not pressed:
                pressed.append(pid)
                interrupt(pid)

        with server(BEGUN) as asked:
            code, _ = home.terminal("watch", "--url", asked.url, seen=seen)

        assert 130 == code
