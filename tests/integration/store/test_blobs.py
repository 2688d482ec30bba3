"""What the store of bodies promises to those who read them, write them and clean up."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from reporter.aggregator.store.blobs import BlobStore
from reporter.aggregator.store.layout import Layout

BODY = b"body" * 100_000
DIGEST = hashlib.sha256(BODY).hexdigest()
OTHER = hashlib.sha256(b"other").hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """A store that holds nothing yet."""
    layout = Layout(tmp_path / "state", tmp_path / "output")
    layout.prepare()
    return BlobStore(layout)


def keep(blobs: BlobStore, *pieces: bytes) -> str:
    """Stage a body and keep it; its digest."""
    body = blobs.stage()
    body.write(pieces)
    blobs.keep(body)
    return body.digest


def read(blobs: BlobStore, digest: str) -> bytes:
    """All bytes of a blob."""
    with blobs.open(digest) as file:
        return file.read()


def test_a_body_is_no_blob_before_it_is_kept(blobs: BlobStore) -> None:
    body = blobs.stage()
    body.write((BODY,))
    assert (set(), False) == (blobs.list(), blobs.exists(DIGEST))

    blobs.keep(body)

    assert (DIGEST, {DIGEST}, True) == (body.digest, blobs.list(), blobs.exists(DIGEST))
    assert (len(BODY), BODY) == (blobs.size(DIGEST), read(blobs, DIGEST))
    assert BODY == blobs.local_file(DIGEST).read_bytes()


def test_a_blob_that_is_absent(blobs: BlobStore) -> None:
    keep(blobs, b"other")

    assert (None, False) == (blobs.size(DIGEST), blobs.exists(DIGEST))
    with pytest.raises(FileNotFoundError):
        blobs.open(DIGEST)
    blobs.delete(DIGEST)
    blobs.release(DIGEST)
    assert {OTHER} == blobs.list()


def test_a_blob_that_is_deleted_while_it_is_read(blobs: BlobStore) -> None:
    """Its reader gets the rest, nobody gets it any more, and what is sent again is a new one."""
    keep(blobs, BODY)
    with blobs.open(DIGEST) as file:
        first = file.read(10)
        blobs.delete(DIGEST)
        assert (set(), None) == (blobs.list(), blobs.size(DIGEST))
        assert DIGEST == keep(blobs, BODY)
        assert BODY == first + file.read()

    assert BODY == read(blobs, DIGEST)
    blobs.release(DIGEST)
    assert set() == blobs.list()


def test_a_blob_that_two_hold(blobs: BlobStore) -> None:
    """It is there until the second one releases it, in the file that was there first."""
    keep(blobs, BODY)
    first = blobs.local_file(DIGEST).stat().st_ino
    keep(blobs, BODY[:7], BODY[7:])
    keep(blobs, b"other")

    blobs.release(DIGEST)
    assert {DIGEST, OTHER} == blobs.list()
    assert first == blobs.local_file(DIGEST).stat().st_ino

    blobs.release(DIGEST)
    assert {OTHER} == blobs.list()


def test_a_start_with_what_rows_speak_of(blobs: BlobStore) -> None:
    """What no row knows goes, and what is not as long as its row says; holders are known again."""
    half, unknown = keep(blobs, b"half"), keep(blobs, b"unknown")
    keep(blobs, BODY)
    sizes = {DIGEST: len(BODY), half: 8, OTHER: 5}

    lost, removed = blobs.resume(sizes, Counter((DIGEST, DIGEST, half, OTHER)))

    assert ({half, OTHER}, 2) == (lost, removed)
    assert ({DIGEST}, False) == (blobs.list(), blobs.exists(unknown))
    assert half == keep(blobs, b"half")  # nobody holds one that was lost
    assert b"half" == read(blobs, half)
    blobs.release(DIGEST)
    assert BODY == read(blobs, DIGEST)
    blobs.release(DIGEST)
    assert {half} == blobs.list()


def test_a_start_with_a_blob_that_cannot_be_looked_at(blobs: BlobStore) -> None:
    """A disk that fails is no blob that is gone: nothing is said to be lost, nothing goes."""
    keep(blobs, BODY)
    unreadable = "0" * 300  # longer than a file's name may be

    with pytest.raises(OSError, match="File name too long"):
        blobs.resume({unreadable: 1, DIGEST: len(BODY)}, Counter((unreadable, DIGEST)))
    with pytest.raises(OSError, match="File name too long"):
        blobs.exists(unreadable)

    assert {DIGEST} == blobs.list()


def test_clearing_takes_what_is_held_too(blobs: BlobStore) -> None:
    keep(blobs, BODY)
    keep(blobs, b"other")

    blobs.clear()

    assert set() == blobs.list()
    assert DIGEST == keep(blobs, BODY)
    blobs.release(DIGEST)
    assert set() == blobs.list()
