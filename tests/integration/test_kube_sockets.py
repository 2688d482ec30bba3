"""Connections of the API client: nothing is left open, however they fail."""

import gc
import socket
import struct
import sys
import threading
from typing import Any

import pytest

from reporter.errors import Unavailable
from reporter.kube import KubeApi
from tests.fakekube import FakeKube

TRIES = 300


def test_a_reset_between_connect_and_handshake_leaves_no_socket_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The standard library forgets such a socket: an outage would cost descriptors."""
    forgotten: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", forgotten.append)
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
                api.get_job("default", "validate")
        resetting.join()
        api.close()
    gc.collect()

    assert [] == [found.exc_value for found in forgotten]
