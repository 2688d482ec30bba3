"""What OpenSSL, other Pythons and Go say of the certificates of a run."""

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from reporter.aggregator.certificates.run import (
    Issued,
)
from reporter.aggregator.certificates.tls import worker_context
from tests.bed import binaries
from tests.integration.aggregator.certificates.world import HANG, LOGS_1, ROOT, RUN, client_context


@contextmanager
def listening(issued: Issued) -> Iterator[int]:
    """A worker listener for one connection: reads a request, answers 200 and closes."""
    context = worker_context(issued.ca, issued.server)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(HANG)

        def serve() -> None:
            with suppress(OSError):
                raw, _ = listener.accept()
                raw.settimeout(HANG)
                with context.wrap_socket(raw, server_side=True) as connection:
                    data = b""
                    while not data.endswith((b"0\r\n\r\n", b"Q\n")) and (
                        piece := connection.recv(4096)
                    ):
                        data += piece
                    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    connection.sendall(answer)
                    connection.unwrap()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def run(command: list[str], *, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=HANG, check=False
    )


OPENSSL = shutil.which("openssl")


needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="there is no openssl program")


@needs_openssl
@pytest.mark.parametrize(
    ("name", "options", "good"),
    [
        ("server", ["-purpose", "sslserver", "-verify_ip", "127.0.0.1"], True),
        ("server", ["-purpose", "sslserver", "-verify_ip", "::1"], True),
        ("server", ["-purpose", "sslserver", "-verify_hostname", "aggregator.ns.svc"], True),
        ("server", ["-purpose", "sslserver", "-verify_hostname", "other"], False),
        ("server", ["-purpose", "sslclient"], False),
        ("e2e", ["-purpose", "sslclient"], True),
        ("logs@node1", ["-purpose", "sslclient"], True),
        ("e2e", ["-purpose", "sslserver"], False),
    ],
)
def test_openssl_verifies_strictly(files: Path, name: str, options: list[str], good: bool) -> None:
    """`-x509_strict` asks for all that newer Pythons ask for."""
    assert OPENSSL is not None
    verify = [OPENSSL, "verify", "-x509_strict", *options, "-CAfile", f"{files}/ca.pem"]
    done = run([*verify, f"{files}/{name}.crt"])

    assert good == (done.returncode == 0), done.stdout + done.stderr


@needs_openssl
@pytest.mark.parametrize(
    ("options", "good"),
    [(["-tls1_2"], True), (["-tls1_3"], True), (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], False)],
)
def test_openssl_connects(issued: Issued, files: Path, options: list[str], good: bool) -> None:
    """Mutual TLS with `s_client`, both versions; A55: not with TLS 1.1."""
    assert OPENSSL is not None
    with listening(issued) as port:
        done = run(
            [
                *(OPENSSL, "s_client", "-connect", f"127.0.0.1:{port}", "-x509_strict"),
                *("-CAfile", f"{files}/ca.pem", "-verify_ip", "127.0.0.1", "-verify_return_error"),
                *("-cert", f"{files}/e2e.crt", "-key", f"{files}/e2e.key", "-ign_eof", *options),
            ],
            text="x\nQ\n",
        )

    assert good == ("HTTP/1.1 200 OK" in done.stdout), done.stdout + done.stderr


PEER = """
import socket, ssl, sys
port, ca, cert, key = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.load_cert_chain(cert, key)
with socket.create_connection(("127.0.0.1", int(port)), 20) as raw:
    with context.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
        connection.sendall(b"x\\nQ\\n")
        strict = bool(context.verify_flags & ssl.VERIFY_X509_STRICT)
        print(sys.version_info[1], strict, connection.recv(15))
"""


def pythons() -> list[str]:
    """This Python, and one from the other end of the range if it is there."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    bash = shutil.which("bash")
    found = run([bash, str(ROOT / "scripts/python.sh"), "other", version]).stdout if bash else ""
    return [sys.executable, *filter(None, [found.strip()])]


@pytest.mark.parametrize("which", ["this", "other"])
def test_pythons_default_context_connects(issued: Issued, files: Path, which: str) -> None:
    """Strict since 3.13: what `ssl.create_default_context` gives a plugin's author."""
    found = pythons()
    if which == "other" and len(found) == 1:
        pytest.skip("no second Python version on this machine")
    with listening(issued) as port:
        pair = [f"{files}/sysd.crt", f"{files}/sysd.key"]
        arguments = [str(port), f"{files}/ca.pem", *pair]
        done = run([found[which == "other"], "-I", "-c", PEER, *arguments])

    minor, strict, answer = done.stdout.split(maxsplit=2) or ("", "", done.stderr)
    assert "b'HTTP/1.1 200 OK'" == answer.strip()
    assert str(int(minor) >= 13) == strict


@pytest.fixture(scope="module")
def go_peer() -> Path:
    """The Go program of `tests/bed/tlspeer`, built once for its source."""
    try:
        return binaries.program("tlspeer")
    except binaries.BedUnavailable as error:
        if os.environ.get("REQUIRE_CLUSTER") == "1":
            pytest.fail(f"REQUIRE_CLUSTER=1, but {error}", pytrace=False)
        pytest.skip(str(error))


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("name", "purpose", "host", "good"),
    [
        ("server", "server", ["127.0.0.1"], True),
        ("server", "server", ["::1"], True),
        ("server", "server", ["aggregator.ns.svc"], True),
        ("server", "server", ["other"], False),
        ("server", "client", [], False),
        ("e2e", "client", [], True),
        ("logs@node2", "client", [], True),
        ("sysd", "server", [], False),
    ],
)
def test_go_verifies(
    go_peer: Path, files: Path, name: str, purpose: str, host: list[str], good: bool
) -> None:
    """The standard library that Sonobuoy's workers use."""
    done = run([str(go_peer), "verify", f"{files}/ca.pem", f"{files}/{name}.crt", purpose, *host])

    assert good == (done.returncode == 0), done.stderr


@pytest.mark.cluster
def test_a_go_client_connects(go_peer: Path, issued: Issued, files: Path) -> None:
    """It reads the key as a Sonobuoy worker does, and sends a chunked PUT."""
    with listening(issued) as port:
        pair = [f"{files}/sysd.crt", f"{files}/sysd.key"]
        dial = [str(go_peer), "dial", f"127.0.0.1:{port}", "127.0.0.1", f"{files}/ca.pem", *pair]
        done = run(dial)

    assert ("200 OK TLS 1.3\n", "") == (done.stdout, done.stderr)


@pytest.mark.cluster
def test_a_go_server_accepts_our_clients(
    go_peer: Path, issued: Issued, files: Path, tmp_path: Path
) -> None:
    """With the same certificates: a Go aggregator of the run would know them."""
    server = [f"{files}/server.crt", f"{files}/server.key"]
    with subprocess.Popen(
        [str(go_peer), "accept", f"{files}/ca.pem", *server],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            context = client_context(issued.ca, issued.clients[LOGS_1], tmp_path)
            with (
                socket.create_connection(("127.0.0.1", port), HANG) as raw,
                context.wrap_socket(raw, server_hostname="localhost") as connection,
            ):
                connection.recv(1)
            said, complaint = process.communicate(timeout=HANG)
        finally:
            process.kill()

    assert (f"urn:status-aggregator:{RUN}:logs:node1 logs\n", "") == (said, complaint)
