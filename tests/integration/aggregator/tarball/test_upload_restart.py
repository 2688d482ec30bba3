"""L16: an upload that another process goes on with, at once or after a long time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from reporter.aggregator.tarball.upload import give_up_unwanted
from reporter.run.state import Phase
from reporter.run.tar_upload import TarUpload, UploadState
from tests.aggregators.bucket import SIGNATURE
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.tarball.scene import BODY, NOW, TAR, World
from tests.scripted_server import Cut, Say, Silence


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
        assert "No upload: the run was over before one was requested" == (said["message"])
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
