"""The tarball of a run, from rows and blobs alone."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.aggregator.tarball.content import BodyDamaged
from reporter.aggregator.tarball.package import Interrupted
from reporter.run.definition import Definition, definition_document
from reporter.run.record import Cause, Rank, Record
from tests.archives.packing import Packing, archive, opaque
from tests.archives.tars import file, folder, gnu_name, tgz


def test_the_error_of_a_replaced_report_whose_bytes_are_gone(tmp_path: Path) -> None:
    """Nobody would send them again: what it said is in the row."""
    body = b"result"
    old = archive(b"gone", Rank.WORKER, text="it broke", cause=Cause.WORKER_ERROR)

    found = Packing(tmp_path, body).make(opaque(body), old)

    assert b"result" == found["plugins/e2e/results/global/a.json"]
    said = b'{"error": "it broke", "cause": "worker_error"}'
    assert said == found["superseded/e2e/global/error.json"]
    assert "plugins/e2e/errors" in found


def test_the_definition_without_its_secrets(tmp_path: Path) -> None:
    """The tarball leaves the cluster; what is launched keeps its values."""
    variables = [
        {"name": "DB", "value": "hunter2"},
        {"name": "REF", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    template = {"spec": {"containers": [{"name": "c", "image": "i", "env": variables}]}}
    config = {"a.conf": "password: hunter2"}
    made = definition_document(Definition("e2e", "Job", "link", template, config=config))
    found = Packing(tmp_path, b"1").make(opaque(b"1"), definitions={"e2e": made})
    data = found["plugins/e2e/definition.json"]
    assert data is not None
    shown = json.loads(data)["spec"]

    assert b"hunter2" not in data
    assert {"a.conf": "[redacted]"} == shown["config"]
    assert ["c", "i"] == list(shown["template"]["spec"]["containers"][0].values())[:2]
    assert variables[1] == shown["template"]["spec"]["containers"][0]["env"][1]
    assert "hunter2" == variables[0]["value"]


def test_a_definition_that_is_too_deep(tmp_path: Path) -> None:
    """The tarball is made all the same."""
    deep: dict[str, object] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    made = {"spec": {"config": {}, "template": deep}}
    found = Packing(tmp_path, b"1").make(opaque(b"1"), definitions={"e2e": made})

    assert b"{}" == found["plugins/e2e/definition.json"]


@pytest.mark.parametrize("rank", [Rank.RESULT, Rank.WORKER])
def test_bytes_that_are_gone(tmp_path: Path, rank: Rank) -> None:
    """No tarball pretends to be whole without them."""
    packing = Packing(tmp_path)
    with pytest.raises(BodyDamaged, match="missing"):
        packing.make(archive(b"gone", rank))

    assert packing.nothing_is_left()


SOUND = tgz(file(b"a", b"1"), file(b"b", os.urandom(1000)))


@pytest.mark.parametrize(
    ("record", "bytes_now", "why"),
    [
        (archive(SOUND), SOUND[:-200], "cut off"),
        # In the header of the gzip, whose time its checksum does not cover.
        (archive(SOUND), SOUND[:4] + bytes([SOUND[4] ^ 1]) + SOUND[5:], "SHA-256"),
        (archive(SOUND), SOUND + b"more", "SHA-256"),
        (opaque(b"12345"), b"1234", "shorter"),
        (opaque(b"12345"), b"12344", "SHA-256"),
        (opaque(b"12345"), b"123456", "SHA-256"),
        (archive(SOUND, Rank.WORKER, document="{}"), SOUND[:-1] + b"?", "damaged"),
        (replace(opaque(b"1"), rank=Rank.WORKER, document="{}"), b"2", "SHA-256"),
    ],
)
def test_a_blob_that_was_damaged_since(
    tmp_path: Path, record: Record, bytes_now: bytes, why: str
) -> None:
    """It was checked when it came; a disk may forget, wherever the row has a copy of it too."""
    packing = Packing(tmp_path)
    packing.blobs[record.digest] = bytes_now
    with pytest.raises(BodyDamaged, match=why):
        packing.make(record)

    assert packing.nothing_is_left()


@pytest.mark.parametrize("body", [SOUND, b"12345"])
def test_each_body_is_read_once(tmp_path: Path, body: bytes) -> None:
    """For its copy and its SHA-256; also that of the snapshot, which goes to two places."""
    packing = Packing(tmp_path, body)
    packing.make(archive(body) if body is SOUND else opaque(body), taken_by="e2e")

    assert [hashlib.sha256(body).hexdigest()] == packing.opened


def test_stopped_at_any_moment(tmp_path: Path) -> None:
    """Wherever it is, also within an archive: nothing is left, and the next try makes it."""
    body = tgz(file(b"d/a", os.urandom(600_000)), file(b"b", b"2"))
    packing = Packing(tmp_path, body)
    asked = 0

    def count() -> bool:
        nonlocal asked
        asked += 1
        return False

    whole = packing.make(archive(body), stopping=count)
    packing.target.unlink()
    for last in range(asked):
        left = last

        def stopping() -> bool:
            nonlocal left
            left -= 1
            return left < 0

        with pytest.raises(Interrupted):
            packing.make(archive(body), stopping=stopping)
        assert packing.nothing_is_left()

    assert asked > 10
    assert whole == packing.make(archive(body))


def test_what_an_earlier_try_left_is_not_in_the_way(tmp_path: Path) -> None:
    """A try that could not even clean up."""
    packing = Packing(tmp_path, b"1")
    packing.target.write_bytes(b"half" * 1000)

    assert b"1" == packing.make(opaque(b"1"))["plugins/e2e/results/global/a.json"]


def test_only_we_may_read_it(tmp_path: Path) -> None:
    packing = Packing(tmp_path, b"1")
    packing.make(opaque(b"1"))

    assert 0o600 == packing.target.stat().st_mode & 0o777


def test_logs_that_cannot_be_read(tmp_path: Path) -> None:
    """Not a tarball without them: what is there is there for a reason."""
    packing = Packing(tmp_path)
    packing.podlogs.rmdir()
    with pytest.raises(FileNotFoundError):
        packing.make(None)

    assert packing.nothing_is_left()


def test_directories_as_deep_as_a_path_may_be(tmp_path: Path) -> None:
    """Far deeper than calls may be within calls: it is packed, and its file is listed."""
    path = b"/".join([b"d"] * 2_000) + b"/f"
    packing = Packing(tmp_path, body := tgz(gnu_name(path), file(b"x", b"1")))
    found = packing.make(archive(body))
    listed = found["plugins/e2e/sonobuoy_results.yaml"]

    assert b"1" == found[f"plugins/e2e/results/global/{path.decode()}"]
    assert listed is not None
    assert b"results/global/" + path in listed


def test_memory_does_not_grow_with_the_content(tmp_path: Path) -> None:
    """Nor with the number of long paths at one place."""
    long = b"/".join([b"d" * 200] * 19)
    parts = [file(b"big", bytes(32 * 2**20))]
    for n in range(2000):
        parts += [gnu_name(long + b"/%d" % n), folder(b"x")]
    packing = Packing(tmp_path, body := tgz(*parts))
    tracemalloc.start()
    try:
        packing.make(archive(body), read=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 24 * 2**20
