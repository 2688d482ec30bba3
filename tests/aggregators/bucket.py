"""An object store that does what a script says with each PUT, and a URL presigned for it."""

from __future__ import annotations

import ssl
from pathlib import Path

from tests.certificates import SERVER, Authority, Pair
from tests.http_server import Request
from tests.scripted_server import Act, Say, ScriptedServer

SIGNATURE = "5f1d00dcafe5ec2e7"
"""A part of the URL that must not be seen anywhere."""
QUERY = f"X-Amz-Credential=AKIASECRET%2Feu&X-Amz-Signature={SIGNATURE}"


class Bucket(ScriptedServer):
    """Takes what is PUT, over TLS; the last act is repeated.

    `url_file` and `ca` in `folder` are what an uploader is given. With `listening=False`
    connections are refused until `listen`.
    """

    def __init__(
        self, folder: Path, *acts: Act, address: str = "127.0.0.1", listening: bool = True
    ) -> None:
        super().__init__(address)
        self._address = address
        folder.mkdir(exist_ok=True)
        self._acts = [*(acts or (Say(),))]
        authority = Authority("a CA of the store")
        self.url_file, self.ca, self._own = folder / "url", folder / "store.pem", folder / "own.pem"
        self.ca.write_text(authority.pem)
        self.present(authority.issue("store", (address, "localhost"), purpose=SERVER))
        self.point(QUERY)
        if listening:
            self.listen()

    @property
    def host(self) -> str:
        """What may be shown of the URL."""
        return f"{self._address}:{self.port}"

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of an aggregator that uploads to it."""
        return "--upload-url-file", str(self.url_file), "--upload-ca", str(self.ca)

    def point(self, query: str) -> None:
        """Write a URL with this query to the file."""
        self.url_file.write_text(f"https://{self.host}/bucket/run.tar.gz?{query}\n")

    def present(self, pair: Pair) -> None:
        """Show this certificate from the next connection on."""
        self._own.write_text(pair.certificate + pair.pkcs8)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._own)
        self._context = context

    def script(self, *acts: Act) -> None:
        """Go on with these acts."""
        with self.changed:
            self._acts = [*acts]

    def context(self) -> ssl.SSLContext:
        """Return the context of the certificate that is shown now."""
        return self._context

    def next_act(self, request: Request) -> Act:
        """Return the next one."""
        return self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
