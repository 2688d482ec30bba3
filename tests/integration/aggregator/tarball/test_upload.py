"""L16: the upload of the tarball to a store over TLS: what can go wrong, and what is said of it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from reporter.common.retry import RETRY_AFTER_CAP
from reporter.run.plan import Plan, Plugin
from reporter.run.record import Rank, Record
from reporter.run.state import Phase
from reporter.run.tar_upload import LARGEST, TarUpload, UploadState, too_large
from tests.aggregators.bucket import QUERY, SIGNATURE, Bucket
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.tarball.scene import BODY, LIMITS, NOW, TAR, World
from tests.ports import free_port
from tests.scripted_server import Act, Cut, Say, Silence


def test_it_arrives_whole(world: World):
    """One PUT with the bytes, and no header but those that HTTP needs."""
    ended = world.to_its_end()

    (request,) = world.bucket.requests
    assert ("PUT", f"/bucket/run.tar.gz?{QUERY}") == (request.method, request.target)
    assert {"host": world.bucket.host, "content-length": str(len(BODY))} == request.headers
    assert BODY == request.body
    assert TarUpload(world.bucket.host, UploadState.UPLOADED, NOW, "", NOW) == ended
    assert ["Upload started", "Tarball uploaded"] == [each["message"] for each in world.events]


def test_azure_is_told_what_it_makes_of_it(world: World):
    """It refuses a PUT without that header, which it does not sign."""
    world.bucket.point(f"sv=2024-11-04&sr=b&sig={SIGNATURE}")
    assert UploadState.UPLOADED is world.to_its_end().state
    assert "BlockBlob" == world.bucket.requests[0].headers["x-ms-blob-type"]


RETRIED: dict[str, tuple[Act, str]] = {
    "busy": (
        Say(503, b"<Error><Code>SlowDown</Code></Error>"),
        "503 Service Unavailable (SlowDown)",
    ),
    "in conflict": (Say(409), "409 Conflict"),
    "cut": (Cut(100_000), "the connection was cut off"),
    "reset": (Cut(100_000, reset=True), "the connection was cut off"),
    "no HTTP": (Say(200, cut=4), "its response is not HTTP"),
    "silent": (Silence(), "timed out"),
}


@pytest.mark.parametrize("case", RETRIED)
def test_a_try_that_fails(case: str, tmp_path: Path):
    """It is said, and the next try begins at the start."""
    act, words = RETRIED[case]
    limits = replace(LIMITS, silence=0.5) if case == "silent" else LIMITS
    with Bucket(tmp_path, act, Say()) as bucket:
        world = World(tmp_path, bucket, limits=limits)
        assert UploadState.UPLOADED is world.to_its_end().state
        assert (2, BODY) == (len(bucket.requests), bucket.requests[-1].body)
    (failed,) = [each for each in world.events if each["message"].startswith("Upload failed")]
    assert str(failed["error"]).startswith(words)
    assert SIGNATURE not in world.words()


@pytest.mark.parametrize(
    ("wished", "waited"), [("20", 20), ("3600", RETRY_AFTER_CAP)], ids=["obeyed", "capped"]
)
def test_a_store_that_wants_a_pause(wished: str, waited: float, tmp_path: Path):
    """Its Retry-After is waited for, up to half a minute; no byte is sent before."""
    with Bucket(tmp_path, Say(429, headers={"Retry-After": wished}), Say()) as bucket:
        world = World(tmp_path, bucket)

        async def story(store: QuickStore) -> None:
            upload = world.upload()
            await upload.resume(store, 60.0)
            await upload.begin(store, TAR)
            assert not await upload.over(store)
            world.wall += waited - 0.001
            assert not await upload.over(store)
            assert 1 == len(bucket.requests)
            world.wall += 0.002
            assert await upload.over(store)

        world.play(story)
        assert [BODY] == [each.body for each in bucket.requests[1:]]
    (failed,) = [each for each in world.events if each["message"].startswith("Upload failed")]
    assert waited == failed["nextTrySeconds"]


def test_a_store_that_answers_before_it_has_everything(world: World):
    """That is no upload: nobody knows what it has kept."""
    world.bucket.script(Say(200, early=True, discard=0), Say())
    large = 24 * 1024 * 1024  # more than sockets hold
    with (world.folder / TAR.name).open("r+b") as file:
        file.truncate(large)

    async def story(store: QuickStore) -> None:
        await world.begun(store, replace(TAR, size=large))

    world.play(story)
    assert UploadState.UPLOADED is world.ended.state
    assert (2, large) == (len(world.bucket.requests), world.bucket.requests[-1].length)
    (failed,) = [each for each in world.events if each["message"].startswith("Upload failed")]
    assert "200 OK was received before all was sent" in str(failed["error"])


REFUSED: dict[str, tuple[Act, str]] = {
    "expired": (
        Say(403, f"<Code>AccessDenied</Code><URL>{SIGNATURE}</URL>".encode()),
        "403 Forbidden (AccessDenied)",
    ),
    "refused before it is read": (Say(403, early=True), "403 Forbidden"),
    "redirected": (
        Say(307, headers={"Location": f"https://elsewhere/?{SIGNATURE}"}),
        "307 Temporary Redirect: redirects are not followed; the URL must name the host that "
        "stores it",
    ),
    "unknown": (Say(404, SIGNATURE.encode()), "404 Not Found"),
    "of no name": (Say(499), "499"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_another_try_cannot_change(case: str, world: World):
    """It is given up at once; the tarball is still there."""
    act, words = REFUSED[case]
    world.bucket.script(act)
    ended = world.to_its_end()

    assert (UploadState.FAILED, words) == (ended.state, ended.error)
    assert 1 == len(world.bucket.requests)
    assert BODY == (world.folder / TAR.name).read_bytes()


def test_a_store_that_is_away_until_it_is_given_up(tmp_path: Path):
    """With what was wrong; it took as long as it may."""
    with Bucket(tmp_path, listening=False) as bucket:
        bucket.url_file.write_text(f"https://127.0.0.1:{free_port()}/?{SIGNATURE}")
        world = World(tmp_path, bucket)

        async def story(store: QuickStore) -> None:
            upload = world.upload()
            await upload.resume(store, 60.0)
            await upload.begin(store, TAR)
            assert not await upload.over(store)
            found = store.snapshot().upload
            assert (UploadState.UPLOADING, "Connection refused") == (found.state, found.error)
            world.wall += 3600
            assert await upload.over(store)
            world.ended = store.snapshot().upload

        world.play(story)
    assert UploadState.FAILED is world.ended.state
    assert "given up after 3600 s: Connection refused" == world.ended.error
    assert SIGNATURE not in world.words()


def test_a_try_that_never_ends_is_given_up_too(world: World):
    """The store takes a part, and then nothing more."""
    world.bucket.script(Silence(after=1000))

    async def story(store: QuickStore) -> None:
        uploading = asyncio.create_task(world.begun(store))
        await asyncio.to_thread(world.bucket.heard, 1)
        world.wall += 3600
        await uploading

    world.play(story)
    assert (UploadState.FAILED, "given up after 3600 s") == (world.ended.state, world.ended.error)


def test_a_url_that_is_replaced_meanwhile(world: World):
    """It is read for each try: somebody may mount a new one."""
    world.bucket.script(Say(503), Say())

    async def story(store: QuickStore) -> None:
        upload = world.upload()
        await upload.resume(store, 60.0)
        await upload.begin(store, TAR)
        assert not await upload.over(store)
        world.bucket.point(f"new={SIGNATURE}")
        assert await upload.over(store)
        world.ended = store.snapshot().upload

    world.play(story)
    assert f"/bucket/run.tar.gz?new={SIGNATURE}" == world.bucket.requests[-1].target


def test_results_that_become_too_large(world: World):
    """It is said as soon as it is known, once, and the tarball is tried all the same."""
    keys = Plan("run-1", (Plugin("e2e", ("a", "b", "c")),), 60).keys

    async def story(store: QuickStore) -> None:
        upload = world.upload()
        await upload.resume(store, 60.0)
        for key, size in zip(keys, (LARGEST - 1, 1, 1), strict=True):
            await store.record_result(key, Record(Rank.RESULT, NOW, "ab" * 32, size, filename="r"))
            await upload.foresee(store)
            stands.append(store.snapshot().upload)
        await upload.foresee(store)
        await store.advance_run(Phase.POST_PROCESSING)
        await upload.foresee(store)
        await world.begun(store)

    stands: list[TarUpload | None] = []
    world.play(story, keys[0].plugin, [key.node for key in keys])

    said = too_large(LARGEST + 1)
    assert f"the results have {LARGEST + 1} bytes so far, and object stores accept at most" in said
    waiting = TarUpload(world.bucket.host, UploadState.WAITING, NOW)
    assert [waiting, waiting, replace(waiting, error=said)] == stands
    (warned,) = [each for each in world.events if each["level"] == "warning"]
    assert ("The upload may fail", said) == (warned["message"], warned["problem"])
    assert (UploadState.UPLOADED, "") == (world.ended.state, world.ended.error)


SIZES = {
    "more than a store takes": (
        LARGEST + 1,
        f"the tarball has {LARGEST + 1} bytes, and object stores accept at most {LARGEST} in one "
        "upload",
    ),
    "not what was made": (7, "the tarball has 2097152 bytes, expected 7"),
}


@pytest.mark.parametrize("case", SIZES)
def test_a_tarball_that_cannot_be_uploaded(case: str, world: World):
    """Not a byte of it is sent, and it stays as it is."""
    size, words = SIZES[case]
    tarball = world.folder / TAR.name
    if size > LARGEST:
        with tarball.open("r+b") as file:
            file.truncate(size)
    there = tarball.stat()

    async def story(store: QuickStore) -> None:
        await world.begun(store, replace(TAR, size=size))

    world.play(story)
    assert (UploadState.FAILED, words) == (world.ended.state, world.ended.error)
    assert not world.bucket.requests
    left = tarball.stat()
    assert (there.st_ino, there.st_size, there.st_mtime_ns) == (
        left.st_ino,
        left.st_size,
        left.st_mtime_ns,
    )
    (given_up,) = [each for each in world.events if each["level"] == "error"]
    assert "Upload given up; the results remain on the aggregator" == given_up["message"]
    assert words == given_up["error"]


def test_there_will_be_no_tarball(world: World):
    """Packing was given up."""

    async def story(store: QuickStore) -> None:
        upload = world.upload()
        await upload.resume(store, 60.0)
        await upload.drop(store)
        world.ended = store.snapshot().upload

    world.play(story)
    assert (UploadState.FAILED, "there is no tarball") == (world.ended.state, world.ended.error)
