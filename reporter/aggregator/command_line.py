"""The command line of `status-aggregator`: its flags are made from the settings class.

Says what is wanted, and answers `--help`, `--check` and `certs`. Running is `main`'s.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from reporter import __version__
from reporter.aggregator.run_plan import read_plan
from reporter.aggregator.settings import HostPort, Settings
from reporter.errors import SettingsError

GOOD, FAILED, USAGE, UNFINISHED = 0, 1, 2, 4
"""Exit codes; the last one is for a Job, which is to start another aggregator."""
_STANDING = {"PLAN": "FILE", "STATE": "DIR", "OUTPUT": "DIR", "EXPORT_CERTS": "DIR"}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return `command` with its options. Ends the program (SystemExit) as argparse does."""
    parser = argparse.ArgumentParser(
        prog="status-aggregator",
        description="Collects the results, progress and heartbeats of a run's workers.",
        epilog="`status-aggregator run --help` lists all settings.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _add_run(commands.add_parser("run", help="collect the results of one run", allow_abbrev=False))
    _add_certs(
        commands.add_parser(
            "certs", help="create certificates for the status listener", allow_abbrev=False
        )
    )
    if list(arguments) == ["--check"]:
        arguments = ["run", "--check"]
    return parser.parse_args(arguments)


def given(options: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the flags over them."""
    flags = {found.name: getattr(options, found.name) for found in Settings.described()}
    return {**environ, **{name: value for name, value in flags.items() if value is not None}}


def check(environ: Mapping[str, str]) -> int:
    """Judge the settings and the plan, print what is in force, return the exit code."""
    try:
        chosen = Settings.read(environ)
        read_plan(Path(chosen.plan))
    except SettingsError as error:
        print(*error.problems, sep="\n", file=sys.stderr)
        return USAGE
    for warning in chosen.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    for variable, value in chosen.in_force():
        print(f"{variable}={value}")
    return GOOD


def make_certs(options: argparse.Namespace) -> int:
    """Make the certificates of a status listener and of those who read it."""
    # Here, so that `--help` need not wait for it.
    from reporter.aggregator.certificates.export import export_status
    from reporter.pki.issuing import CertificateError
    from reporter.pki.status import issue_status

    ca = options.out / "ca.pem"
    if not options.force and os.path.lexists(ca):
        print(
            f"status-aggregator certs: {ca} already exists: clients that trust it would lose "
            "access; choose another --out, or replace it with --force",
            file=sys.stderr,
        )
        return USAGE
    seconds, now = options.days * 86_400.0, time.time()
    address = f"https://{HostPort(options.host[0], options.port)}"
    try:
        issued = issue_status(options.host, now=now, seconds=seconds)
        export_status(issued, options.out, address=address, now=now)
    except (CertificateError, OSError) as error:
        print(f"status-aggregator certs: {error}", file=sys.stderr)
        return FAILED
    made = "ca.pem, server.crt, server.key, client.crt, client.key, connection.json"
    print(f"{options.out}: {made}")
    print(f"status-ctl status --connection {options.out / 'connection.json'}  ({address})")
    return GOOD


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Collects the results of one run. Each flag can also be set as an environment variable; "
        "flags take precedence."
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="validate the settings and the plan, print the effective settings, exit 2 on errors",
    )
    parser.add_argument(
        "--package-again",
        action="store_true",
        help="retry packing a run whose packing was given up; no effect on other runs",
    )
    for name, default, rule, meaning in Settings.described():
        parser.add_argument(
            f"--{name.lower().replace('_', '-')}",
            dest=name,
            metavar=_STANDING.get(name, "VALUE"),
            help=f"{name} (default: {default}): {meaning}; {rule}".replace("%", "%%"),
        )


def _add_certs(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Creates a CA, a server certificate and a client certificate. Give the first two to the "
        "aggregator (STATUS_TLS_CERT, STATUS_TLS_KEY, STATUS_TLS_CLIENT_CA), the last to clients "
        "that may read the run's status."
    )
    parser.add_argument(
        "--for", dest="purpose", required=True, choices=["status"], help="the listener"
    )
    parser.add_argument(
        "--host",
        required=True,
        action="append",
        help="a host name or address of the listener; repeatable",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8081,
        help="its port, for connection.json (default: %(default)s)",
    )
    parser.add_argument("--out", required=True, type=Path, help="the directory for the files")
    parser.add_argument(
        "--days", type=_days, default=30, help="how long they are valid (default: %(default)s)"
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="overwrite the CA and the certificates in --out",
    )


def _days(text: str) -> int:
    days = int(text)
    if not 1 <= days <= 3_650:
        raise argparse.ArgumentTypeError("must be an integer from 1 to 3650")
    return days
