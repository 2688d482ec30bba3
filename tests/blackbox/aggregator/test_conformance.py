"""The protocol of docs/aggregator-protocol.md, case by case, against a started aggregator.

One run gets an upload, or several, for each case of `UPLOADS`; what was answered and what is in its
tarball is judged. The rest is asked of a second run, which stays open.
"""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest

from tests.aggregators.served import Aggregator
from tests.aggregators.worker import Reply, Worker, digest_of, head
from tests.archives.tars import file, header, tgz

GZIP = {"Content_Type": "application/gzip"}
JSON = {"Content_Type": "application/json"}
ERROR = b'{"error":"it broke"}'
GOOD = tgz(file(b"a.txt", b"one"), file(b"d/b.txt", b"two"))
LINK = header(b"link", kind=b"2", target=b"../../..")


def named(value: str, **more: str) -> dict[str, str]:
    """Headers with this Content-Disposition."""
    return {"Content_Disposition": value, **more}


class Sent(NamedTuple):
    """One upload, and the beginning of what has to be answered; a `result` in the end."""

    body: Any
    status: int
    said: str = ""
    headers: dict[str, str] = {}  # noqa: RUF012  # never changed


class Case(NamedTuple):
    """Uploads of one key in their order, and its files in the tarball."""

    sent: list[Sent]
    files: dict[str, bytes]


HELD = "result {key} already received\n"
FAILED = "error handling result {key}: "
UPLOADS = {
    "a1-no-headers": Case([Sent(b"foo", 200)], {"results/global/result": b"foo"}),
    "a2-again": Case(
        [Sent(b"foo", 200), Sent(b"bar", 409, HELD)], {"results/global/result": b"foo"}
    ),
    "a4-name": Case(
        [Sent(b"{}", 200, headers=named("attachment;filename=a.json", **JSON))],
        {"results/global/a.json": b"{}"},
    ),
    "a6-archive": Case(
        [Sent(GOOD, 200, headers=GZIP)],
        {"results/global/a.txt": b"one", "results/global/d/b.txt": b"two"},
    ),
    "a8-bad-then-good": Case(
        [
            Sent(b'{"a":"x"}', 500, FAILED, named('attachment; filename="r.tar.gz"', **GZIP)),
            Sent(GOOD, 200, headers=GZIP),
            Sent(GOOD, 409, HELD, GZIP),
        ],
        {"results/global/a.txt": b"one", "results/global/d/b.txt": b"two"},
    ),
    "a9-x-gzip": Case(
        [
            Sent(
                GOOD,
                200,
                "",
                named("attachment; filename=r.tar.gz", Content_Type="application/x-gzip"),
            )
        ],
        {"results/global/r.tar.gz": GOOD},
    ),
    "a9-parameters": Case(
        [
            Sent(
                GOOD,
                200,
                "",
                named("attachment; filename=r.tar.gz", Content_Type="application/gzip; x=y"),
            )
        ],
        {"results/global/r.tar.gz": GOOD},
    ),
    "a10-above": Case(
        [
            Sent(tgz(file(b"../../../slip.txt", b"x")), 500, FAILED, GZIP),
            Sent(b"good", 200),
        ],
        {"results/global/result": b"good"},
    ),
    "a10-absolute": Case(
        [Sent(tgz(file(b"/abs.txt", b"x")), 200, headers=GZIP)],
        {"results/global/abs.txt": b"x"},
    ),
    "a11-through-a-link": Case(
        [
            Sent(tgz(LINK, file(b"link/x", b"x")), 500, FAILED, GZIP),
            Sent(b"good", 200),
        ],
        {"results/global/result": b"good"},
    ),
    "a12-name-above": Case(
        [Sent(b"x", 200, headers=named('attachment; filename="../../../../x"'))],
        {"results/global/x": b"x"},
    ),
    "a13-name-with-spaces": Case(
        [Sent(b"x", 200, headers=named("attachment; filename=a b.txt"))],
        {"results/global/a b.txt": b"x"},
    ),
    "a13-no-name": Case(
        [Sent(b"x", 200, headers=named("attachment"))], {"results/global/result": b"x"}
    ),
    "a16-chunks": Case(
        [Sent([b"one ", b"two ", b"three"], 200)], {"results/global/result": b"one two three"}
    ),
    "a16-no-chunks": Case([Sent([], 200)], {"results/global/result": b""}),
    "a29-failed": Case([Sent(b"no", 500, FAILED, GZIP)], {}),
    "a39-links": Case(
        [Sent(tgz(LINK, file(b"a.txt", b"one")), 200, headers=GZIP)],
        {"results/global/a.txt": b"one"},
    ),
    "a40-packed-json": Case(
        [
            Sent(
                gzip.compress(b"{}", mtime=0),
                200,
                "",
                named("attachment; filename=a.json.gz", **GZIP),
            )
        ],
        {"results/global/a.json.gz": gzip.compress(b"{}", mtime=0)},
    ),
    "a40-as-archive": Case(
        [
            Sent(
                gzip.compress(b"{}", mtime=0),
                500,
                FAILED,
                named("attachment; filename=a.tar.gz", **GZIP),
            ),
            Sent(b"good", 200),
        ],
        {"results/global/result": b"good"},
    ),
    "a41-error": Case([Sent(ERROR, 200, headers=GZIP)], {"errors/global/error.json": ERROR}),
    "a42-error-then-result": Case(
        [
            Sent(ERROR, 200, "", {"Result_Outcome": "error", **JSON}),
            Sent(ERROR, 409, HELD, {"Result_Outcome": "error", **JSON}),
            Sent(b"real", 200),
            Sent(ERROR, 409, HELD, {"Result_Outcome": "error", **JSON}),
        ],
        {"results/global/result": b"real"},
    ),
    "a44-digest": Case(
        [
            Sent(b"x", 500, FAILED, {"Content_Digest": digest_of(b"y")}),
            Sent(b"x", 200, "", {"Content_Digest": digest_of(b"x")}),
        ],
        {"results/global/result": b"x"},
    ),
}
ENDED = {
    "a1-no-headers": ("complete", None),
    "a29-failed": ("failed", "upload_failed"),
    "a41-error": ("failed", "worker_error"),
    "a42-error-then-result": ("complete", None),
}


