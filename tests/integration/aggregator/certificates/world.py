"""A run's certificates, what is in them, and handshakes without sockets."""

import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from reporter.aggregator.certificates.run import Issued
from reporter.aggregator.certificates.tls import worker_context
from reporter.pki.issuing import Pair
from reporter.run.plan import Key, Plan, Plugin
from tests.aggregators.issued import issue_run

ROOT = Path(__file__).resolve().parents[4]


RUN = "4f6f8d5e-5d0a-4f3e-8a53-3a5a0c7b9a11"


PLAN = Plan(
    RUN,
    (
        Plugin("e2e"),
        Plugin("sysd", nodes=("node1", "node2")),
        Plugin("logs", nodes=("node1", "node2"), identity="node"),
    ),
)


NAMES = ("127.0.0.1", "::1", "aggregator.ns.svc", "localhost")


E2E, SYSD, LOGS_1 = Key("e2e", "global"), Key("sysd", "*"), Key("logs", "node1")


HANG = 30.0


URL = "https://aggregator.ns.svc:8080"


def issue(plan: Plan = PLAN, names: tuple[str, ...] = NAMES, *, late: float = 0.0) -> Issued:
    """Certificates made `late` seconds from now, as the clocks of others see it."""
    return issue_run(plan, names, now=time.time() + late)


def read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def extension(pem: bytes, kind: type[Any]) -> Any:
    return read(pem).extensions.get_extension_for_class(kind)


def leaves(issued: Issued) -> list[Pair]:
    return [issued.server, *issued.clients.values()]


def client_context(
    ca: bytes, pair: Pair | None, folder: Path, *, strict: bool = True
) -> ssl.SSLContext:
    """A worker's context: this CA alone, the host's name checked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ca.decode())
    if strict:
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    if pair is not None:
        folder.mkdir(exist_ok=True)
        (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(folder / "pair.pem")
    return context


class Handshake:
    """One handshake in memory: what each side says against it, and both ends."""

    def __init__(
        self, server: ssl.SSLContext, client: ssl.SSLContext, name: str = "127.0.0.1"
    ) -> None:
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.server = server.wrap_bio(there, back, server_side=True)
        self.client = client.wrap_bio(back, there, server_hostname=name)
        self.refusals: dict[str, ssl.SSLError] = {}
        waiting = {"client": self.client, "server": self.server}
        for _ in range(10):
            for side, end in list(waiting.items()):
                try:
                    end.do_handshake()
                    del waiting[side]
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError as error:
                    self.refusals.setdefault(side, error)
        # With TLS 1.3 the client is done before the server has looked at its certificate.
        for end in (self.client, self.server):
            with suppress(ssl.SSLError):
                end.read(1)

    @property
    def refused_by_server(self) -> str:
        error = self.refusals.get("server")
        return "" if error is None else f"{error.reason} {getattr(error, 'verify_message', '')}"

    @property
    def names(self) -> set[tuple[str, str]]:
        """What the server knows of the client."""
        return set((self.server.getpeercert() or {}).get("subjectAltName", ()))


def shake(
    issued: Issued,
    folder: Path,
    pair: Pair | None = None,
    *,
    name: str = "127.0.0.1",
    adjust: Callable[[ssl.SSLContext], object] = lambda _: None,
) -> Handshake:
    """A handshake of the worker listener with a client of the same run, unless a pair is given."""
    client = client_context(issued.ca, pair, folder)
    adjust(client)
    return Handshake(worker_context(issued.ca, issued.server), client, name)


def common_name(pem: bytes) -> str:
    return str(read(pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def alternatives(pem: bytes) -> set[str]:
    """Subject alternative names as `KIND:VALUE`."""
    kinds = {x509.DNSName: "DNS", x509.IPAddress: "IP", x509.UniformResourceIdentifier: "URI"}
    names = extension(pem, x509.SubjectAlternativeName).value
    return {f"{kinds[type(name)]}:{name.value}" for name in names}
