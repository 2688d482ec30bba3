"""Places for uploads and the queue in front of them."""

import asyncio
from collections.abc import Collection

import pytest

from reporter.aggregator.intake.slots import Slots
from reporter.run.plan import Key
from tests.integration.aggregator.api.scene import situation
from tests.integration.aggregator.api.wire import HANG

A, B, C = (Key(name, "global") for name in "abc")
ONE_PLUGIN = [Key("many", f"node{number}") for number in range(10)]


def slots_of(
    total: int, per_key: int = 1, *, opened: Collection[str] = (), waiting: int = 99
) -> Slots:
    """Places of a run in which these plugins have open entries."""
    return Slots(total, per_key, waiting, 4, lambda: opened)


async def queue(slots: Slots, *keys: Key) -> list[asyncio.Task]:
    """Let somebody wait for each key, in this order."""
    tasks = [asyncio.create_task(slots.take(key, 60.0)) for key in keys]
    await asyncio.sleep(0)
    return tasks


@situation
async def test_first_come_first_served():
    """A place that comes free goes to whoever waits longest."""
    slots = slots_of(1)
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
    slots = slots_of(3, 2)
    for _ in range(2):
        assert await slots.take(A, 0.0)
    (more,) = await queue(slots, A)

    assert await slots.take(B, 0.0)
    assert (3, {A: 3, B: 1}) == (slots.taken, slots.present)
    slots.release(B)
    assert not more.done()
    slots.release(A)
    assert await more


@pytest.mark.parametrize(
    ("total", "opened", "most"),
    [
        (8, ["many"], 8),
        (8, ["many", "b"], 7),
        (8, ["b", "c"], 6),
        (8, ["many", *"bcdefgh"], 4),
        (9, ["many", *"bcdefgh"], 5),
        (1, ["many", "b"], 1),
    ],
)
@situation
async def test_one_plugin_leaves_places_for_others(total, opened, most):
    """One for each that has open entries, but never more than half of them."""
    slots = slots_of(total, opened=opened)
    taken = [await slots.take(key, 0.0) for key in ONE_PLUGIN]

    assert [True] * most + [False] * (len(ONE_PLUGIN) - most) == taken
    assert slots.available(B) is (most < total)


@situation
async def test_a_place_goes_to_the_plugin_that_has_fewest():
    """There to a key that has none: whoever waits longer with another upload comes after it."""
    slots = slots_of(4, 2)
    first, second, third, fourth, *_ = ONE_PLUGIN
    for key in (first, second, third, B):
        assert await slots.take(key, 0.0)
    again, fresh, other = await queue(slots, first, fourth, B)
    slots.release(second)
    assert await other
    slots.release(third)
    assert await fresh
    assert not again.done()
    slots.release(B)
    assert await again


@situation
async def test_plugins_that_have_as_many_places_have_one_in_turn():
    """Whose queue has been empty meanwhile is behind those who waited then."""
    slots = slots_of(1)
    first, second, late, *_ = ONE_PLUGIN
    assert await slots.take(first, 0.0)
    (before,) = await queue(slots, second)
    slots.release(first)
    assert await before
    other, again = await queue(slots, B, late)
    slots.release(second)
    assert await other

    assert not again.done()
    slots.release(B)
    assert await again


@situation
async def test_the_others_are_through():
    """Places that were left for them go to those who wait, all at once."""
    opened = {"many", "b", "c"}
    slots = slots_of(4, opened=opened)
    for key in ONE_PLUGIN[:2]:
        assert await slots.take(key, 0.0)
    waiting = await queue(slots, *ONE_PLUGIN[2:6])
    opened -= {"b", "c"}
    slots.release(ONE_PLUGIN[0])
    await asyncio.wait_for(asyncio.gather(*waiting[:3]), HANG)

    assert (4, False) == (slots.taken, waiting[3].done())


@situation
async def test_waiting_in_vain():
    """Nobody who has given up is served, or counted."""
    slots = slots_of(1)
    assert await slots.take(A, 0.0)
    assert not await slots.take(B, 0.01)
    slots.release(A)

    assert (0, {}) == (slots.taken, slots.present)


@situation
async def test_a_waiter_that_is_cancelled():
    """Before its turn it leaves the queue; at its turn it passes the place on."""
    slots = slots_of(1)
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
