"""`POST /stop`: who may end a run early, and what becomes of it."""

import json

import pytest

from reporter.ledger import StoreFull
from reporter.run.entry import State
from reporter.run.plan import Key
from reporter.run.record import Cause, Rank, Record
from tests.aggregators.stores import QuickStore
from tests.integration.aggregator.api.scene import E2E, NODE1, situation
from tests.integration.aggregator.api.test_status import LOCAL, Status, serving
from tests.integration.aggregator.api.wire import Reply

JSON = "Content-Type: application/json", "Content-Length: 0"
RESULT = Record(Rank.RESULT, 1.0, digest="ab" * 32, size=3)


async def stop(status: Status, query: str = "", *headers: str, **how: str) -> Reply:
    return await status.ask(f"/stop{query}", *(headers or JSON), method="POST", **how)


def open_keys(status: Status) -> set[Key]:
    entries = status.store.snapshot().entries
    return {key for key, entry in entries.items() if not entry.terminal}


@situation
async def test_what_came_is_kept_and_the_rest_has_failed():
    """The same once more changes nothing."""
    async with serving() as status:
        await status.store.record_result(E2E, RESULT)
        rest = len(open_keys(status))
        first, second = await stop(status), await stop(status)
        entries = status.store.snapshot().entries

    assert [rest, 0] == [json.loads(each.body)["stopped"] for each in (first, second)]
    assert State.COMPLETE is entries[E2E].state
    record = entries[NODE1].record
    assert record is not None
    assert (Cause.STOPPED, "Stopped") == (record.cause, record.reason)
    assert {"error": record.text, "cause": "stopped", "reason": "Stopped"} == json.loads(
        record.document
    )


@situation
async def test_a_plugin_is_stopped_and_the_others_go_on():
    async with serving() as status:
        unknown = await stop(status, "?plugin=nobody")
        before = open_keys(status)
        answer = await stop(status, f"?plugin={NODE1.plugin}")
        after = open_keys(status)

    assert (404, b"the run has no such plugin\n") == unknown.said
    assert 200 == answer.status
    assert {key for key in before if key.plugin != NODE1.plugin} == after


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?plugin=", 404),
        ("?plugin", 404),
        ("?plugn=sysd", 400),
        ("?Plugin=sysd", 400),
        ("?plugin=e2e&plugin=sysd", 400),
    ],
)
@situation
async def test_who_does_not_name_a_plugin_rightly_stops_nothing(query, expected):
    """It cannot be taken back."""
    async with serving() as status:
        before = open_keys(status)
        answer = await stop(status, query)
        after = open_keys(status)

    assert expected == answer.status
    assert before == after


@pytest.mark.parametrize(
    ("headers", "how", "expected"),
    [
        (JSON, {"host": "evil.example:8081"}, 403),
        (JSON, {"peer": "127.0.0.6"}, 403),
        (("Content-Type: text/plain", "Content-Length: 0"), {}, 415),
        (("Content-Length: 0",), {}, 415),
    ],
    ids=["lured by DNS", "a mesh's proxy", "a form of another page", "no type"],
)
@situation
async def test_who_may_only_read(headers, how, expected):
    """Also where everybody may read."""
    async with serving(settings={"status_scope": "any"}) as status:
        before = open_keys(status)
        answer = await stop(status, "", *headers, **how)
        read = await status.ask("/stop", host=LOCAL)
        after = open_keys(status)

    assert (expected, 405) == (answer.status, read.status)
    assert before == after


@situation
async def test_a_stop_that_cannot_be_stored_is_none():
    full = False

    def commit() -> None:
        if full:
            raise StoreFull("no space left")

    async with serving(store=QuickStore(before_commit=commit)) as status:
        full = True
        answer = await stop(status)
        left = open_keys(status)
        full = False

    assert 503 == answer.status
    assert E2E in left
