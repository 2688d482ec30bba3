"""When `status-ctl retrieve` says that it has downloaded the results."""

import argparse
import hashlib
import io
import os
import stat
from typing import Any

import pytest

from reporter.runctl import retrieve
from reporter.runctl.archive import confirm, fetch
from reporter.runctl.server import Address, StatusServer
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.test_retrieve_command import GOOD, confirmed, serving


@pytest.mark.parametrize(
    ("more", "steps"),
    [((), ["file", "directory", "confirm"]), (("--extract",), ["file", "all", "confirm"])],
)
def test_it_is_confirmed_once_it_is_on_the_disk(
    home: Home, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], steps: list[str]
) -> None:
    """Not before: from then on `delete` does not ask."""
    done: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    def confirmed_now(*given: Any) -> str:
        done.append("confirm")
        return confirm(*given)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "sync", lambda: done.append("all"))
    monkeypatch.setattr(retrieve, "confirm", confirmed_now)
    monkeypatch.chdir(home.folder)
    parser = argparse.ArgumentParser()
    retrieve.arguments(parser)
    with serving() as server:
        assert 0 == retrieve.run(parser.parse_args(["--url", server.url, *more]))

    assert steps == done
    assert [hashlib.sha256(GOOD).hexdigest()] == confirmed(server)


def test_it_is_confirmed_on_a_connection_of_its_own() -> None:
    """Of a slow download the last bytes come from buffers: the aggregator may have ended its."""
    with serving() as server:
        chosen = StatusServer(Address(server.url))
        digest = fetch(chosen, io.BytesIO(), len(GOOD))

        assert "" == confirm(chosen, digest)
        assert 2 == server.connections
