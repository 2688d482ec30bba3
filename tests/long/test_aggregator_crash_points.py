"""The aggregator's process is killed between every two steps that matter, then asked again.

Each point twenty times; what a worker does after a broken connection is repeat its request.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.aggregators import trapped
from tests.aggregators.served import plan
from tests.aggregators.worker import Reply, digest_of
from tests.archives.tars import OURS, file, tgz

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

TIMES = 20
GONE = (OSError, http.client.HTTPException)
ARCHIVE = tgz(file(b"a.txt", b"one"), file(b"d/b.txt", b"two"))
FILES = {"a.txt": b"one", "d/b.txt": b"two"}
GZIP = {"Content_Type": "application/gzip"}


class Trapped(trapped.Trapped):
    """An aggregator that can be sent to a step where it dies."""

    def arm(self, step: str) -> None:
        """Let it be killed at that step."""
        self.trap.write_text(f"kill {step}")

    def died(self) -> None:
        """Wait until it has, and start the next one, which is safe."""
        assert -signal.SIGKILL == self.wait_end()
        self.trap.write_text("")
        self.start()

    def dies(self, step: str, request: Callable[[], Reply]) -> None:
        """Make a request on the way of which it is killed, and start it again."""
        self.arm(step)
        with pytest.raises(GONE):
            request()
        self.died()

    def unfinished(self) -> list[str]:
        """Return what lies about of works in progress."""
        return [*os.listdir(self.state / "staging"), *os.listdir(self.output / ".staging")]

    def packed(self) -> list[str]:
        """Return what lies about of results that are in the tarball."""
        return os.listdir(self.state / "blobs")

    def blobs(self) -> set[str]:
        """Return the digests of all blobs."""
        return {name.partition("-")[0] for name in os.listdir(self.state / "blobs")}


@contextmanager
def running(folder: Path, document: dict[str, Any], *flags: str) -> Iterator[Trapped]:
    """An aggregator of that plan, started and not trapped yet."""
    folder.mkdir()
    trap = folder / "trap"
    with Trapped(folder, document, *flags, trap=trap) as aggregator:
        yield aggregator


def nodes(count: int = TIMES) -> list[str]:
    """Return a node for each time, and one that keeps the run open."""
    return [f"n{number}" for number in range(count)] + ["open"]


class Point(NamedTuple):
    """Where it dies, and whether the result is held afterwards."""

    case: str
    step: str
    held: bool


POINTS = [
    Point("C1", "write", False),
    Point("C1", "sync", False),
    Point("C2", "rename", False),
    Point("C2", "sync directory", False),
    Point("C3", "record", False),
    Point("C3", "COMMIT", False),
    Point("C5", "committed", True),
]


@pytest.mark.parametrize("point", POINTS, ids=lambda p: f"{p.case}-{p.step.replace(' ', '-')}")
def test_killed_on_the_way_of_an_upload(tmp_path: Path, point: Point) -> None:
    """Before the row there is no trace, after it everything is there; the retry hears which."""
    with running(tmp_path / "run", plan("load", nodes())) as aggregator:
        worker, seen = aggregator.worker("load"), set()
        for number in range(TIMES):
            # Other bytes each time: blobs are told apart by their digests.
            body = tgz(file(b"a.txt", b"one"), file(b"d/b.txt", b"two"), file(b"n", b"%d" % number))
            digest, key = hashlib.sha256(body).hexdigest(), f"by-node/n{number}/load"
            aggregator.dies(point.step, lambda: worker.put(key, body, **GZIP))  # noqa: B023

            entry = aggregator.entry(f"load/n{number}")
            assert (
                ("complete", digest)
                if point.held
                else ("running", None)
                == (
                    entry["status"],
                    entry["digest"],
                )
            )
            assert [] == aggregator.unfinished()
            assert seen | ({digest} if point.held else set()) == aggregator.blobs()
            again = worker.put(key, body, **GZIP)
            assert (409 if point.held else 200, digest_of(body)) == (again.status, again.digest)
            assert FILES | {"n": b"%d" % number} == aggregator.members(f"load/n{number}")
            seen.add(digest)


LATE = [
    Point("C7", "record", False),
    Point("C7", "COMMIT", False),
    Point("C7", "committed", True),
]


@pytest.mark.parametrize("point", LATE, ids=lambda p: p.step)
def test_killed_on_the_way_of_a_late_result(tmp_path: Path, point: Point) -> None:
    """C7: the error is held or the result, whatever the moment."""
    document = plan("load", nodes()[:-1], timeout_seconds=1)
    document["plugins"].append({"name": "open"})
    with running(tmp_path / "run", document) as aggregator:
        worker = aggregator.worker("load")
        aggregator.wait_status(
            lambda found: TIMES == sum(e["status"] == "timed_out" for e in found["plugins"])
        )
        for number in range(TIMES):
            node, body = f"n{number}", b"%d" % number
            error = aggregator.result(f"load/{node}")
            aggregator.dies(point.step, lambda: worker.put(f"by-node/{node}/load", body))  # noqa: B023

            assert (body if point.held else error) == aggregator.result(f"load/{node}")
            again = worker.put(f"by-node/{node}/load", body)
            assert (409 if point.held else 200, digest_of(body)) == (again.status, again.digest)
            entry = aggregator.entry(f"load/{node}")
            assert ("complete", True) == (entry["status"], entry["late"])
            assert body == aggregator.result(f"load/{node}")


def test_killed_when_an_entry_is_given_up(tmp_path: Path) -> None:
    """C8: the error is in the row, and told by the next process."""
    # One group after the other, so that each start gives up the next one.
    groups = [{"name": f"p{n}", "order": n, "timeout_seconds": 1} for n in range(TIMES)]
    document = {"run": "groups", "plugins": [*groups, {"name": "open", "order": TIMES}]}
    folder = tmp_path / "run"
    folder.mkdir()
    with running(folder / "run", document) as aggregator:
        for number in range(TIMES):
            aggregator.arm("failure noted")
            aggregator.died()
            entry = aggregator.entry(f"p{number}/global")
            assert ("timed_out", "deadline") == (entry["status"], entry["error"]["cause"])
            error = json.loads(aggregator.result(f"p{number}/global"))
            assert entry["error"]["text"] == error["error"]


def test_killed_before_an_append_is_answered(tmp_path: Path) -> None:
    """C9: the worker repeats it under its id, and it counts once."""
    with running(tmp_path / "run", plan("load", [])) as aggregator:
        worker = aggregator.worker("load")
        for number in range(1, TIMES + 1):
            update = {"appendtotals": True, "appendcompleted": 3, "id": f"epoch/{number}"}
            request = lambda: worker.post("global/load", **update)  # noqa: B023, E731
            aggregator.dies("progress taken", request)
            assert 200 == request().status
            shown = aggregator.entry("load/global")["progress"]
            assert (3 * number, 3 * number) == (shown["completed"], shown["total"])


def test_killed_after_a_replacing_update_is_answered(tmp_path: Path) -> None:
    """C10: the last second may be lost, and the next update heals that."""
    with running(tmp_path / "run", plan("load", [])) as aggregator:
        worker = aggregator.worker("load")
        for number in range(1, TIMES + 1):
            assert 200 == worker.post("global/load", total=99, completed=2 * number).status
            aggregator.kill()
            aggregator.start()
            shown = aggregator.entry("load/global")["progress"]
            before = None if number == 1 else 2 * number - 1
            assert (shown and shown["completed"]) in (before, 2 * number)
            update = {"total": 99, "completed": 2 * number + 1, "appendtotals": False}
            assert 200 == worker.post("global/load", **update).status
            assert 2 * number + 1 == aggregator.entry("load/global")["progress"]["completed"]
            # Written before the next kill, as an append of nothing but a failure is.
            assert 200 == worker.post("global/load", appendfailing=["f"]).status


@pytest.mark.parametrize("step", ["failure noted", "after"])
def test_killed_in_the_retry_window(tmp_path: Path, step: str) -> None:
    """C11: the entry is not lost, the window goes on, and a good try ends it."""
    with running(tmp_path / "run", plan("load", nodes())) as aggregator:
        worker = aggregator.worker("load")
        for number in range(TIMES):
            key = f"by-node/n{number}/load"
            if step == "after":
                assert 500 == worker.put(key, b"no archive", **GZIP).status
                aggregator.kill()
                aggregator.start()
            else:
                aggregator.dies(step, lambda: worker.put(key, b"no archive", **GZIP))  # noqa: B023
            entry = aggregator.entry(f"load/n{number}")
            assert ("running", 1) == (entry["status"], entry["attempts"])
            assert entry["retry_until"] is not None
            assert 200 == worker.put(key, ARCHIVE, **GZIP).status
            entry = aggregator.entry(f"load/n{number}")
            assert ("complete", None) == (entry["status"], entry["retry_until"])


def test_killed_in_the_retry_window_wait_ends_all_the_same(tmp_path: Path) -> None:
    """C11: nobody tries again; the run ends, and says that the upload failed."""
    flags = ("--retry-window-seconds", "1", "--hold-seconds", "0")
    with running(tmp_path / "run", plan("load", []), *flags) as aggregator:
        assert 500 == aggregator.worker("load").put("global/load", b"x", **GZIP).status
        aggregator.kill()
        aggregator.start()
        done = aggregator.wait_status(lambda found: found["final"])

        (entry,) = done["plugins"]
        assert ("failed", "upload_failed") == (entry["status"], entry["error"]["cause"])


@pytest.mark.parametrize(
    "step",
    [
        "advance to post-processing",
        "advanced to post-processing",
        "package member",
        "package rename",
        "package sync directory",
        "advance to closed",
        "advanced to closed",
    ],
)
def test_killed_on_the_way_to_the_tarball(tmp_path: Path, step: str) -> None:
    """C12: the next start goes on where this one was, and leaves nothing half written."""
    for number in range(TIMES):
        folder = tmp_path / str(number)
        with running(folder, plan("load", [])) as aggregator:
            aggregator.arm(step)
            # Its answer may come before the kill, as the end is not its business.
            try:
                status = aggregator.worker("load").put("global/load", ARCHIVE, **GZIP).status
                assert 200 == status
            except GONE:
                pass
            aggregator.died()
            done = aggregator.wait_status(lambda found: found["final"])
            tar = done["tar-info"]
            path = aggregator.output / tar["name"]
            assert hashlib.sha256(path.read_bytes()).hexdigest() == tar["sha256"]
            with tarfile.open(path) as packed:
                files = {
                    m.name: packed.extractfile(m).read()
                    for m in packed
                    if m.isfile() and not m.name.endswith(OURS)
                }  # type: ignore[union-attr]
            assert {
                f"plugins/load/results/global/{name}": data for name, data in FILES.items()
            } == files
            # Results that are in the tarball go, after the end was shown.
            aggregator.wait_status(lambda _: not aggregator.unfinished() + aggregator.packed())
            assert 409 == aggregator.worker("load").put("global/load", ARCHIVE, **GZIP).status