class Played(NamedTuple):
    """A run that is over: answers, files of its tarball, entries, and answers afterwards."""

    answers: dict[str, list[Reply]]
    members: dict[str, bytes]
    entries: dict[str, Any]
    closed: list[Reply]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The run of all uploads."""
    document = {"run": "uploads", "plugins": [{"name": name} for name in UPLOADS]}
    flags = ("--retry-window-seconds", "1", "--hold-seconds", "0")
    with Aggregator(tmp_path_factory.mktemp("uploads"), document, *flags) as run:
        answers: dict[str, list[Reply]] = {}
        for name, case in UPLOADS.items():
            worker = run.worker(name)
            answers[name] = []
            for sent in case.sent:
                body = iter(sent.body) if isinstance(sent.body, list) else sent.body
                answers[name].append(worker.put(f"global/{name}", body, **sent.headers))
        shown = run.wait_status(lambda found: found["tar-info"])
        with tarfile.open(run.output / shown["tar-info"]["name"]) as tarball:
            files = {each.name: tarball.extractfile(each) for each in tarball if each.isfile()}
            members = {name: found.read() for name, found in files.items() if found}
        held, none = run.worker("a1-no-headers"), run.worker("a29-failed")
        closed = [
            held.put("global/a1-no-headers"),
            none.put("global/a29-failed"),
            none.post("global/a29-failed", msg="m"),
            none.beat("global/a29-failed"),
        ]
        entries = {entry["name"]: entry for entry in shown["plugins"]}
    return Played(answers, members, entries, closed)


@pytest.mark.parametrize("name", UPLOADS)
def test_answers_to_uploads(played: Played, name: str) -> None:
    """Status, text and digest of each."""
    for sent, answer in zip(UPLOADS[name].sent, played.answers[name], strict=True):
        assert sent.status == answer.status
        said = sent.said.format(key=f"{name}/global")
        assert answer.body.startswith(said.encode())
        assert said or not answer.body
        if sent.status == 200:
            body = b"".join(sent.body) if isinstance(sent.body, list) else sent.body
            assert digest_of(body) == answer.digest
        else:
            assert (sent.status == 409) == (answer.digest is not None)


@pytest.mark.parametrize("name", UPLOADS)
def test_files_of_uploads(played: Played, name: str) -> None:
    """Nothing else of this key is in the tarball, but what the aggregator says itself."""
    above = f"plugins/{name}/"
    found = {
        member.removeprefix(above): content
        for member, content in played.members.items()
        if member.startswith(above) and not member.endswith("sonobuoy_results.yaml")
    }
    wanted = UPLOADS[name].files or {"errors/global/error.json": found["errors/global/error.json"]}

    assert wanted == found


@pytest.mark.parametrize("name", ENDED)
def test_ends_of_entries(played: Played, name: str) -> None:
    entry = played.entries[name]

    assert ENDED[name] == (entry["status"], entry["error"] and entry["error"]["cause"])


def test_nothing_is_outside_of_the_known_folders(played: Played) -> None:
    """A10 to A12: no name leads anywhere else. What was replaced or refused is beside `plugins`."""
    folders = {"meta", "plugins", "superseded", "quarantine"}

    assert folders >= {name.split("/")[0] for name in played.members}
    assert ERROR == played.members["superseded/a42-error-then-result/global/error.json"]


def test_a_closed_run(played: Played) -> None:
    """A43: 409 where there is a result; else 410 to results, progress and heartbeats."""
    assert [409, 410, 410, 410] == [each.status for each in played.closed]
    assert b"run is closed; result a29-failed/global not accepted\n" == played.closed[1].body


# What is not about the content of uploads.

PLAN = {
    "run": "open",
    "plugins": [
        {"name": "e2e"},
        {"name": "sysd", "nodes": ["node1", "node2"]},
        *({"name": f"p{number}"} for number in range(10)),
        {"name": "held"},
        {"name": "cut"},
    ],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    """A run that stays open."""
    with Aggregator(tmp_path_factory.mktemp("open"), PLAN) as running:
        yield running


@pytest.fixture(scope="module")
def worker(run: Aggregator) -> Worker:
    """The worker of `e2e`."""
    return run.worker("e2e")


@pytest.mark.parametrize(
    ("path", "key"),
    [("results/by-node/node9/sysd", "sysd/node9"), ("results/global/nope", "nope/global")],
)
def test_a_key_that_is_not_in_the_plan(worker: Worker, path: str, key: str) -> None:
    """A3, A22."""
    reply = worker.ask("PUT", path, b"x")
    assert (403, f"result {key} unexpected\n".encode()) == reply[:2]
    reply = worker.ask("POST", path.replace("results", "progress"), b"{}")
    assert (403, f"progress update for {key} unexpected\n".encode()) == reply[:2]
    assert 403 == worker.ask("GET", path.replace("results", "health")).status


def test_a_key_of_another_certificate(run: Aggregator, worker: Worker) -> None:
    """A35: neither results nor progress nor heartbeats."""
    said = b"p0/global not permitted for this client certificate\n"
    reply = worker.put("global/p0")
    assert (403, b"result " + said) == reply[:2]
    reply = worker.post("global/p0", msg="m")
    assert (403, b"progress update for " + said) == reply[:2]
    assert 403 == worker.beat("global/p0").status
    assert None is run.entry("p0/global")["progress"]


def test_the_node_that_is_called_global(run: Aggregator) -> None:
    """A5: one key, however it is spelt."""
    worker = run.worker("held")
    assert 200 == worker.put("by-node/global/held").status
    assert 409 == worker.put("global/held").status


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD"])
def test_other_methods_on_results(worker: Worker, method: str) -> None:
    """A14."""
    reply = worker.ask(method, "results/global/e2e")

    assert (405, b"", "PUT") == (reply.status, reply.body, reply.headers["Allow"])


@pytest.mark.parametrize(
    "target",
    [
        "/not/found",
        "/api/v1/results/global/e2e/",
        "/api/v1/results//global/e2e",
        "/api/v1/results/global/../global/e2e",
        "/api/v1/results/global/e2e%2f",
        "/api/v1/results/by-node/%2e%2e/e2e",
        "/api/v1/results/global/e2e%00",
    ],
)
def test_paths_that_are_not_there(worker: Worker, target: str) -> None:
    """A15, A45: 404, and never a redirect."""
    with worker.connect() as connection:
        connection.sendall(head("PUT", target, "Content-Length: 1", "Connection: close") + b"x")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))

    assert answer.startswith(b"HTTP/1.1 404 ")
    assert answer.endswith(b"\r\n\r\n404 page not found\n")


def test_a_large_body_to_an_unexpected_key(worker: Worker) -> None:
    """A33: the answer is received, although nobody reads the body."""
    assert 403 == worker.ask("PUT", "results/global/nope", bytes(3_000_000)).status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (("Content-Encoding: gzip", "Content-Length: 1"), 415),
        ((f"Content-Length: {10 * 2**30}",), 413),
        (("Expect: 100-continue", f"Content-Length: {10 * 2**30}"), 413),
    ],
)
def test_refused_by_its_head(run: Aggregator, headers: tuple[str, ...], status: int) -> None:
    """A36: unread."""
    with run.worker("cut").connect() as connection:
        connection.sendall(head("PUT", "/api/v1/results/global/cut", *headers))
        assert connection.recv(4096).startswith(f"HTTP/1.1 {status} ".encode())


def test_no_continue_for_a_refused_key(worker: Worker) -> None:
    """A56."""
    with worker.connect() as connection:
        words = ("Expect: 100-continue", "Content-Length: 1")
        connection.sendall(head("PUT", "/api/v1/results/global/nope", *words))
        assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")


def test_an_upload_that_stalls_holds_nobody_up(run: Aggregator, worker: Worker) -> None:
    """A34."""
    stalled = run.worker("cut")
    with stalled.connect() as connection:
        connection.sendall(head("PUT", "/api/v1/results/global/cut", "Content-Length: 9") + b"x")
        assert 200 == run.worker("p9").put("global/p9").status
        assert 200 == worker.post("global/e2e", msg="m").status
        assert "running" == run.entry("cut/global")["status"]


def progress(run: Aggregator, key: str) -> dict[str, Any]:
    """What is shown of a key's progress."""
    return dict(run.detail(key)["progress"])


