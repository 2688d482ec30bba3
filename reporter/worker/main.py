"""The worker's life: settings, relay and heartbeats, the wait for results, what comes after."""

import os
import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from reporter import __version__
from reporter.common import log
from reporter.common.lifecycle import Stop
from reporter.common.log import link_event
from reporter.errors import SettingsError
from reporter.link import (
    AggregatorClient,
    ConfigError,
    Delivery,
    Heart,
    Outcome,
    Relay,
    TrustError,
    WorkerConfig,
    gather,
)
from reporter.worker.command_line import USAGE, UsageError, parse

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi
    from reporter.worker.auto_tar import AutoTar

DELIVERED, NOT_DELIVERED, BAD_USAGE = 0, 1, 2


def main(
    arguments: list[str],
    environ: MutableMapping[str, str],
    stop: Stop,
    connect: "Callable[[], KubeApi] | None" = None,
) -> int:
    """Do what the arguments say and return the exit code; `connect` finds the API server.

    0 when the aggregator has a result of this worker, 1 when it has none, 2 for arguments or
    settings that do not fit.
    """
    try:
        words, sleep = parse(arguments)
        match words:
            case ["worker", "global"]:
                return _work("global", sleep, environ, stop, connect or _in_cluster)
            case ["worker", "single-node"]:
                return _work("node", sleep, environ, stop, connect or _in_cluster)
            case ["splat", directory]:
                return _splat(Path(directory))
            case ["version"]:
                print(__version__)
            case ["help"]:
                print(USAGE)
            case _:
                raise UsageError(f"unknown command: {' '.join(words) or 'none'}")
    except UsageError as error:
        print(error, USAGE, sep="\n", file=sys.stderr)
        return BAD_USAGE
    return DELIVERED


def _splat(directory: Path) -> int:
    """Print one gzip'd tar of every `*.tar.gz` in a directory; `sonobuoy retrieve` reads it."""
    import gzip
    import tarfile

    out = sys.stdout.buffer
    try:
        files = sorted(path for path in directory.iterdir() if path.name.endswith(".tar.gz"))
        with (
            # The archives are compressed already.
            gzip.GzipFile("", "wb", 1, out, mtime=0) as zipped,
            tarfile.open(
                fileobj=cast("BinaryIO", zipped), mode="w|", format=tarfile.GNU_FORMAT
            ) as tar,
        ):
            for path in files:
                with path.open("rb") as file:
                    found = os.fstat(file.fileno())
                    member = tarfile.TarInfo(path.name)
                    member.size, member.mtime = found.st_size, int(found.st_mtime)
                    tar.addfile(member, file)
        sys.stdout.flush()
    except OSError as error:
        print(f"splat: {error}", file=sys.stderr)
        # The rest of the buffer has nowhere to go, and Python would try again at its end.
        os._exit(NOT_DELIVERED)
    return DELIVERED


def _work(
    scope: Literal["global", "node"],
    sleep: int,
    environ: MutableMapping[str, str],
    stop: Stop,
    connect: "Callable[[], KubeApi]",
) -> int:
    log.report_crashes()
    log.configure()
    try:
        config = WorkerConfig.from_env(environ, scope=scope, drop_key=True)
    except ConfigError as error:
        log.get().error("Invalid settings", problems=error.problems)
        return BAD_USAGE
    for warning in config.warnings:
        log.get().warning("Setting ignored", problem=warning)
    for line in config.ignored:
        log.get().info("Unknown setting", variable=line)
    return Worker(config, stop, _auto_tar(config, connect)).run(sleep)


class Worker:
    """One worker beside one plugin."""

    def __init__(self, config: WorkerConfig, stop: Stop, auto_tar: "AutoTar | None") -> None:
        self._config, self._stop, self._auto_tar = config, stop, auto_tar
        self._client = AggregatorClient(config, stop=stop, on_event=link_event)
        self._relay = Relay(self._client, config.progress_port, on_event=link_event)
        self._heart = Heart(self._client, interval=config.heartbeat_seconds, on_event=link_event)

    def run(self, sleep: int) -> int:
        """Work until the result is delivered, stay for `sleep` seconds, return the exit code."""
        log.get().info(
            "Worker started",
            version=__version__,
            aggregator=self._config.aggregator_url,
            plugin=self._config.plugin,
            node=self._config.node,
            resultsDir=self._config.results_dir,
        )
        self._relay.start()
        if self._config.heartbeat_seconds:
            self._heart.start()
        if self._auto_tar:
            self._auto_tar.start()
        code = _verdict(self._gather())
        # Nobody waits for what these threads are at: they end with the process.
        self._heart.stop()
        if self._auto_tar:
            self._auto_tar.stop()
        if code == DELIVERED and sleep:
            self._stop.wait(sleep if sleep > 0 else None)
        if not self._stop.is_set():
            self._relay.close(last_try=True)
        self._client.close()
        log.get().info("Worker exits", exitCode=code)
        return code

    def _gather(self) -> Delivery:
        auto_tar = self._auto_tar
        try:
            return gather(
                self._config,
                self._client,
                self._stop,
                failed=lambda: auto_tar.failure if auto_tar else None,
            )
        except TrustError as error:
            return Delivery(Outcome.REFUSED, text=str(error))


def _verdict(delivery: Delivery) -> int:
    facts = {"outcome": delivery.outcome, **delivery.facts}
    if delivery.delivered:
        log.get().info("Result delivered", **facts)
        return DELIVERED
    log.get().error("No result delivered", reason=delivery.text, **facts)
    return NOT_DELIVERED


def _auto_tar(config: WorkerConfig, connect: "Callable[[], KubeApi]") -> "AutoTar | None":
    namespace, pod = config.namespace, config.plugin_pod
    if not (namespace and pod and config.worker_container):
        return None
    from reporter.worker.auto_tar import AutoTar

    try:
        api = connect()
    except SettingsError:
        return None  # not in a cluster
    return AutoTar(
        lambda: api.get("Pod", namespace, pod), config.worker_container, config.results_dir
    )


def _in_cluster() -> "KubeApi":
    # The client costs 20 MB, which a worker that was told of no Pod goes without.
    from reporter.kube.api import KubeApi

    # Some clusters' CAs lack the extensions that Python 3.13 asks for by default.
    return KubeApi.in_cluster(relax_x509_strict=True)
