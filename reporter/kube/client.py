"""The official client: a lean import, credentials, and one request at a time.

This is the only module that imports `kubernetes`. Nothing here knows a resource or what an answer
means: that is done in `api.py`, `stream.py` and `answers.py`.
"""

import importlib.util
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from urllib3 import disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from reporter.errors import KubeError, SettingsError, TooLarge, Unavailable
from reporter.kube.answers import MAX_OBJECT, MAX_REFUSAL, decode_object, plain, refusal
from reporter.kube.sockets import Bounds, Cutoff, Haste, Pool


@contextmanager
def _unopened(*packages: str) -> Iterator[None]:
    """Allow imports from inside these packages without running their own `__init__`.

    `kubernetes/__init__.py` and `config/__init__.py` load every part of the client with requests,
    oauthlib and PyYAML: 8 MB and 0.2 s of CPU for nothing. Afterwards the empty stand-ins are taken
    away again, so that anybody else who imports `kubernetes` gets the real one.
    """
    stand_ins = [name for name in packages if name not in sys.modules]
    try:
        for name in stand_ins:
            spec = importlib.util.find_spec(name)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            sys.modules[name] = importlib.util.module_from_spec(spec)
        yield
    finally:
        for name in stand_ins:
            sys.modules.pop(name, None)


_STAND_INS = ("kubernetes", "kubernetes.config", "kubernetes.utils")

with _unopened(*_STAND_INS):
    from kubernetes.client.api_client import ApiClient
    from kubernetes.client.configuration import Configuration
    from kubernetes.client.exceptions import ApiException
    from kubernetes.config.config_exception import ConfigException
    from kubernetes.config.incluster_config import (
        SERVICE_HOST_ENV_NAME,
        SERVICE_PORT_ENV_NAME,
        InClusterConfigLoader,
    )


JSON = "application/json"
LONGEST_IDLE = 30.0  # seconds; a new connection costs about 10 ms
_PIECE = 64 * 1024

Patience = float | tuple[float, float | None]
"""Seconds for a whole request, or a pair for connecting and for each read (None: for ever)."""


@dataclass(frozen=True)
class Request:
    """One request. `path` holds `{placeholders}`; `names` fills them in, escaped."""

    method: str
    path: str
    names: Mapping[str, str]
    query: Mapping[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path.format_map(self.names)}"


class Client:
    """One API server: requests over connections that are kept, and `open` for other ones.

    `mounted` are arguments of the in-cluster loader: its token and CA are read again as they
    change, and files that are missing, empty or half-written are no reason to fail here: every
    request tries to read them until it works. Threads may share it.
    """

    def __init__(
        self, config: Any, mounted: dict[str, Any] | None = None, *, relax_x509_strict: bool = False
    ) -> None:
        self._config, self._mounted, self._stale = config, mounted, mounted is not None
        self._relax_x509_strict = relax_x509_strict
        self._lock = threading.Lock()
        self.haste = Haste()
        self.server = str(config.host)
        self.server_time: float | None = None  # what the newest answer is dated, epoch seconds
        self._api = self.open()
        self._used_at = time.monotonic()

    def open(self, cutoff: Cutoff | None = None) -> Any:
        """Return an ApiClient with a connection pool of its own, for one stream with a `cutoff`."""
        api = ApiClient(self._config)
        api.user_agent = "status-reporter"
        bounds = Bounds(self._relax_x509_strict, None if cutoff else self.haste, cutoff)
        api.rest_client.pool_manager.pool_classes_by_scheme = {"https": partial(Pool, bounds)}
        return api

    def object(
        self, kind: str, request: Request, timeout: float, most: int = MAX_OBJECT
    ) -> dict[str, Any]:
        """Return the object of that kind that it is answered with."""
        return decode_object(b"".join(self.pieces(request, timeout, most)), kind)

    def pieces(self, request: Request, timeout: float, most: int = MAX_OBJECT) -> Iterator[bytes]:
        """Yield what it is answered with, if that is success. TooLarge beyond `most` bytes.

        `timeout` bounds all of it in seconds (connect and handshake at most 3 s).
        """
        now = time.monotonic()
        if now > self._used_at + LONGEST_IDLE:
            # Load balancers and firewalls forget idle connections without a word, and the first
            # request after minutes of silence is often the verdict: it must not wait in vain.
            self._api.rest_client.pool_manager.clear()
        self._used_at = now
        response = self.send(self._api, request, timeout)
        with suppress(ValueError, OverflowError):
            self.server_time = parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
        try:
            if response.status not in {200, 201, 202}:
                raise refused(request, response)
            left = most
            while data := _read(response, _PIECE):
                left -= len(data)
                if left < 0:
                    raise TooLarge(f"the response is larger than {most} bytes")
                yield data
        finally:
            # Read to its end, the connection is in the pool again; otherwise this ends it.
            response.close()

    def send(self, api: Any, request: Request, timeout: Patience) -> Any:
        """Send it; return urllib3's response, unread. A 401 is tried once more with a fresh token.

        Raises Unavailable when no answer came or when there is no usable token.
        """
        started = time.monotonic()
        self.haste.begin(write=request.method == "PATCH")
        response = self._send_once(api, request, timeout)
        if response.status == 401 and self._mounted is not None:
            response.close()
            self._stale = True
            if isinstance(timeout, int | float):
                timeout = max(timeout - (time.monotonic() - started), 0.001)
            response = self._send_once(api, request, timeout)
        return response

    def dial(
        self, request: Request, timeout: float, cutoff: Cutoff
    ) -> tuple[Any, str, dict[str, str]]:
        """Connect for a request that the caller sends; return the TLS socket, URL and headers.

        `timeout` in seconds is for the connection. Raises Unavailable.
        """
        api = self.open(cutoff)
        try:
            _, url, headers, *_ = self._prepared(api, request, {})
            pool = api.rest_client.pool_manager.connection_from_url(url)
            with transport():
                return pool.dial(timeout), url, headers
        finally:
            api.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._api.close()

    def _send_once(self, api: Any, request: Request, timeout: Patience) -> Any:
        headers = {"Accept": request.accept}
        if request.body is not None:
            # Without it the API server answers 415.
            headers["Content-Type"] = request.content_type
        prepared = self._prepared(api, request, headers)
        try:
            with transport():
                return api.call_api(*prepared, _request_timeout=timeout).response
        except ValueError as error:
            if not isinstance(error, UnicodeError) and "header" not in str(error):
                raise Unavailable(plain(f"{type(error).__name__}: {error}")) from error
            # http.client's text quotes the header, token and all.
            self._stale = True
            raise Unavailable("no usable credentials: the token has illegal characters") from None

    def _prepared(self, api: Any, request: Request, headers: dict[str, str]) -> Any:
        try:
            with self._lock:
                if self._stale and self._mounted is not None:
                    InClusterConfigLoader(**self._mounted).load_and_set(self._config)
                    self._stale = False
            return api.param_serialize(
                request.method,
                request.path,
                dict(request.names),
                list(request.query.items()),
                headers,
                request.body,
                auth_settings=["BearerToken"],
            )
        except (ConfigException, OSError, ValueError) as error:
            self._stale = True
            raise Unavailable(f"no usable credentials: {type(error).__name__}") from None


