"""A run from beginning to end: the aggregator, a worker, and the commands that follow it."""

import json
import re
from pathlib import Path

from tests.aggregators.served import Aggregator, plan
from tests.blackbox.ctl.scripted import BOUND, Home

NODES = ("node1", "node2")
FLAGS = ("--hold-seconds", "0", "--status-scope", "local")


def test_a_run_from_beginning_to_end(tmp_path: Path) -> None:
    """status, wait, watch, retrieve: each from the same listener."""
    home = Home(tmp_path)
    with Aggregator(tmp_path / "run", plan("sysd", NODES), *FLAGS) as aggregator:
        follow(home, aggregator)


def follow(home: Home, aggregator: Aggregator) -> None:
    where = "--url", f"http://127.0.0.1:{aggregator.status_port}"
    worker = aggregator.worker("sysd")
    worker.post("by-node/node1/sysd", total=4, completed=1, msg="begun")

    code, out, err = home.run("status", *where)
    assert (0, "") == (code, err)
    assert "running: 0 of 2 done (0%)" in out
    assert re.search(r"sysd +node1 +running +- +1/4 .* begun", out)
    code, _, err = home.run("retrieve", *where)
    assert 4 == code
    assert "there are no results yet" in err

    with (
        home.started("wait", *where, "-o", "json") as waiting,
        home.started("watch", *where) as watching,
    ):
        for node in NODES:
            worker.put(f"by-node/{node}/sysd", b"data")
        out_wait, _ = waiting.communicate(timeout=BOUND)
        out_watch, _ = watching.communicate(timeout=BOUND)
    ended = json.loads(out_wait)
    assert (0, 0) == (waiting.returncode, watching.returncode)
    assert ("complete", True, 1.0) == (ended["status"], ended["final"], ended["percent_complete"])
    assert b"complete: 2 of 2 done (100%), final" in out_watch.splitlines()[-1]

    assert ended["retrieved_at"] is None
    code, out, err = home.run("retrieve", *where, "--extract", "results")
    assert (0, "results\n", "") == (code, out, err)
    assert aggregator.status()["retrieved_at"] is not None
    found = sorted((home.folder / "results").rglob("result"))
    assert [b"data", b"data"] == [file.read_bytes() for file in found]