def test_progress(run: Aggregator) -> None:
    """A20, A24: what it says of its origin, in the names of the path and the server's time."""
    worker = run.worker("p1")
    assert (200, b"") == worker.post("global/p1", msg="m", total=5, completed=1)[:2]
    assert 200 == worker.post("global/p1", name="zzz", node="n9", msg="m", total=5).status
    shown = progress(run, "p1/global")

    assert ("p1", "global", "m", 5) == tuple(map(shown.get, ("name", "node", "msg", "total")))
    away = datetime.fromisoformat(shown["timestamp"]) - datetime.now(UTC)
    assert timedelta(minutes=1) > abs(away)


def test_progress_of_a_node(run: Aggregator) -> None:
    """A21."""
    assert 200 == run.worker("sysd").post("by-node/node1/sysd", msg="m").status
    assert "node1" == progress(run, "sysd/node1")["node"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"total":"9"}',
        b'{"total":9.5}',
        b'{"timestamp":"soon"}',
        b"[" * 5_000,
        b'{"appendcompleted":-1}',
    ],
    ids=lambda body: body[:20].decode() or "empty",
)
def test_progress_that_is_none(run: Aggregator, body: bytes) -> None:
    """A23, A50: 400, and what is stored stays."""
    worker = run.worker("p2")
    assert 200 == worker.post("global/p2", msg="kept").status
    reply = worker.ask("POST", "progress/global/p2", body)

    assert 400 == reply.status
    assert reply.body.startswith(b"invalid progress update: ")
    assert "kept" == progress(run, "p2/global")["msg"]


