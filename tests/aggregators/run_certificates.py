"""Certificates of a run, good ones and all the wrong kinds, made once per test process."""

import functools
import os
import ssl
from datetime import timedelta
from typing import NamedTuple

from tests import certificates
from tests.certificates import HOUR

RUN = "0f3f2a4e-0000-4000-8000-000000000001"


class Pair(NamedTuple):
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


class Authority(certificates.Authority):
    """A certificate authority whose certificates are bytes."""

    @property
    def certificate(self) -> bytes:
        """The CA's certificate."""
        return self.pem.encode()

    def pair(
        self,
        name: str,
        *names: str,
        start: timedelta = -HOUR,
        end: timedelta = HOUR,
        server: bool = False,
    ) -> Pair:
        """Issue a certificate for a client, or for a server."""
        purpose = certificates.SERVER if server else certificates.CLIENT
        made = self.issue(name, names, purpose=purpose, valid=(start, end))
        return Pair(made.certificate.encode(), made.sec1.encode())


def uri(plugin: str, node: str, run: str = RUN) -> str:
    """The URI of a client certificate."""
    return f"urn:status-aggregator:{run}:{plugin}:{node}"


@functools.cache
def authority() -> Authority:
    """The CA of the run under test."""
    return Authority("status-aggregator CA test")


@functools.cache
def stranger() -> Authority:
    """Another run's CA."""
    return Authority("status-aggregator CA other")


@functools.cache
def server() -> Pair:
    """The server's certificate."""
    return authority().pair("status-aggregator", "127.0.0.1", "localhost", server=True)


@functools.cache
def client(plugin: str, node: str = "*") -> Pair:
    """A worker's certificate, of the shape that a run issues."""
    return authority().pair(plugin, plugin, uri(plugin, node))


def client_context(pair: Pair | None, ca: bytes | None = None) -> ssl.SSLContext:
    """A worker's context; without a pair it shows no certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=(ca or authority().certificate).decode())
    if pair is not None:
        fd = os.memfd_create("client")
        try:
            os.write(fd, pair.certificate + pair.key)
            context.load_cert_chain(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
    return context
