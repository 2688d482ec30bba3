"""The task: what is asked for by the environment, from the API server of the cluster we run in."""

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from reporter.collect.snapshot.options import SnapshotOptions, read_options
from reporter.collect.task import Stop, TaskFailure, Work
from reporter.common import log
from reporter.errors import SettingsError

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Writes the objects of the cluster to files and delivers them as one archive: of every resource that
the server offers and that may be read, page by page. Values that may be secrets are blanked.
Settings come from the environment: those of the contract `link`, and SNAPSHOT_* for what to
collect."""


def arguments(_: argparse.ArgumentParser) -> None:
    """Declare no options: what to collect is set by the environment."""


def collect(_: argparse.Namespace, work: Work) -> TaskFailure | None:
    """Collect what the environment asks for."""
    options, problems = read_options(work.environ)
    if problems:
        return TaskFailure("; ".join(problems), "invalid_settings")
    # The client costs a quarter of a second, which wrong settings should not.
    from reporter.kube.api import KubeApi

    try:
        # Some clusters' CAs lack the extensions that Python 3.13 asks for by default.
        api = KubeApi.in_cluster(relax_x509_strict=True)
    except SettingsError as error:
        return TaskFailure(str(error), "no_cluster")
    return snapshot(options, work, api)


def snapshot(options: SnapshotOptions, work: Work, api: "KubeApi") -> TaskFailure | None:
    """Collect from this API server. The end of the time, or a signal, keeps the files so far."""
    from reporter.collect.snapshot.snapshot import Snapshot

    api.hurry_after(_first_seen(work.stop))
    return Snapshot(options, work, api.reading(), log.get()).run()


def _first_seen(stop: Stop) -> Callable[[], float | None]:
    """Return what tells when the stop was seen first; requests before it end soon after it."""
    seen: list[float] = []

    def stopped() -> float | None:
        if not seen and stop.is_set():
            seen.append(time.monotonic())
        return seen[0] if seen else None

    return stopped
