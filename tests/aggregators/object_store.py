"""A real object store that speaks S3 over TLS, and URLs that are presigned for it."""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import ssl
import subprocess
import time
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlsplit

from tests.bed import binaries
from tests.certificates import SERVER, Authority

KEY, SECRET, REGION = "bed-key", "bed-secret", "us-east-1"
BOUND = 60.0


class ObjectStore:
    """versitygw on `address`, with its objects below `folder`; a context manager."""

    def __init__(self, folder: Path, address: str, port: int) -> None:
        self.folder, self.host = folder, f"{address}:{port}"
        self.ca, self._own = folder / "store-ca.pem", folder / "store.pem"
        authority = Authority("a CA of the store")
        pair = authority.issue("store", (address,), purpose=SERVER)
        self.ca.write_text(authority.pem)
        self._own.write_text(pair.certificate)
        (folder / "store.key").write_text(pair.pkcs8)
        (folder / "objects").mkdir()

    def __enter__(self) -> Self:
        log = (self.folder / "store.log").open("w")
        with log:
            self._process = subprocess.Popen(
                [
                    *(binaries.program("versitygw"), "--port", self.host),
                    *("--cert", self._own, "--key", self.folder / "store.key"),
                    *("posix", self.folder / "objects"),
                ],
                env={"PATH": os.environ["PATH"], "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + BOUND
        while True:
            try:
                assert 200 == self.send(self.presigned("/results"))
                return self
            except OSError:
                assert self._process.poll() is None, (self.folder / "store.log").read_text()
                assert time.monotonic() < end
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def object(self, name: str) -> Path:
        """Return where it keeps an object of the bucket `results`."""
        return self.folder / "objects" / "results" / name

    def presigned(self, path: str, seconds: int = 86_400) -> str:
        """Return a URL for PUTs to a path, valid from now on (AWS signature version 4)."""
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        scope = f"{at[:8]}/{REGION}/s3/aws4_request"
        query = "&".join(
            f"{name}={quote(value, safe='')}"
            for name, value in (
                ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
                ("X-Amz-Credential", f"{KEY}/{scope}"),
                ("X-Amz-Date", at),
                ("X-Amz-Expires", str(seconds)),
                ("X-Amz-SignedHeaders", "host"),
            )
        )
        wanted = f"PUT\n{path}\n{query}\nhost:{self.host}\n\nhost\nUNSIGNED-PAYLOAD"
        digest = hashlib.sha256(wanted.encode()).hexdigest()
        key = f"AWS4{SECRET}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{digest}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        return f"https://{self.host}{path}?{query}&X-Amz-Signature={signature}"

    def send(self, url: str, body: bytes = b"") -> int:
        """PUT something to a URL of it; return the status."""
        context = ssl.create_default_context(cafile=self.ca)
        connection = http.client.HTTPSConnection(self.host, timeout=BOUND, context=context)
        parts = urlsplit(url)
        connection.request("PUT", f"{parts.path}?{parts.query}", body)
        with connection.getresponse() as answer:
            return answer.status
