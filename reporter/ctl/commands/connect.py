"""`status-ctl connect`: remembers where a run's status is served, for the other commands."""

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

from reporter.ctl.exits import GOOD, CannotTell
from reporter.ctl.run.by_http import ByHttp
from reporter.ctl.run.connection_file import own_place, read_connection, write_connection
from reporter.ctl.run.origin import by_connection, pem_texts, variables
from reporter.ctl.show.output import put_names
from reporter.wire.connection_file import ConnectionFile, UnusableFile, decode, encode

DESCRIPTION = """\
Writes the connection file: the address of a status listener and the certificates for it, readable
only by you. The other commands use it for 48 hours. Tests the connection first, and prints the path
of the file.

exit codes:
  0    written
  2    usage error
  4    not written: not reachable, forbidden, no status there, or no place to write to
  130  Ctrl-C"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--url", metavar="URL", help="the status listener (or STATUS_CTL_URL)")
    parser.add_argument("--ca", metavar="FILE", help="CA of its certificate (STATUS_CTL_CA)")
    parser.add_argument("--cert", metavar="FILE", help="your client certificate (STATUS_CTL_CERT)")
    parser.add_argument(
        "--key", metavar="FILE", help="key of your client certificate (STATUS_CTL_KEY)"
    )
    parser.add_argument(
        "--certs",
        metavar="DIR",
        type=Path,
        help="directory with ca.pem, client.crt and client.key, as created by `status-aggregator "
        "certs`",
    )
    parser.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        type=Path,
        help="where to write the file (default: your state directory)",
    )
    parser.add_argument(
        "--connection",
        metavar="FILE",
        type=Path,
        help="a connection file, as written by `status-ctl run --expose`: its certificates are "
        "kept, its address is replaced",
    )
    parser.add_argument("--no-check", action="store_true", help="do not test the connection")


def run(options: argparse.Namespace) -> int:
    """Try the connection, write the file, and return the exit code."""
    connection = _connection(options)
    try:
        # Report now anything that would be refused later.
        decode(encode(connection), now=time.time())
        server = by_connection(connection)
    except UnusableFile as error:
        options.error(f"the given connection {error}")
    except ValueError as error:
        options.error(str(error))
    if not options.no_check:
        look = ByHttp(server).look(entries=False)
        server.close()
        if look.document is None:
            raise CannotTell(f"not written: {look.trouble}")
    path = options.file or options.connection or own_place(os.environ)
    if path is None:
        raise CannotTell("no home directory found: set --file")
    try:
        write_connection(path, connection)
    except OSError as error:
        raise CannotTell(f"cannot write {path}: {error.strerror}") from None
    put_names([str(path)])
    return GOOD


def _connection(options: argparse.Namespace) -> ConnectionFile:
    chosen = variables(options, os.environ)
    if options.connection is not None:
        return _elsewhere(options, chosen["url"])
    if options.certs is not None:
        if chosen["ca"] or chosen["cert"] or chosen["key"]:
            options.error("--certs cannot be used with --ca, --cert or --key")
        names = {"ca": "ca.pem", "cert": "client.crt", "key": "client.key"}
        chosen |= {key: str(options.certs / name) for key, name in names.items()}
    if not chosen["url"]:
        options.error("missing --url")
    texts = pem_texts(options, chosen)
    return ConnectionFile(chosen["url"], time.time(), texts["ca"], texts["cert"], texts["key"])


def _elsewhere(options: argparse.Namespace, url: str) -> ConnectionFile:
    """Return what is in a connection file, with another address."""
    if options.ca or options.cert or options.key or options.certs:
        options.error("--connection cannot be used with --ca, --cert, --key or --certs")
    if not url:
        options.error("missing --url")
    now = time.time()
    try:
        found = read_connection(options.connection, now=now, max_age=float("inf"))
    except UnusableFile as error:
        options.error(f"{options.connection} {error}")
    except FileNotFoundError:
        options.error(f"{options.connection} does not exist")
    return replace(found, address=url, created_at=now)
