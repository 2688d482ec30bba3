"""Places for uploads and the queue in front of them."""

import asyncio

import pytest

from reporter.aggregator.uploads.slots import Slots
from reporter.core.run.plan import Key
from tests.integration.aggregator_http.scene import situation

A, B, C = (Key(name, "global") for name in "abc")


async def queue(slots: Slots, *keys: Key) -> list[asyncio.Task]:
    """Let somebody wait for each key, in this order."""
    tasks = [asyncio.create_task(slots.take(key, 60.0)) for key in keys]
    await asyncio.sleep(0)
    return tasks


@situation
async def test_first_come_first_served():
    """A place that comes free goes to whoever waits longest."""
    slots = Slots(1, 1, 9, 4)
    assert await slots.take(A, 0.0)
    first, second = await queue(slots, B, C)
    slots.release(A)
    assert await first

    assert not second.done()
    slots.release(B)
    assert await second


@situation
async def test_a_key_that_has_its_share_holds_up_nobody():
    """Others pass those who wait behind it."""
    slots = Slots(3, 2, 9, 4)
    for _ in range(2):
        assert await slots.take(A, 0.0)
    (more,) = await queue(slots, A)

    assert await slots.take(B, 0.0)
    assert (3, {A: 3, B: 1}) == (slots.taken, slots.present)
    slots.release(B)
    assert not more.done()
    slots.release(A)
    assert await more


@situation
async def test_waiting_in_vain():
    """Nobody who has given up is served, or counted."""
    slots = Slots(1, 1, 9, 4)
    assert await slots.take(A, 0.0)
    assert not await slots.take(B, 0.01)
    slots.release(A)

    assert (0, {}) == (slots.taken, slots.present)


@situation
async def test_a_waiter_that_is_cancelled():
    """Before its turn it leaves the queue; at its turn it passes the place on."""
    slots = Slots(1, 1, 9, 4)
    assert await slots.take(A, 0.0)
    early, late, last = await queue(slots, B, B, C)
    early.cancel()
    await asyncio.sleep(0)
    slots.release(A)
    late.cancel()
    assert await last
    for task in (early, late):
        with pytest.raises(asyncio.CancelledError):
            await task

    slots.release(C)
    assert (0, {}) == (slots.taken, slots.present)
