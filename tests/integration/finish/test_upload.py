"""L16: the upload of the tarball to a store over TLS: what can go wrong, and what is said of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reporter.aggregator.finish.object_store import UploadFailed
from reporter.aggregator.finish.upload import Upload, give_up_unwanted
from reporter.core.run.plan import Plan, Plugin
from reporter.core.run.record import Rank, Record
from reporter.core.run.snapshot import Phase, Tar
from reporter.core.run.status import tar_upload
from reporter.core.run.tar_upload import LARGEST, TarUpload, UploadState, too_large
from reporter.errors import SettingsError
from reporter.link.sockets import TimeLimits
from reporter.runtime import log
from tests.aggregators.bucket import QUERY, SIGNATURE, Bucket
from tests.aggregators.stores import QuickStore
from tests.certificates import SERVER, Authority
from tests.ports import free_port
from tests.scripted_server import Act, Cut, Say, Silence

NOW = 1_767_268_800.0  # 2026-01-01T12:00:00Z
BODY = bytes(range(256)) * 8192  # 2 MiB: more than the sockets hold
TAR = Tar("run-1.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, len(BODY))
LIMITS = TimeLimits(connect=10.0, handshake=10.0, send=30.0, answer=30.0)


class World:
    """A store, a packed run and its upload. Delays between tries are none."""

    def __init__(self, folder: Path, bucket: Bucket, **options: object) -> None:
        self.folder, self.bucket, self.options = folder, bucket, options
        self.wall = NOW
        self.events: list[dict] = []
        (folder / TAR.name).write_bytes(BODY)

    def upload(self) -> Upload:
        """Make one, as a new process does."""
        given = {"give_up": 3600.0, "limits": LIMITS, "reached_within": 0.0, **self.options}
        return Upload(
            self.folder,
            self.bucket.url_file,
            str(self.bucket.ca),
            wall=lambda: self.wall,
            rng=lambda: 0.0,
            **given,
        )

    def play(
        self, story: Callable[[QuickStore], Awaitable[None]], plugin: str = "", nodes: Any = ()
    ) -> None:
        """Run a story on the store of a run whose set of results is final; open with a plugin."""
        plugins = (Plugin(plugin, tuple(nodes)),) if plugin else ()

        async def told() -> None:
            store = QuickStore(self.folder / "run.db", wall=lambda: self.wall)
            await store.open_run(Plan("run-1", plugins, 60), now=self.wall)
            try:
                if store.phase is Phase.RUNNING and not plugins:
                    await store.advance_run(Phase.POST_PROCESSING)
                await story(store)
            finally:
                await store.close()

        with log.capture() as events:
            asyncio.run(told())
        self.events += events

    def to_its_end(self) -> TarUpload:
        """Upload until it is over, and return how it ended."""

        async def story(store: QuickStore) -> None:
            await self.begun(store)

        self.play(story)
        return self.ended

    async def begun(self, store: QuickStore, tar: Tar = TAR) -> None:
        """Do what the aggregator does for an upload, until it is over."""
        upload = self.upload()
        await upload.resume(store, 60.0)
        if store.snapshot().tar is None:
            await upload.begin(store, tar)
        while not await upload.over(store):
            pass
        found = store.snapshot().upload
        assert found is not None
        self.ended = found

    def words(self) -> str:
        """All that anybody could see of it."""
        shown = tar_upload(self.ended)
        return json.dumps([shown, repr(self.ended), self.events], default=str)


@pytest.fixture
def world(tmp_path: Path):
    """A world with a store that takes everything."""
    with Bucket(tmp_path) as bucket:
        world = World(tmp_path, bucket)
        yield world
        if world.events:
            assert SIGNATURE not in world.words()


def test_it_arrives_whole(world: World):
    """One PUT with the bytes, and no header but those that HTTP needs."""
    ended = world.to_its_end()

    (request,) = world.bucket.requests
    assert ("PUT", f"/bucket/run.tar.gz?{QUERY}") == (request.method, request.target)
    assert {"host": world.bucket.host, "content-length": str(len(BODY))} == request.headers
    assert BODY == request.body
    assert TarUpload(world.bucket.host, UploadState.UPLOADED, NOW, "", NOW) == ended
    assert ["Upload begins", "Tarball uploaded"] == [each["message"] for each in world.events]


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
    "no HTTP": (Say(200, cut=4), "its answer is not HTTP"),
    "silent": (Silence(), "timed out"),
}


@pytest.mark.parametrize("case", RETRIED)
def test_a_try_that_fails(case: str, tmp_path: Path):
    """It is said, and the next try begins at the start."""
    act, words = RETRIED[case]
    limits = replace(LIMITS, answer=0.5) if case == "silent" else LIMITS
    with Bucket(tmp_path, act, Say()) as bucket:
        world = World(tmp_path, bucket, limits=limits)
        assert UploadState.UPLOADED is world.to_its_end().state
        assert (2, BODY) == (len(bucket.requests), bucket.requests[-1].body)
    (failed,) = [each for each in world.events if each["message"].startswith("Upload failed")]
    assert str(failed["error"]).startswith(words)
    assert SIGNATURE not in world.words()


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
    assert "200 OK came before all was sent" in str(failed["error"])


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


def test_a_process_that_stops_leaves_it_to_the_next(world: World):
    """The next begins at the start, and its time goes on from the first."""
    world.bucket.script(Silence(after=1000), Say())

    async def stopped(store: QuickStore) -> None:
        upload = world.upload()
        await upload.resume(store, 60.0)
        await upload.begin(store, TAR)
        trying = asyncio.create_task(upload.over(store))
        await asyncio.to_thread(world.bucket.heard, 1)
        upload.stop()
        assert not await trying

    world.play(stopped)
    world.wall += 100
    ended = world.to_its_end()
    assert (UploadState.UPLOADED, NOW, NOW + 100) == (ended.state, ended.since, ended.at)
    assert BODY == world.bucket.requests[-1].body


class TestLongAway:
    """The process that comes back after the time is over tries it, from its start to its end."""

    def test_the_store_takes_it(self, world: World):
        """The aggregator was away, not the store."""
        world.play(self._begin(world))
        world.wall += 10_000
        ended = world.to_its_end()
        assert (UploadState.UPLOADED, NOW) == (ended.state, ended.since)
        assert [BODY] == [each.body for each in world.bucket.requests]

    def test_the_store_refuses_for_now(self, world: World):
        """One more failure ends it."""
        world.play(self._begin(world))
        world.wall += 10_000
        world.bucket.script(Say(503))
        ended = world.to_its_end()
        assert UploadState.FAILED is ended.state
        assert "given up after 3600 s: 503 Service Unavailable" == ended.error
        assert 1 == len(world.bucket.requests)

    def test_the_network_of_the_new_pod_is_late(self, world: World):
        """What fails in the first seconds is tried again."""
        world.options["reached_within"] = 30.0
        world.play(self._begin(world))
        world.wall += 10_000
        world.bucket.script(Cut(0), Say())
        assert UploadState.UPLOADED is world.to_its_end().state

    @staticmethod
    def _begin(world: World) -> Callable[[QuickStore], Awaitable[None]]:
        async def begun(store: QuickStore) -> None:
            upload = world.upload()
            await upload.resume(store, 60.0)
            await upload.begin(store, TAR)

        return begun


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
    assert f"the results have {LARGEST + 1} bytes so far, and object stores take at most" in said
    waiting = TarUpload(world.bucket.host, UploadState.WAITING, NOW)
    assert [waiting, waiting, replace(waiting, error=said)] == stands
    (warned,) = [each for each in world.events if each["level"] == "warning"]
    assert ("The upload may fail", said) == (warned["message"], warned["problem"])
    assert (UploadState.UPLOADED, "") == (world.ended.state, world.ended.error)


SIZES = {
    "more than a store takes": (
        LARGEST + 1,
        f"the tarball has {LARGEST + 1} bytes, and object stores take at most {LARGEST} in one "
        "upload",
    ),
    "not what was made": (7, "the tarball has 2097152 bytes, it was made with 7"),
}


@pytest.mark.parametrize("case", SIZES)
def test_a_tarball_that_cannot_be_uploaded(case: str, world: World):
    """Not a byte of it is sent."""
    size, words = SIZES[case]
    if size > LARGEST:
        with (world.folder / TAR.name).open("r+b") as file:
            file.truncate(size)

    async def story(store: QuickStore) -> None:
        await world.begun(store, replace(TAR, size=size))

    world.play(story)
    assert (UploadState.FAILED, words) == (world.ended.state, world.ended.error)
    assert not world.bucket.requests


class TestBeforeTheRun:
    """What is found before anything has started."""

    def test_a_store_that_is_there(self, world: World):
        """A TLS connection is made, and nothing is sent."""
        world.upload().check(NOW, 3600.0)

        with world.bucket.changed:
            assert world.bucket.changed.wait_for(lambda: world.bucket.handshakes == 1, 60.0)
        assert not world.bucket.requests

    def test_a_host_that_is_away(self, tmp_path: Path):
        """It is tried for a while, and then said."""
        with Bucket(tmp_path, listening=False) as bucket:
            with pytest.raises(UploadFailed) as raised:
                World(tmp_path, bucket).upload().check(NOW, 60.0)
            said = f"cannot connect to the upload host {bucket.host}: Connection refused"
        assert said == str(raised.value)

    def test_a_certificate_that_is_not_trusted(self, world: World):
        """That is said at once: it is not tried again."""
        stranger = Authority("somebody else")
        world.bucket.present(stranger.issue("store", ("127.0.0.1",), purpose=SERVER))
        world.options["reached_within"] = 1e9
        with pytest.raises(UploadFailed, match="its certificate is not accepted"):
            world.upload().check(NOW, 60.0)

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("Expires=1767268900", "the upload URL expires at 2026-01-01T12:01:40Z, but the run"),
            ("Expires=1767268700", "the upload URL expired at"),
        ],
    )
    def test_a_url_that_expires_too_soon(self, query: str, words: str, world: World):
        """Nothing is even connected."""
        world.bucket.point(f"{query}&Signature={SIGNATURE}")
        with pytest.raises(SettingsError) as raised:
            world.upload().check(NOW, 3600.0)
        (problem,) = raised.value.problems
        assert problem.startswith(f"UPLOAD_URL_FILE: {words}")
        assert 0 == world.bucket.connections

    @pytest.mark.parametrize(
        ("url", "words"),
        [("http://x/secret", "does not begin with https://"), (None, "No such file or directory")],
    )
    def test_what_is_no_url(self, url: str | None, words: str, world: World):
        """The file is named, its content is not."""
        world.bucket.url_file.unlink()
        if url is not None:
            world.bucket.url_file.write_text(url)
        with pytest.raises(SettingsError) as raised:
            world.upload().check(NOW, 3600.0)
        (problem,) = raised.value.problems
        assert words in problem
        assert "secret" not in problem

    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_a_ca_that_cannot_be_used(self, content: str | None, world: World):
        """The setting and the file are named."""
        world.bucket.ca.unlink()
        if content is not None:
            world.bucket.ca.write_text(content)
        with pytest.raises(UploadFailed) as raised:
            world.upload().check(NOW, 60.0)
        why = "No such file or directory" if content is None else "not PEM"
        assert str(raised.value).endswith(f": UPLOAD_CA: {world.bucket.ca}: {why}")


class TestAfterARestart:
    """A run that has begun goes on whatever has become of its URL."""

    def test_the_url_has_expired_and_its_host_is_another(self, world: World):
        """It is logged, and the new host is shown."""
        world.bucket.point(f"Expires=1767268801&Signature={SIGNATURE}")

        async def story(store: QuickStore) -> None:
            await store.note_upload(TarUpload("before", UploadState.WAITING, NOW))
            await world.upload().resume(store, 3600.0)
            world.ended = store.snapshot().upload

        world.play(story)
        assert (world.bucket.host, UploadState.WAITING) == (world.ended.host, world.ended.state)
        assert ["The upload may fail"] == [each["message"] for each in world.events]

    def test_the_url_is_gone(self, world: World):
        """The run does not end for it; the upload fails, and is tried again."""
        world.bucket.url_file.unlink()

        async def story(store: QuickStore) -> None:
            upload = world.upload()
            await store.note_upload(TarUpload("before", UploadState.WAITING, NOW))
            await upload.resume(store, 3600.0)
            await upload.begin(store, TAR)
            assert not await upload.over(store)
            world.ended = store.snapshot().upload

        world.play(story)
        assert "before" == world.ended.host
        assert "No such file or directory" in world.ended.error

    def test_the_run_was_over_without_one(self, world: World):
        """Nothing waits for ever: that nothing is uploaded is said, and nothing else changes."""

        async def story(store: QuickStore) -> None:
            await store.advance_run(Phase.CLOSED, tar=TAR)
            await world.upload().resume(store, 3600.0)
            assert store.snapshot().upload is None

        world.play(story)
        (said,) = world.events
        assert ("warning", world.bucket.host) == (said["level"], said["host"])
        assert (
            "Nothing is uploaded: the run was over before an upload was asked for"
            == (said["message"])
        )
        world.events.clear()

    def test_nobody_wants_it_any_more(self, world: World):
        """It has failed, so that nobody takes the results for uploaded; once over, it stays so."""

        async def story(store: QuickStore) -> None:
            await give_up_unwanted(store, NOW)
            assert store.snapshot().upload is None
            await store.note_upload(TarUpload("before", UploadState.WAITING, NOW))
            await give_up_unwanted(store, NOW + 1)
            world.ended = store.snapshot().upload
            await world.upload().resume(store, 3600.0)
            await world.upload().drop(store)
            assert world.ended == store.snapshot().upload

        world.play(story)
        wanted = TarUpload(
            "before", UploadState.FAILED, NOW + 1, "UPLOAD_URL_FILE is no longer set"
        )
        assert wanted == world.ended


def test_there_will_be_no_tarball(world: World):
    """Packing was given up."""

    async def story(store: QuickStore) -> None:
        upload = world.upload()
        await upload.resume(store, 60.0)
        await upload.drop(store)
        world.ended = store.snapshot().upload

    world.play(story)
    assert (UploadState.FAILED, "there is no tarball") == (world.ended.state, world.ended.error)