def mounted_client(
    server: str, *, ca_file: str | None, token_file: str | None, relax_x509_strict: bool
) -> Client:
    """Return the client of `https://HOST:PORT`, with files as a Pod has them.

    ValueError for another form, and for a token without a CA.
    """
    host, port = _https(server)
    config = Configuration(host=server, ssl_ca_cert=ca_file)
    config.retries, config.proxy = False, None
    mounted = None
    if token_file is not None:
        if ca_file is None:
            raise ValueError("a token is only sent to a server whose CA is given")
        mounted = {
            "token_filename": token_file,
            "cert_filename": ca_file,
            "environ": {SERVICE_HOST_ENV_NAME: host, SERVICE_PORT_ENV_NAME: str(port)},
        }
    return Client(config, mounted, relax_x509_strict=relax_x509_strict)


def kubeconfig_client(
    files: str, context: str | None, *, relax_x509_strict: bool
) -> tuple[Client, str]:
    """Return the client of a kubeconfig's context, and the context's namespace or nothing.

    A third of a second, as it needs all that the client's import leaves out, and as long as the
    credential program takes that it may name. Raises SettingsError.
    """
    with _unopened(*_STAND_INS):
        from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger
    try:
        merged = KubeConfigMerger(files).config
        if merged is None:
            raise SettingsError([f"no kubeconfig at {plain(files)}"])
        loader = KubeConfigLoader(merged, active_context=context, config_base_path=None)
        config = Configuration()
        loader.load_and_set(config)  # which renews its own credentials
        namespace = loader.current_context["context"].get("namespace")
    except SettingsError:
        raise
    # PyYAML's errors, and whatever a file of another shape leads the loader to.
    except Exception as error:
        raise SettingsError(
            [plain(f"kubeconfig {files}: {error or type(error).__name__}")]
        ) from None
    try:
        _https(config.host)
    except ValueError as error:
        raise SettingsError([f"kubeconfig: {error}"]) from None
    config.retries = False
    if not config.verify_ssl:
        # Whoever wrote insecure-skip-tls-verify need not be told with each request.
        disable_warnings(InsecureRequestWarning)
    client = Client(config, relax_x509_strict=relax_x509_strict)
    return client, namespace if isinstance(namespace, str) else ""


def _https(server: str) -> tuple[str, int]:
    address = urlsplit(server)
    if address.scheme != "https" or not address.hostname:
        raise ValueError("server must be https://HOST:PORT")
    return address.hostname, address.port or 443


def refused(request: Request, response: Any) -> KubeError:
    """Read an answer that is no success; return its error. Raises Unavailable if it breaks off."""
    data = _read(response, MAX_REFUSAL)
    return refusal(str(request), response.status, response.headers, data, datetime.now(UTC))


def _read(response: Any, most: int) -> bytes:
    with transport():
        return bytes(response.read(most, decode_content=False))


@contextmanager
def transport() -> Iterator[None]:
    """Turn whatever can happen on the way to the server and back into Unavailable."""
    try:
        yield
    except (ApiException, HTTPError, OSError) as error:
        text = error.reason if isinstance(error, ApiException) else str(error)
        raise Unavailable(plain(f"{type(error).__name__}: {text}")) from error
