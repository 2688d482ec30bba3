"""Where the status of a run comes from: a URL, a connection file, or the aggregator's Pod.

A source that was named wins, and then no other is tried; otherwise the first of these that there
is. How the status is shown is not here.
"""

import argparse
import errno
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from reporter.cli import cluster
from reporter.cli.exits import CannotTell
from reporter.cli.options import length
from reporter.cli.output import tell
from reporter.run.connection_file import MAX_BYTES, ConnectionFile, UnusableFile, decode
from reporter.run.names import is_run_name
from reporter.runctl.server import Address, ByHttp, StatusServer

if TYPE_CHECKING:
    from reporter.runctl.cluster_run import ByCluster

Origin: TypeAlias = "ByHttp | ByCluster"
"""Something that can be asked again and again how a run is."""

TRADITIONAL = Path("/tmp/sonobuoy.json")  # noqa: S108 - only read when it is ours and private

_HINTS = """\
no run given, and none found. Try one of these:
  status-ctl {command} RUN [--context NAME]
      a run in a cluster, started by `status-ctl run`
  status-ctl {command} -n NAMESPACE [--context NAME]
      the run of the aggregator in that namespace
  status-ctl {command} --url https://HOST:PORT --ca ca.pem --cert client.crt --key client.key
      the run whose status listener is there
  status-ctl {command} --connection FILE
      the same, with the file of `status-ctl run --expose` or `status-aggregator certs`"""
_VARIABLES = {name: f"STATUS_CTL_{name.upper()}" for name in ("url", "ca", "cert", "key")}


def arguments(
    parser: argparse.ArgumentParser, *, named: bool = True, default: str = "the only one"
) -> None:
    """Declare the options that say where the status comes from, and RUN where it is `named`."""
    if named:
        parser.add_argument(
            "run_name",
            metavar="RUN",
            nargs="?",
            type=run_name,
            help=f"the run's name in the cluster, as NAME or run/NAME (default: {default})",
        )
    group = parser.add_argument_group(
        "source of the status",
        "default: the connection file of `status-ctl run --expose`, then the cluster",
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
        help="maximum age of a connection file, as 48h or 30m (default: 48h, none for the file of "
        "`run --expose`)",
    )
    cluster.cluster_arguments(parser, everywhere=True)


def run_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare RUN and the options of its cluster, for what is done with a run there."""
    parser.add_argument(
        "run_name", metavar="RUN", type=run_name, help="the run's name, also as run/NAME"
    )
    cluster.cluster_arguments(
        parser, everywhere=False, default="the context's, then status-reporter-RUN"
    )


def choose(
    options: argparse.Namespace,
    environ: Mapping[str, str] = os.environ,
    traditional: Path = TRADITIONAL,
    *,
    own: bool = False,
) -> Origin:
    """Return where to ask. Raises CannotTell with what to do when there is nothing.

    `traditional` is where other tools of this kind leave their connection file. With `own` it may
    be the newest run that this user has started, for what only reads.
    """
    by_flag = [name for name in ("url", "connection") if getattr(options, name)]
    if options.run_name:
        if by_flag:
            options.error(f"a RUN and --{by_flag[0]} cannot be used together")
        return by_cluster(options, options.run_name)
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
            return ByHttp(_by_url(options, environ))
        case ["connection"]:
            try:
                return _by_file(Path(options.connection), options)
            except FileNotFoundError:
                raise CannotTell(f"{options.connection} does not exist") from None
        case ["namespace"]:
            return by_cluster(options)
    refused = []
    for path in filter(None, (own_place(environ), traditional)):
        try:
            return _by_file(path, options)
        except FileNotFoundError:
            continue
        except CannotTell as error:
            refused.append(str(error))
    for line in refused:
        tell(line)
    if cluster.reachable(environ):
        return by_cluster(options, own=own)
    raise CannotTell(_HINTS.format(command=options.command))


def by_cluster(options: argparse.Namespace, run: str = "", *, own: bool = False) -> "ByCluster":
    """Return the run in the cluster, the one named or the one that there is. Raises CannotTell."""
    # Here, because a URL needs none of it.
    from reporter.runctl import cluster_run

    return cluster_run.by_cluster(options, run, own=own)


def run_name(written: str) -> str:
    """Return the name of a run as it is written: NAME or run/NAME. ValueError for another form."""
    name = written.removeprefix("run/")
    if not is_run_name(name):
        raise argparse.ArgumentTypeError(f"not a run name: {written!r}")
    return name


def _by_url(options: argparse.Namespace, environ: Mapping[str, str]) -> StatusServer:
    """Return the server that options and environment name; a usage error where they are wrong.

    With a URL among the options the environment has no say: its certificates are for another one.
    """
    own = {} if options.url else environ
    chosen = {
        name: getattr(options, name) or own.get(variable, "")
        for name, variable in _VARIABLES.items()
    }
    if bool(chosen["cert"]) < bool(chosen["key"]):
        options.error("--key requires --cert")
    ca, certificate, key = (_pem(options, chosen[name]) for name in ("ca", "cert", "key"))
    try:
        return StatusServer(Address(chosen["url"], ca, certificate, key))
    except (OSError, ValueError) as error:
        _usage(options, str(error))


def _pem(options: argparse.Namespace, path: str) -> str | None:
    try:
        return Path(path).read_text() if path else None
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not PEM"
        _usage(options, f"cannot read {path}: {cause}")


def by_connection(connection: ConnectionFile) -> StatusServer:
    """Return the server that a connection file names. ValueError where it cannot be used."""
    pem = connection.ca, connection.certificate or None, connection.key
    return StatusServer(Address(connection.address, *pem, connection.server_name))


def _by_file(path: Path, options: argparse.Namespace) -> ByHttp:
    """Raises FileNotFoundError, and CannotTell where it cannot be used."""
    try:
        return ByHttp(by_connection(read_connection(path, options.max_age)))
    except UnusableFile as error:
        raise CannotTell(f"{path} {error}") from None
    except ValueError as error:
        raise CannotTell(f"{path} is invalid: {error}") from None


def _usage(options: argparse.Namespace, why: str) -> NoReturn:
    options.error(why)
    raise AssertionError("error() does not return")


# -- the connection file --------------------------------------------------------------------------


def own_place(environ: Mapping[str, str]) -> Path | None:
    """Return where we keep it: in the user's state directory; nothing for a user without a home."""
    base = Path(environ.get("XDG_STATE_HOME", ""))
    # A relative one is to be ignored, says its specification.
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError:
            return None
    return base / "status-reporter" / "connection.json"


def read_connection(path: Path, max_age: float | None = None) -> ConnectionFile:
    """Read the file. Raises UnusableFile, its text without the file's name, and FileNotFoundError.

    It has to belong to us and to be readable by nobody else: anyone could have put it there
    otherwise, or have taken the key out of it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        why = "a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UnusableFile(f"cannot be read: {why}") from None
    try:
        _check(os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return decode(data, now=time.time(), max_age=max_age)


def _check(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFile("cannot be read: not a plain file")
    if found.st_uid != os.geteuid():
        raise UnusableFile(f"belongs to another user (uid {found.st_uid})")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise UnusableFile(f"is readable by others (mode {mode:04o}): chmod 600 it, if it is yours")
