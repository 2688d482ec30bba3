"""Where the status of a run comes from: a URL, a connection file, or the aggregator's Pod.

What was named wins, and then nothing else is tried; otherwise the first of these that there is. How
the status is shown is not here.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn, Protocol

from reporter.core.objects import text
from reporter.core.run.reading import Found
from reporter.core.run.status import API_VERSION
from reporter.core.run.view import Look, of_reading, read_document
from reporter.core.text import clean
from reporter.ctl import cluster
from reporter.ctl.exits import CannotTell
from reporter.ctl.quantities import length
from reporter.ctl.run.connection_file import TRADITIONAL, own_place, read_connection
from reporter.ctl.run.server import ANSWER, CertificateRefused, NoAnswer, StatusServer
from reporter.ctl.run.tls import Address
from reporter.ctl.show.tell import tell
from reporter.runtime.private_file import as_file
from reporter.wire.connection_file import ConnectionFile, UnusableFile

MAX_AGE = 48 * 3600
PAUSE = 1.0  # seconds between two looks, or four times as long as one took
AGES = 10.0  # seconds after which a document is asked for anew, changed or not
HINTS = """\
no run given, and none found. Try one of these:
  status-ctl {command} -n NAMESPACE [--context NAME]
      reads the annotation on the aggregator's Pod
  kubectl -n NAMESPACE port-forward pod/status-aggregator-0 8081
      in another terminal, then: status-ctl {command} --url http://127.0.0.1:8081
  status-ctl connect --url https://HOST:PORT --ca ca.pem --cert client.crt --key client.key
      if the status listener is reachable; then: status-ctl {command}"""
_VARIABLES = {"url": "STATUS_CTL_URL", "ca": "STATUS_CTL_CA"} | {
    "cert": "STATUS_CTL_CERT",
    "key": "STATUS_CTL_KEY",
}


class Origin(Protocol):
    """Something that can be asked again and again how a run is."""

    pause: float
    """Seconds between two looks that make sense."""
    name: str

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask. Whatever goes wrong is an outcome. Without `entries` they may be left out."""


