"""Connections of the API client: nothing is left open, however they fail."""

import gc
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from reporter.common.lifecycle import Stop
from reporter.errors import Unavailable
from reporter.kube.api import KubeApi
from tests.calm import Calm
from tests.fakekube import FakeKube
from tests.integration.kube.connecting import full_backlog, mute_peer, read

TRIES = 300


def test_a_reset_between_connect_and_handshake_leaves_no_socket_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The standard library forgets such a socket: an outage would cost descriptors."""
    forgotten: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", forgotten.append)
    gc.collect()  # what earlier tests have left
    forgotten.clear()
    with socket.create_server(("127.0.0.1", 0)) as listener, FakeKube() as fake:

        def reset() -> None:
            for _ in range(TRIES):
                connection, _ = listener.accept()
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                connection.close()

        resetting = threading.Thread(target=reset)
        resetting.start()
        api = KubeApi.connect(
            f"https://127.0.0.1:{listener.getsockname()[1]}",
            ca_file=fake.ca_file,
            token_file=fake.token_file,
        )
        for _ in range(TRIES):
            with pytest.raises(Unavailable):
                read(api)
        resetting.join()
        api.close()
    gc.collect()

    assert [] == [found.exc_value for found in forgotten]


@pytest.mark.parametrize("peer", [mute_peer, full_backlog])
def test_a_connection_on_its_way_does_not_outlive_the_stop(
    peer: Callable[[], AbstractContextManager[str]],
) -> None:
    """Neither the connect nor the handshake takes its 3 s once the process is to end."""
    with FakeKube() as fake, peer() as server:
        api = KubeApi.connect(server, ca_file=fake.ca_file, token_file=fake.token_file)
        stop = Stop()
        api.hurry_after(lambda: stop.requested_at)
        threading.Timer(0.2, stop.request).start()
        with Calm() as calm, pytest.raises(Unavailable):
            read(api)
        assert stop.requested_at is not None
        assert calm.seconds < 2.2

        # What begins after the stop has its own time.
        begun = time.monotonic()
        with pytest.raises(Unavailable):
            read(api, timeout=1.0)
        assert 0.9 < time.monotonic() - begun
        stop.wake.close()
        api.close()