@pytest.mark.parametrize(
    ("plugin", "updates", "expected"),
    [
        ("p3", [{"total": 1, "completed": 1}, {"total": 5, "completed": 5}], (5, 5, [])),
        (
            "p4",
            [
                {"total": 1, "completed": 1, "failures": ["a"]},
                {"appendcompleted": 5, "appendfailing": ["B"]},
            ],
            (1, 6, ["a", "B"]),
        ),
        (
            "p5",
            [
                {"total": 1, "completed": 1},
                {"appendtotals": True, "appendcompleted": 5, "appendfailing": ["a"]},
            ],
            (7, 6, ["a"]),
        ),
        (
            "p6",
            [{"appendtotals": True, "appendcompleted": 5, "appendfailing": ["c", "d"]}],
            (7, 5, ["c", "d"]),
        ),
        (
            "p7",
            [
                {"total": 33, "completed": 33, "failures": ["a"]},
                {"total": 33, "completed": 33},
                {"appendtotals": True, "appendcompleted": 4},
            ],
            (37, 37, []),
        ),
    ],
)
def test_combining(
    run: Aggregator,
    plugin: str,
    updates: list[dict[str, Any]],
    expected: tuple[int, int, list[str]],
) -> None:
    """A25, A26."""
    for update in updates:
        assert 200 == run.worker(plugin).post(f"global/{plugin}", **update).status
    shown = progress(run, f"{plugin}/global")

    assert expected == (shown["total"], shown["completed"], shown.get("failures", []))


