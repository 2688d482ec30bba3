"""Uploads when the disk is full, the store broken or the run closing."""

import pytest

from reporter.ledger import StoreError
from reporter.run.record import Cause, Failure
from reporter.run.upload import UploadConclusion, UploadOutcome
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api.scene import (
    E2E,
    HEALTH,
    NODE1,
    NODE2,
    RESULT,
    serving,
    situation,
)
from tests.integration.aggregator.api.wire import head, request


@situation
async def test_a_full_disk(tmp_path):
    """Free space below reserve and length: 507 before the body is read."""
    async with serving(tmp_path, limits={"disk_reserve_bytes": 2**62}) as scene:
        reply = await scene.put(E2E, b"result")

        assert (507, b"result e2e/global: not enough disk space\n") == reply.said
        assert scene.entry(E2E).retrying


@situation
async def test_a_run_that_closes_over_an_upload(tmp_path):
    """The result comes too late, though it began in time: 410."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(head("PUT", RESULT[E2E], "Content-Length: 4"), b"ha")
        await scene.holds(wire)
        gone = Failure("final", 1.0, "pod gone", Cause.POD_FAILED)
        await scene.store.mark_all_failed(dict.fromkeys((E2E, NODE1, NODE2), gone))
        await scene.close_run()
        await wire.send(b"lf")

        assert (410, b"run is closed; result e2e/global not accepted\n") == (
            await wire.reply()
        ).said


class Unwritable(QuickStore):
    """A store whose disk is broken."""

    writable = False

    async def mark_failed(self, key, failure):
        """Fail."""
        raise StoreError("disk broken")

    async def record_progress(self, key, update, id, *, at):  # noqa: A002
        """Fail."""
        raise StoreError("disk broken")


@situation
async def test_a_store_that_cannot_be_written(tmp_path):
    """503 with Retry-After for uploads and updates; heartbeats go on."""
    async with serving(tmp_path, store=Unwritable()) as scene:
        upload, update = await scene.put(E2E, b"result"), await scene.post(b"{}")
        beat = await scene.ask("GET", HEALTH)

        assert (503, 503, 200) == (upload.status, update.status, beat.status)
        assert all(int(reply.headers["retry-after"]) > 0 for reply in (upload, update))
        assert upload.body.startswith(b"result e2e/global: ")


class Says:
    """Takes uploads unread and says what a test wants."""

    def __init__(self, verdict: UploadConclusion | Exception) -> None:
        self.verdict = verdict

    async def take(self, key, meta, sender):
        """Say it."""
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    def free_for(self, length):
        """There is room."""
        return True


VERDICTS = [
    (UploadConclusion(UploadOutcome.ACCEPTED, digest="ab" * 32), 200, b""),
    (UploadConclusion(UploadOutcome.DUPLICATE), 409, b"result e2e/global already received\n"),
    (
        UploadConclusion(UploadOutcome.TOO_LARGE, "exceeds 7 bytes"),
        413,
        b"result e2e/global exceeds 7 bytes\n",
    ),
    (
        UploadConclusion(UploadOutcome.REFUSED, "not gzip"),
        500,
        b"error handling result e2e/global: not gzip\n",
    ),
    (
        UploadConclusion(UploadOutcome.UNWRITTEN, "EIO"),
        500,
        b"error handling result e2e/global: EIO\n",
    ),
    (
        UploadConclusion(UploadOutcome.DISK_FULL, "no space"),
        507,
        b"error handling result e2e/global: no space\n",
    ),
]


@pytest.mark.parametrize(("verdict", "code", "body"), VERDICTS)
@situation
async def test_verdicts_as_answers(tmp_path, verdict, code, body):
    """What became of a body that nobody read to its end is told, and seen by its sender."""
    async with serving(tmp_path, taker=Says(verdict)) as scene:
        reply = await scene.put(E2E, b"x" * 1_000_000)

        assert (code, body, "close") == (*reply.said, reply.headers["connection"])
        assert (code == 200) == ("result-digest" in reply.headers)


@situation
async def test_a_failure_nobody_thought_of(tmp_path):
    """500 without a word about it, one observation, and the place is free again."""
    async with serving(tmp_path, taker=Says(ZeroDivisionError("oops"))) as scene:
        reply = await scene.put(E2E, b"result")

        assert (500, b"", "close") == (*reply.said, reply.headers["connection"])
        assert ["oops"] == [str(error) for error in scene.seen.surprises]
        assert ({}, 0) == (scene.intake.uploads.present, scene.intake.uploads.active)
        scene.seen.surprises.clear()


@situation
async def test_an_answer_ends_the_connection(tmp_path):
    """Answers to uploads carry `Connection: close`, and the server keeps its word."""
    async with serving(tmp_path) as scene, scene.connect() as wire:
        await wire.send(request("PUT", RESULT[E2E], b"x"), request("PUT", RESULT[E2E], b"x"))
        reply = await wire.reply()

        assert (200, "close", b"") == (reply.status, reply.headers["connection"], await wire.rest())
