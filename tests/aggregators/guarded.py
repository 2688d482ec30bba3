"""A real aggregator whose status listener speaks TLS and asks its readers for certificates."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from tests.aggregators.served import BOUND, LAUNCHER, ROOT, Aggregator

ELSEWHERE = "status.localhost"
"""A name of this machine that is none of a port-forward's; browsers resolve it themselves."""


def make_certificates(folder: Path, port: int) -> None:
    """Run `status-aggregator certs`."""
    subprocess.run(
        [
            *(sys.executable, str(LAUNCHER), "certs", "--for", "status"),
            *(
                "--host",
                "127.0.0.1",
                "--host",
                ELSEWHERE,
                "--port",
                str(port),
                "--out",
                str(folder),
            ),
        ],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        stdout=subprocess.DEVNULL,
        timeout=BOUND,
        check=True,
    )


class Guarded(Aggregator):
    """Its certificates are in `tls`; clients of a CA in `also` (PEM) are its readers as well."""

    def __init__(
        self, folder: Path, document: dict[str, Any], *flags: str, also: bytes = b""
    ) -> None:
        self.tls = folder / "tls"
        readers = folder / "readers.pem"
        super().__init__(
            folder,
            document,
            *("--status-tls-cert", str(self.tls / "server.crt")),
            *("--status-tls-key", str(self.tls / "server.key")),
            *("--status-tls-client-ca", str(readers)),
            *flags,
        )
        make_certificates(self.tls, self.status_port)
        readers.write_bytes((self.tls / "ca.pem").read_bytes() + also)
        self._context = ssl.create_default_context(cafile=self.tls / "ca.pem")
        self._context.load_cert_chain(self.tls / "client.crt", self.tls / "client.key")

    def trust_anybody(self) -> None:
        """Read as through a port-forward: whatever certificate is shown."""
        self._context = ssl._create_unverified_context()

    @property
    def status_url(self) -> str:
        """Where readers connect, without a slash at the end."""
        return f"https://127.0.0.1:{self.status_port}"

    def ask(self, path: str) -> bytes:
        """Return the body of a path of the status listener."""
        url = self.status_url + path
        with urllib.request.urlopen(url, timeout=BOUND, context=self._context) as answer:
            return bytes(answer.read())
