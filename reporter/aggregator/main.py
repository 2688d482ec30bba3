"""The aggregator's beginning and end: command line, settings, plan, exit codes."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from reporter.aggregator.command_line import (
    FAILED,
    UNFINISHED,
    USAGE,
    check,
    given,
    make_certs,
    parse,
)
from reporter.aggregator.run_plan import launch_of, plan_of
from reporter.aggregator.settings import Settings
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.errors import MissingFile, ReporterError, SettingsError

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

Connect = Callable[..., "KubeApi"]


def in_cluster(*, relax_x509_strict: bool) -> "KubeApi":
    """Return the API of the cluster we run in; outside of one its client is never imported."""
    from reporter.kube.api import KubeApi

    return KubeApi.in_cluster(relax_x509_strict=relax_x509_strict)


def main(
    arguments: list[str],
    environ: Mapping[str, str],
    stop: Stop,
    connect: Connect = in_cluster,
) -> int:
    """Run one command and return the exit code; `connect` finds the API server."""
    try:
        options = parse(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else USAGE
    if options.command == "certs":
        return make_certs(options)
    variables = given(options, environ)
    if options.check:
        return check(variables)
    return run(variables, stop, connect, package_again=options.package_again)


def run(
    environ: Mapping[str, str], stop: Stop, connect: Connect, *, package_again: bool = False
) -> int:
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
            api = connect(relax_x509_strict=chosen.kubernetes_relax_x509_strict)
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
