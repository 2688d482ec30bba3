"""What the store of bodies promises to those who read them, write them and clean up."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from reporter.ledger.blobs import BlobStore
from reporter.ledger.layout import Layout

BODY = b"body" * 100_000
DIGEST = hashlib.sha256(BODY).hexdigest()
ABSENT = f"{DIGEST}-0"


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """A store that holds nothing yet."""
    layout = Layout(tmp_path / "state", tmp_path / "output")
    layout.prepare()
    return BlobStore(layout)


def keep(blobs: BlobStore, *pieces: bytes) -> str:
    """Stage a body and keep it; its blob."""
    body = blobs.stage()
    body.write(pieces)
    blobs.keep(body)
    return body.blob


def read(blobs: BlobStore, blob: str) -> bytes:
    """All bytes of a blob."""
    with blobs.open(blob) as file:
        return file.read()


def test_a_body_is_no_blob_before_it_is_kept(blobs: BlobStore) -> None:
    body = blobs.stage()
    body.write((BODY,))
    assert set() == blobs.list()

    blobs.keep(body)

    assert (DIGEST, {body.blob}) == (body.digest, blobs.list())
    assert body.blob.startswith(f"{DIGEST}-")
    assert (len(BODY), BODY) == (blobs.size(body.blob), read(blobs, body.blob))
    assert BODY == blobs.local_file(body.blob).read_bytes()


def test_a_blob_that_is_absent(blobs: BlobStore) -> None:
    other = keep(blobs, b"other")

    assert blobs.size(ABSENT) is None
    with pytest.raises(FileNotFoundError):
        blobs.open(ABSENT)
    blobs.delete(ABSENT)
    assert {other} == blobs.list()


def test_a_blob_that_is_deleted_while_it_is_read(blobs: BlobStore) -> None:
    """Its reader gets the rest, nobody gets it any more, and what is sent again is a new one."""
    blob = keep(blobs, BODY)
    with blobs.open(blob) as file:
        first = file.read(10)
        blobs.delete(blob)
        assert (set(), None) == (blobs.list(), blobs.size(blob))
        again = keep(blobs, BODY)
        assert BODY == first + file.read()

    assert {again} == blobs.list()
    assert BODY == read(blobs, again)


def test_the_same_bytes_twice(blobs: BlobStore) -> None:
    """Two blobs: one goes, the other stays."""
    first, second = keep(blobs, BODY), keep(blobs, BODY[:7], BODY[7:])
    assert {first, second} == blobs.list()

    blobs.delete(first)

    assert {second} == blobs.list()
    assert BODY == read(blobs, second)


def test_a_start_with_what_rows_speak_of(blobs: BlobStore) -> None:
    """What no row knows goes, and what is not as long as its row says."""
    half, whole = keep(blobs, b"half"), keep(blobs, BODY)
    keep(blobs, b"unknown")

    lost, removed = blobs.resume({whole: len(BODY), half: 8, ABSENT: 5})

    assert ({half, ABSENT}, 2, {whole}) == (lost, removed, blobs.list())


def test_a_start_with_a_blob_that_cannot_be_looked_at(blobs: BlobStore) -> None:
    """A disk that fails is no blob that is gone: nothing is said to be lost, nothing goes."""
    blob = keep(blobs, BODY)
    unreadable = "0" * 300  # longer than a file's name may be

    with pytest.raises(OSError, match="File name too long"):
        blobs.resume({unreadable: 1, blob: len(BODY)})
    with pytest.raises(OSError, match="File name too long"):
        blobs.size(unreadable)

    assert {blob} == blobs.list()


def test_clearing(blobs: BlobStore) -> None:
    keep(blobs, BODY)
    keep(blobs, b"other")

    blobs.clear()

    assert set() == blobs.list()