class ByHttp:
    """The status listener."""

    def __init__(self, server: StatusServer, clock: Callable[[], float] = time.monotonic) -> None:
        self.server, self.name, self._clock = server, server.url, clock
        self._tag, self._last, self._until = "", Look(Found.UNREACHABLE), 0.0
        self._path, self.pause = "", PAUSE

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask `/status`; while nothing changed, the answer is the last document."""
        path, began = "/status" if entries else "/status?summary=true", self._clock()
        # Ages of heartbeats are no change to the server, but they grow.
        tag = self._tag if path == self._path and began < self._until else ""
        try:
            answer = self.server.get(path, tag=tag, timeout=timeout)
        except CertificateRefused as error:
            return Look(Found.FORBIDDEN, detail=str(error))
        except NoAnswer as error:
            return Look(Found.UNREACHABLE, detail=str(error))
        match answer.status:
            case 200:
                # Thousands of entries take their time, here and there.
                self.pause = min(max(PAUSE, 4 * (self._clock() - began)), AGES)
                self._path = path
                return self._read(answer.body, answer.tag)
            case 304 if tag:
                return self._last
            case 401 | 403:
                return Look(Found.FORBIDDEN, detail=f"{self.name}: {refusal(answer.body)}")
            case 404:
                return Look(Found.NOT_FOUND, detail=f"{self.name}: does not serve a run status")
        return Look(Found.UNREACHABLE, detail=f"{self.name}: answered {answer.status}")

    def _read(self, body: bytes, tag: str) -> Look:
        document = read_document(body)
        if document is None:
            self._tag = ""
            return Look(Found.BAD_STATUS, detail=f"{self.name}: the response is not a run status")
        version = text(document, "api_version") or API_VERSION
        told = f"{self.name}: status version {version}, but this command supports {API_VERSION}"
        self._last = Look(Found.OK, document, warning="" if version == API_VERSION else told)
        self._tag, self._until = tag, self._clock() + AGES
        return self._last


class ByCluster:
    """The annotations on the aggregator's Pod. `namespace` None: wherever one is."""

    pause = 2.0

    def __init__(self, options: argparse.Namespace) -> None:
        self._api, self._namespace = cluster.open_cluster(options)
        self.name = f"namespace {self._namespace}" if self._namespace else "all namespaces"

    def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
        """Ask the API server; what it has is not long."""
        from reporter.sources.run_status import read_run_status

        return of_reading(read_run_status(self._api, self._namespace, timeout=timeout))


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say where the status comes from."""
    group = parser.add_argument_group(
        "where the status comes from",
        "without any of these: the connection file (see `status-ctl connect`), then the cluster",
    )
    group.add_argument("--url", metavar="URL", help="the status listener (or STATUS_CTL_URL)")
    group.add_argument("--ca", metavar="FILE", help="CA of its certificate (STATUS_CTL_CA)")
    group.add_argument("--cert", metavar="FILE", help="your client certificate (STATUS_CTL_CERT)")
    group.add_argument(
        "--key", metavar="FILE", help="key of your client certificate (STATUS_CTL_KEY)"
    )
    group.add_argument("--connection", metavar="FILE", help="use only this connection file")
    group.add_argument(
        "--max-age",
        metavar="TIME",
        type=length,
        default=MAX_AGE,
        help="maximum age of a connection file, as 48h or 30m (default: 48h)",
    )
    cluster.cluster_arguments(parser, everywhere=True)


def choose(
    options: argparse.Namespace,
    environ: Mapping[str, str] = os.environ,
    traditional: Path = TRADITIONAL,
) -> Origin:
    """Return where to ask. Raises CannotTell with what to do when there is nothing.

    `traditional` is where other tools of this kind leave their connection file.
    """
    by_flag = [name for name in ("url", "connection") if getattr(options, name)]
    if cluster.named(options):
        by_flag.append("namespace")
    if len(by_flag) > 1:
        options.error("use only one of --url, --connection and the cluster options")
    if not by_flag and environ.get(_VARIABLES["url"]):
        by_flag.append("url")
    if "url" not in by_flag and (options.ca or options.cert or options.key):
        options.error("--ca, --cert and --key require --url (or STATUS_CTL_URL)")
    match by_flag:
        case ["url"]:
            return ByHttp(by_url(options, environ))
        case ["connection"]:
            return _by_file(Path(options.connection), options)
        case ["namespace"]:
            return ByCluster(options)
    refused = []
    for path in filter(None, (own_place(environ), traditional)):
        try:
            return _by_file(path, options, absent_is_fine=True)
        except FileNotFoundError:
            continue
        except CannotTell as error:
            refused.append(str(error))
    for line in refused:
        tell(line)
    if cluster.reachable(environ):
        return ByCluster(options)
    raise CannotTell(HINTS.format(command=options.command))


def by_url(options: argparse.Namespace, environ: Mapping[str, str]) -> StatusServer:
    """Return the server that options and environment name; a usage error where they are wrong."""
    chosen = variables(options, environ)
    if bool(chosen["cert"]) < bool(chosen["key"]):
        options.error("--key requires --cert")
    ca = pem_texts(options, chosen)["ca"]
    try:
        return StatusServer(Address(chosen["url"], ca, chosen["cert"], chosen["key"]))
    except (OSError, ValueError) as error:
        _usage(options, str(error))


def pem_texts(options: argparse.Namespace, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return what is in the files ca, cert and key; a usage error where one cannot be read."""
    texts = {}
    for name in ("ca", "cert", "key"):
        try:
            texts[name] = Path(chosen[name]).read_text() if chosen[name] else ""
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "not PEM"
            options.error(f"cannot read {chosen[name]}: {cause}")
    return texts


def variables(options: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, str]:
    """Return url, ca, cert and key as said by options, else by the environment, else empty.

    With a URL among the options the environment has no say: its certificates are for another one.
    """
    told = {name: getattr(options, name) or "" for name in _VARIABLES}
    if told["url"]:
        return told
    return {name: told[name] or environ.get(variable, "") for name, variable in _VARIABLES.items()}


def by_connection(connection: ConnectionFile) -> StatusServer:
    """Return the server that a connection file names. ValueError where it cannot be used."""
    with (
        as_file(connection.certificate.encode()) as certificate,
        as_file(connection.key.encode()) as key,
    ):
        shown = bool(connection.certificate)
        return StatusServer(
            Address(
                connection.address,
                connection.ca,
                certificate if shown else "",
                key if shown else "",
            )
        )


def refusal(body: bytes) -> str:
    """Say why run data was refused, in the server's words where it has any."""
    words = body[:300].decode(errors="replace")
    return clean(words, 300, "it refused access to the run's status")


def _by_file(path: Path, options: argparse.Namespace, *, absent_is_fine: bool = False) -> ByHttp:
    try:
        connection = read_connection(path, now=time.time(), max_age=options.max_age)
        return ByHttp(by_connection(connection))
    except UnusableFile as error:
        raise CannotTell(f"{path} {error}") from None
    except FileNotFoundError:
        if absent_is_fine:
            raise
        raise CannotTell(f"{path} does not exist") from None
    except ValueError as error:
        raise CannotTell(f"{path} is invalid: {error}") from None


def _usage(options: argparse.Namespace, why: str) -> NoReturn:
    options.error(why)
    raise AssertionError("error() does not return")
