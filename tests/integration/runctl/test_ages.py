"""Ages of heartbeats grow although the server says that nothing has changed."""

from types import SimpleNamespace

import pytest

from reporter.runctl import server as client
from reporter.runctl.server import AGES, IDLE, Address, ByHttp, StatusServer
from tests.blackbox.ctl.scripted import Scripted, entry, run_status
from tests.scripted_server import Say


def test_a_run_in_which_nothing_happens():
    """Only for a while is the last document good enough; then it is asked for anew."""
    now, tag = [100.0], {"ETag": '"7"'}
    heard = [run_status("running", entry("e2e", **{"last-heartbeat": age})) for age in (3, 4, 14)]
    with Scripted(status=[Say(body=each, headers=tag) for each in heard]) as server:
        chosen = ByHttp(StatusServer(Address(server.url)), clock=lambda: now[0])
        seen = []
        for later in (0.0, AGES / 2, AGES):
            now[0] = 100.0 + later
            document = chosen.look().document
            assert document is not None
            seen.append(document["plugins"][0]["last-heartbeat"])
        chosen.server.close()

    assert [3, 3, 14] == seen
    assert [False, True, False] == ["if-none-match" in each.headers for each in server.requests]


def test_a_document_that_did_not_come_after_its_summary():
    """The summary's tag is of the same revision, but does not stand for the entries."""
    tag, run = {"ETag": '"7"'}, run_status("complete", entry("e2e"))
    summary = {name: value for name, value in run.items() if name != "plugins"} | {
        "counts": dict.fromkeys(("entries", "decided", "received", "failed", "unknown"), 1)
    }
    with Scripted(status=[Say(503), Say(body=run, headers=tag)]) as server:
        server.answer("/status?summary=true", Say(body=summary, headers=tag))
        chosen = ByHttp(StatusServer(Address(server.url)))
        looks = [chosen.look(entries=False), chosen.look(), chosen.look()]
        chosen.server.close()

    assert [False, False, True] == ["plugins" in (look.document or {}) for look in looks]


@pytest.mark.parametrize(("idle", "connections"), [(IDLE, 1), (-1.0, 2)])
def test_a_connection_that_was_not_used_for_long_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch, idle: float, connections: int
) -> None:
    """The aggregator ends it after ten seconds, which may be the pause between two looks."""
    monkeypatch.setattr(client, "IDLE", idle)
    with Scripted(status=Say(body=run_status("running", entry("e2e")))) as server:
        chosen = ByHttp(StatusServer(Address(server.url)))
        for _ in range(2):
            assert chosen.look().document is not None
        chosen.server.close()

        assert connections == server.connections


def test_a_connection_whose_answer_was_read_slowly_is_not_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For the aggregator it is idle since its last byte, which may have waited in buffers."""
    now = 100.0
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now))
    with Scripted(status=Say(body=run_status("running", entry("e2e")))) as server:
        chosen = StatusServer(Address(server.url))
        with chosen.open("/status") as response:
            response.read()
            now += 2 * IDLE
        assert 200 == chosen.get("/status").status
        chosen.close()

        assert 2 == server.connections
