"""Plain JSON requests to the API server, for tests that look at the cluster from outside.

On purpose not the product's own way in (`reporter.kube`): a test must not check a thing by itself.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


class ApiError(Exception):
    """An answer of 400 and above: `status` is the HTTP code, `body` the decoded Status object."""

    def __init__(self, what: str, status: int, body: Any) -> None:
        self.status = status
        self.body = body
        message = body.get("message", body) if isinstance(body, dict) else body
        super().__init__(f"{what}: {status} {message}")


class Api:
    """Requests as an administrator or with a token; a connection each, so threads may share it."""

    def __init__(self, port: int, pki: Path, token: str | None = None) -> None:
        self._port = port
        self._tls = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if token is None:
            self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        else:
            self._headers["Authorization"] = f"Bearer {token}"

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
        seconds: float = 30,
    ) -> Any:
        """Send `body` as JSON (bytes go as they are), return the decoded answer or text.

        Raises ApiError for a refusal and OSError where the server cannot be reached.
        """
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection = self._connect(seconds)
        try:
            head = self._headers | {"Content-Type": content_type} | (headers or {})
            connection.request(method, path, sent, head)
            answer = connection.getresponse()
            text = answer.read().decode()
            kind = answer.headers.get_content_type()
            value = json.loads(text) if kind == "application/json" and text else text
            if answer.status >= 400:
                raise ApiError(f"{method} {path}", answer.status, value)
            return value
        finally:
            connection.close()

    def get_or_none(self, path: str) -> Any:
        """The object, or None where it does not exist."""
        try:
            return self.request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def watch(self, path: str, seconds: int = 60) -> Iterator[dict[str, Any]]:
        """The events of a watch on a collection (`path` may have a query) for `seconds`."""
        connection = self._connect(seconds + 30)
        try:
            joint = "&" if "?" in path else "?"
            query = f"{joint}watch=true&timeoutSeconds={seconds}"
            connection.request("GET", path + query, headers=self._headers)
            answer = connection.getresponse()
            if answer.status >= 400:
                raise ApiError(f"watch {path}", answer.status, answer.read().decode())
            for line in answer:
                yield json.loads(line)
        finally:
            connection.close()

    def wait_for(self, path: str, ready: Callable[[Any], Any], seconds: float = 60) -> Any:
        """GET until `ready(object or None)` is true and return the object; 50 ms between looks.

        Raises TimeoutError with the last object.
        """
        end = time.monotonic() + seconds
        while not ready(seen := self.get_or_none(path)):
            if time.monotonic() > end:
                raise TimeoutError(f"{path} after {seconds} s: {json.dumps(seen, indent=1)}")
            time.sleep(0.05)
        return seen

    def _connect(self, seconds: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=seconds, context=self._tls
        )
