"""The command `status-aggregator`: its flags, made from the settings class, and its commands.

Answers `--help`, `--check` and `certs`, and reads the settings and the plan of a `run`.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from reporter import __version__
from reporter.aggregator import FAILED, GOOD, UNFINISHED, USAGE
from reporter.aggregator.run_plan import launch_of, plan_of, read_plan
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.errors import MissingFile, ReporterError, SettingsError
from reporter.run.settings import HostPort, Settings

_STANDING = {"PLAN": "FILE", "STATE": "DIR", "OUTPUT": "DIR", "EXPORT_CERTS": "DIR"}


def main(arguments: list[str], environ: Mapping[str, str], stop: Stop) -> int:
    """Run one command and return the exit code."""
    try:
        options = _parse(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else USAGE
    if options.command == "certs":
        return _make_certs(options)
    variables = _given(options, environ)
    if options.check:
        return _check(variables)
    return _run(variables, stop, package_again=options.package_again)


def _run(environ: Mapping[str, str], stop: Stop, *, package_again: bool = False) -> int:
    """Collect one run until SIGTERM, and return the exit code."""
    log.report_crashes()
    api, failed = None, FAILED
    try:
        chosen = Settings.read(environ)
        if chosen.in_job:
            failed = UNFINISHED  # the other one may be a verdict
        log.configure(chosen.log_format, chosen.log_level)
        for warning in chosen.warnings:
            log.get().warning("Setting ignored", problem=warning)
        plan = plan_of(Path(chosen.plan), Path(chosen.state))
        launch = launch_of(chosen, plan)
        if chosen.pod_namespace:
            # Outside of a cluster its client is never imported.
            from reporter.kube.api import KubeApi

            relaxed = chosen.kubernetes_relax_x509_strict
            api = KubeApi.in_cluster(relax_x509_strict=relaxed)
        # Half a second of imports, which bad settings need not wait for.
        from reporter.aggregator.context import Context
        from reporter.aggregator.listeners import open_files
        from reporter.aggregator.service import Service

        open_files()
        context = Context(chosen, plan, launch=launch, api=api)
        return asyncio.run(Service(context, stop, package_again=package_again).run())
    except SettingsError as error:
        for problem in error.problems:
            log.get().error("Invalid setting", problem=problem)
        # A kubelet that does not know a new ConfigMap or Secret yet mounts nothing: try again.
        return failed if isinstance(error, MissingFile) and failed == UNFINISHED else USAGE
    except (ReporterError, OSError) as error:
        log.get().error("Aggregator cannot run", error=error)
        return failed
    except Exception:
        # Python's own exit code for it is 1: a verdict, after which the Job starts no other Pod.
        log.get().critical("Unexpected error", exc_info=True)
        return failed
    finally:
        if api is not None:
            api.close()


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
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


def _given(options: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with the flags over them."""
    flags = {found.name: getattr(options, found.name) for found in Settings.described()}
    return {**environ, **{name: value for name, value in flags.items() if value is not None}}


def _check(environ: Mapping[str, str]) -> int:
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


def _make_certs(options: argparse.Namespace) -> int:
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