def test_an_update_that_is_sent_twice(run: Aggregator) -> None:
    """A49: counted once; an older one is ignored, one of a new epoch applied."""
    worker = run.worker("p8")
    for name in ("a/2", "a/2", "a/1", "b/1"):
        reply = worker.post("global/p8", id=name, appendtotals=True, appendcompleted=1)
        assert 200 == reply.status

    assert 2 == progress(run, "p8/global")["completed"]


def test_too_much_progress(run: Aggregator) -> None:
    """A50: 1,000 failures are kept and all are counted; one byte over a mebibyte is refused."""
    worker = run.worker("p0")
    names = [str(number) for number in range(10_000)]
    assert 200 == worker.post("global/p0", failures=names, errors=["e"]).status
    assert 200 == worker.post("global/p0", appendcompleted=1, errors=["f"]).status
    shown = progress(run, "p0/global")
    assert (1_000, 10_000, ["e", "f"]) == (
        len(shown["failures"]),
        shown["failures_total"],
        shown["errors"],
    )
    body = json.dumps({"msg": ""}).encode().ljust(2**20 + 1)
    assert 413 == worker.ask("POST", "progress/global/p0", body).status


def test_progress_after_the_result(run: Aggregator) -> None:
    """A27."""
    worker = run.worker("p9")
    worker.put("global/p9")
    assert 200 == worker.post("global/p9", msg="late").status
    assert "complete" == run.entry("p9/global")["status"]


def test_a_heartbeat(run: Aggregator, worker: Worker) -> None:
    """A51: the interval, the state of the entry and what else is understood; PUT is 405."""
    reply = worker.beat("global/e2e")
    features = set(reply.headers["Aggregator-Features"].split(", "))

    assert (200, {"interval_seconds": 15, "status": "running"}) == (
        reply.status,
        json.loads(reply.body),
    )
    assert {"heartbeat", "outcome", "digest", "progress-id"} <= features
    assert 405 == worker.ask("PUT", "health/global/e2e").status
    assert 0 <= run.entry("e2e/global")["last-heartbeat"] <= 60
