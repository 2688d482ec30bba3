"""The official client: a lean import, credentials, and one request at a time.

This is the only module that imports `kubernetes`. Nothing here knows a resource or what an answer
means: that is done in `api.py` and `objects.py`, `stream.py` and `kube/answers.py`.
"""

import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Self
from urllib.parse import urlsplit

from urllib3 import disable_warnings
from urllib3.exceptions import HTTPError, InsecureRequestWarning

from reporter.errors import KubeError, SettingsError, Unavailable
from reporter.kube.answers import MAX_OBJECT, MAX_REFUSAL, decode_object, plain, refusal
from reporter.kube.sockets import Cutoff, Haste, Pool


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
STRATEGIC_MERGE = "application/strategic-merge-patch+json"
JSON_MERGE = "application/merge-patch+json"

LONGEST_IDLE = 30.0  # seconds; a new connection costs about 10 ms

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
    content_type: str = STRATEGIC_MERGE
    accept: str = JSON

    def __str__(self) -> str:
        return f"{self.method} {self.path.format_map(self.names)}"


class Client:
    """One API server, with a token and a CA that are read again as they change.

    `server` is `https://HOST:PORT`. Files that are missing, empty or half-written are no reason to
    fail here: every request tries to read them until it works.
    """

    def __init__(
        self, server: str, *, ca_file: str | None, token_file: str | None, relax_x509_strict: bool
    ) -> None:
        address = urlsplit(server)
        if address.scheme != "https" or not address.hostname:
            raise ValueError("server must be https://HOST:PORT")
        self._relax_x509_strict = relax_x509_strict
        self._lock = threading.Lock()
        self.haste = Haste()
        self._config = Configuration(host=server, ssl_ca_cert=ca_file)
        self._config.retries = False
        self._config.proxy = None
        self._loader: dict[str, Any] | None = None
        if token_file is not None:
            if ca_file is None:
                raise ValueError("a token is only sent to a server whose CA is given")
            self._loader = {
                "token_filename": token_file,
                "cert_filename": ca_file,
                "environ": {
                    SERVICE_HOST_ENV_NAME: address.hostname,
                    SERVICE_PORT_ENV_NAME: str(address.port or 443),
                },
            }
        self._stale = self._loader is not None

    @classmethod
    def configured(cls, config: Any, *, relax_x509_strict: bool = False) -> Self:
        """Return the client of a loaded configuration, which renews its own credentials.

        SettingsError for a server that is not reached by https.
        """
        try:
            made = cls(
                config.host, ca_file=None, token_file=None, relax_x509_strict=relax_x509_strict
            )
        except ValueError as error:
            raise SettingsError([f"kubeconfig: {error}"]) from None
        made._config = config
        config.retries = False
        if not config.verify_ssl:
            # Whoever wrote insecure-skip-tls-verify need not be told with each request.
            disable_warnings(InsecureRequestWarning)
        return made

    def open(self, cutoff: Cutoff | None = None) -> Any:
        """Return an ApiClient with a connection pool of its own, for one stream with a `cutoff`."""
        api = ApiClient(self._config)
        api.user_agent = "status-reporter"
        haste = None if cutoff is not None else self.haste
        pool = partial(Pool, self._relax_x509_strict, cutoff, haste)
        api.rest_client.pool_manager.pool_classes_by_scheme = {"https": pool}
        return api

    def send(self, api: Any, request: Request, timeout: Patience) -> Any:
        """Send it; return urllib3's response, unread. A 401 is tried once more with a fresh token.

        Raises Unavailable when no answer came or when there is no usable token.
        """
        started = time.monotonic()
        self.haste.begin(write=request.method == "PATCH")
        response = self._send_once(api, request, timeout)
        if response.status == 401 and self._loader is not None:
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
            self._read_credentials()
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

    def _read_credentials(self) -> None:
        with self._lock:
            if self._stale and self._loader is not None:
                InClusterConfigLoader(**self._loader).load_and_set(self._config)
                self._stale = False


class Requests:
    """Requests over connections that are kept. Threads may use it at the same time.

    `timeout` bounds all of a request in seconds (connect and handshake at most 3 s). Whatever is
    not answered with success raises a KubeError.
    """

    def __init__(self, client: Client, clock: Callable[[], float]) -> None:
        self._client, self._clock = client, clock
        self._api = client.open()
        self._used_at = clock()
        self.server_time: float | None = None  # what its newest answer is dated, epoch seconds

    def object(
        self, kind: str, request: Request, timeout: float, most: int = MAX_OBJECT
    ) -> dict[str, Any]:
        """Return the object of that kind that it is answered with; TooLarge beyond `most` bytes."""
        return decode_object(self.answer(request, timeout, most), kind, most)

    def answer(self, request: Request, timeout: float, most: int = MAX_OBJECT) -> bytes:
        """Return what it is answered with, at most a byte more than `most`."""
        now = self._clock()
        if now > self._used_at + LONGEST_IDLE:
            # Load balancers and firewalls forget idle connections without a word, and the first
            # request after minutes of silence is often the verdict: it must not wait in vain.
            self._api.rest_client.pool_manager.clear()
        self._used_at = now
        response = self._client.send(self._api, request, timeout)
        with suppress(ValueError, OverflowError):
            self.server_time = parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
        try:
            if response.status not in {200, 201, 202}:
                raise refused(request, response)
            with transport():
                return bytes(response.read(most + 1, decode_content=False))
        finally:
            # Read to its end, the connection is in the pool again; otherwise this ends it.
            response.close()

    def close(self) -> None:
        """Close the idle connections."""
        self._api.close()


def refused(request: Request, response: Any) -> KubeError:
    """Read an answer that is no success; return its error. Raises Unavailable if it breaks off."""
    with transport():
        data = response.read(MAX_REFUSAL, decode_content=False)
    return refusal(str(request), response.status, response.headers, data, datetime.now(UTC))


def load_kubeconfig(files: str, context: str | None) -> tuple[Any, str]:
    """Return the configuration of a kubeconfig's context, and its namespace or nothing.

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
        loader.load_and_set(config)
        namespace = loader.current_context["context"].get("namespace")
    except SettingsError:
        raise
    # PyYAML's errors, and whatever a file of another shape leads the loader to.
    except Exception as error:
        raise SettingsError(
            [plain(f"kubeconfig {files}: {error or type(error).__name__}")]
        ) from None
    return config, namespace if isinstance(namespace, str) else ""


@contextmanager
def transport() -> Iterator[None]:
    """Turn whatever can happen on the way to the server and back into Unavailable."""
    try:
        yield
    except (ApiException, HTTPError, OSError) as error:
        text = error.reason if isinstance(error, ApiException) else str(error)
        raise Unavailable(plain(f"{type(error).__name__}: {text}")) from error
