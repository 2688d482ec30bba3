"""An aggregator that does what a script says, for tests of workers.

Each kind of request (`results`, `progress`, `health`) has its own list of acts; the last one is
repeated.
"""

import os
import ssl
from collections.abc import Sequence

from tests.aggregators.identities import Authority, Identities, Pair, identities
from tests.http_server import Request
from tests.scripted_server import Act, Say, ScriptedServer

FEATURES = "heartbeat, outcome, digest, progress-id"
BEAT = Say(
    body=b'{"interval_seconds":1,"status":"running"}',
    headers={"Aggregator-Features": FEATURES, "Cache-Control": "no-store"},
)


class Scripted(ScriptedServer):
    """The server, as a context manager. Answers 200 to everything without a script.

    With `listening=False` connections are refused until `listen`. `tickets` are TLS 1.3 session
    tickets, which our aggregator does not send and others do.
    """

    def __init__(
        self,
        *,
        results: Sequence[Act] = (Say(),),
        progress: Sequence[Act] = (Say(),),
        health: Sequence[Act] = (BEAT,),
        server: Pair | None = None,
        client_ca: Authority | None = None,
        listening: bool = True,
        tickets: int = 0,
        maximum: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    ) -> None:
        super().__init__()
        self._scripts = {
            "results": list(results),
            "progress": list(progress),
            "health": list(health),
        }
        self._client_ca = client_ca or identities().ca
        self._tickets, self._maximum = tickets, maximum
        self.present(server or identities().server)
        if listening:
            self.listen()

    @property
    def url(self) -> str:
        """Its address by IP."""
        return f"https://127.0.0.1:{self.port}"

    def environment(self, who: Identities | None = None) -> dict[str, str]:
        """Settings of a worker of this aggregator for plugin `e2e`, as its environment."""
        who = who or identities()
        return {
            "AGGREGATOR_URL": self.url,
            "RESULT_TYPE": "e2e",
            "CA_CERT": who.ca.pem,
            "CLIENT_CERT": who.client.certificate,
            "CLIENT_KEY": who.client.sec1,
        }

    def present(self, server: Pair) -> None:
        """Show this certificate from the next connection on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.maximum_version = self._maximum
        context.num_tickets = self._tickets
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self._client_ca.pem)
        if self._client_ca.sonobuoy:
            # OpenSSL cannot check such a client either; who it is does not matter here.
            context.verify_mode = ssl.CERT_NONE
        _load(context, server)
        self._context = context

    def script(self, kind: str, *acts: Act) -> None:
        """Go on with these acts for `results`, `progress` or `health`."""
        with self.changed:
            self._scripts[kind] = list(acts)

    def context(self) -> ssl.SSLContext:
        """Return the context of the certificate that is shown now."""
        return self._context

    def next_act(self, request: Request) -> Act:
        """Return the next of its kind."""
        for kind, acts in self._scripts.items():
            if f"/api/v1/{kind}/" in request.target:
                return acts.pop(0) if len(acts) > 1 else acts[0]
        return Say(404, b"404 page not found\n")


def _load(context: ssl.SSLContext, pair: Pair) -> None:
    held = os.memfd_create("server")
    try:
        os.write(held, (pair.certificate + pair.pkcs8).encode())
        context.load_cert_chain(f"/proc/self/fd/{held}")
    finally:
        os.close(held)
