"""Who gets in at all: handshakes that fail are seen with reason and peer, and store nothing."""

import asyncio
import contextlib
import datetime
import socket
import ssl
import warnings

import pytest

from tests.aggregators import run_certificates as certs
from tests.integration.aggregator.api.scene import E2E, RESULT, serving, situation
from tests.integration.aggregator.api.wire import connected, request

HOUR = datetime.timedelta(hours=1)


WRONG = {
    "A19 no certificate": lambda: None,
    "A55 expired": lambda: certs.authority().pair(
        "e2e", "e2e", certs.uri("e2e", "*"), start=-2 * HOUR, end=-HOUR
    ),
}


@pytest.mark.parametrize("pair", WRONG.values(), ids=WRONG.keys())
@situation
async def test_certificates_that_are_not_let_in(tmp_path, pair):
    """A19, A55: the handshake fails and is counted; TLS's own alert says so to whoever is refused.

    An end without a word looks like a network's fault.
    """
    context = certs.client_context(pair())

    def read(address: tuple[str, int]) -> bytes:
        with (
            socket.create_connection(address, timeout=60) as plain,
            context.wrap_socket(plain, server_hostname=address[0]) as wire,
        ):
            return wire.recv(1)

    async with serving(tmp_path) as scene:
        with pytest.raises(ssl.SSLError) as told:
            await asyncio.to_thread(read, scene.address)
        await scene.seen.until(lambda: scene.seen.handshakes)

        assert [("certificate", "127.0.0.1")] == scene.seen.handshakes
        assert [] == scene.seen.requests

    assert "ALERT" in told.value.reason


@situation
async def test_a_client_with_an_old_protocol(tmp_path):
    """A55: TLS 1.1 is refused."""
    context = certs.client_context(certs.client("e2e"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with serving(tmp_path) as scene:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            async with scene.connect(context=context):
                pass
        await scene.seen.until(lambda: scene.seen.handshakes)

        assert [("protocol", "127.0.0.1")] == scene.seen.handshakes


@situation
async def test_plain_http_on_the_tls_port(tmp_path):
    """A19: closed without an answer."""
    async with serving(tmp_path) as scene, connected(scene.address, None) as wire:
        await wire.send(request("PUT", RESULT[E2E], b"x"))
        said = await wire.rest()
        await scene.seen.until(lambda: scene.seen.handshakes)

        assert (False, [("protocol", "127.0.0.1")]) == (b"HTTP" in said, scene.seen.handshakes)


@situation
async def test_a_stalled_handshake(tmp_path):
    """A37: nothing is said: closed when the time for a handshake is over."""
    async with (
        serving(tmp_path, limits={"HANDSHAKE": 0.3}) as scene,
        connected(scene.address, None) as wire,
    ):
        await wire.rest()
        await scene.seen.until(lambda: scene.seen.handshakes)

        assert [("timeout", "127.0.0.1")] == scene.seen.handshakes


@situation
async def test_a_client_that_leaves_in_the_handshake(tmp_path):
    """A port scanner: counted as closed, whatever it left behind."""
    async with serving(tmp_path) as scene:
        async with connected(scene.address, None) as wire:
            await wire.send(b"\x16\x03\x01")
        await scene.seen.until(lambda: scene.seen.handshakes)

        assert "closed" == scene.seen.handshakes[0][0]


@pytest.mark.parametrize(
    ("sans", "code"),
    [
        (("e2e",), 200),
        (("e2e", "spiffe://cluster/ns/x"), 200),
        (("other",), 403),
        (("e2e", "second"), 403),
        (("spiffe://cluster/ns/x",), 403),
        (("e2e", certs.uri("e2e", "*", run="another-run")), 403),
        (("e2e", certs.uri("e2e", "*"), certs.uri("sysd", "*")), 403),
        (("other", certs.uri("e2e", "global")), 200),
    ],
)
@situation
async def test_names_in_certificates(tmp_path, sans, code):
    """A35, A55: our URI decides; without one, a single DNS name that is the plugin does."""
    pair = certs.authority().pair("e2e", *sans)
    async with serving(tmp_path) as scene:
        assert code == (await scene.ask("PUT", RESULT[E2E], b"x", pair=pair)).status


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@situation
async def test_both_versions_of_tls(tmp_path, version):
    """A body of many records arrives whole, and the serial number goes with it."""
    context = certs.client_context(certs.client("e2e"))
    context.minimum_version = context.maximum_version = version
    body = bytes(range(256)) * 20_000
    async with serving(tmp_path) as scene:
        async with scene.connect(context=context) as wire:
            await wire.send(request("PUT", RESULT[E2E], body))
            assert 200 == (await wire.reply()).status

        assert {"plugins/e2e/results/global/result": body} == scene.files()
        assert int(scene.entry(E2E).record.serial, 16) > 0


@situation
async def test_fifty_stalled_handshakes_and_a_good_upload(tmp_path):
    """A37: whoever stalls holds up nobody."""
    async with serving(tmp_path) as scene, contextlib.AsyncExitStack() as stack:
        for _ in range(50):
            wire = await stack.enter_async_context(connected(scene.address, None))
            await wire.send(b"\x16\x03\x01\x02\x00\x01\x00")
        reply = await asyncio.wait_for(scene.put(E2E, b"good"), 10)

        assert 200 == reply.status
