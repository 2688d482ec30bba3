"""The aggregator's parts, made from settings and given to each other. `service` decides what runs
when.

The calls are in the order of dependence: the store before the parts that use it.
"""

from __future__ import annotations

import socket
import ssl
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reporter import __version__
from reporter.aggregator import from_settings
from reporter.aggregator.annotate import Annotator
from reporter.aggregator.api import Listener, ResultFiles, Shown, StatusApp, WorkerApp
from reporter.aggregator.certificates.run import Authority, validity
from reporter.aggregator.certificates.tls import read_ca, stand_in_context, worker_context
from reporter.aggregator.control import Control, Timing
from reporter.aggregator.health import Health
from reporter.aggregator.intake import Intake
from reporter.aggregator.judging import Judging
from reporter.aggregator.metrics import Metrics, Now
from reporter.aggregator.observer import Traffic
from reporter.aggregator.run_log import RunLog
from reporter.aggregator.settings import Settings
from reporter.aggregator.startup_gate import StartupGate
from reporter.aggregator.tarball.finish import Finish
from reporter.common import log
from reporter.common.private_file import write_private
from reporter.ledger import Store, Windows
from reporter.ledger.blobs import BlobStore
from reporter.ledger.layout import Layout
from reporter.results.process import Judge
from reporter.run.clock import RunClock
from reporter.run.definition import definition_document
from reporter.run.plan import Plan
from reporter.run.spec import Launch, encode_launch

if TYPE_CHECKING:
    from reporter.aggregator.tarball.upload import TarballUploader
    from reporter.kube.api import KubeApi
    from reporter.launch.launcher import Launcher

_STATUS_KEEP_ALIVE = 10.0  # seconds; readers poll, or hold a stream


class Assembly:
    """Makes every part once. All of them share one clock, one log and one set of metrics."""

    def __init__(
        self, chosen: Settings, plan: Plan, api: KubeApi | None, launch: Launch | None
    ) -> None:
        self.chosen, self.plan, self._api, self.launch = chosen, plan, api, launch
        self.now = RunClock(time.monotonic, time.time)
        self.clock, self.wall, self._log = self.now.clock, self.now.wall, log.get()
        self.metrics = Metrics(__version__, self._now, log.dropped)
        self.layout = Layout(
            Path(chosen.state), Path(chosen.output), reserve=chosen.disk_reserve_bytes
        )
        self._traffic = Traffic(self.metrics, self.clock)
        self.rhythm = from_settings.rhythm(chosen, plan)
        self.connections = from_settings.connections(chosen)
        self._health: Health | None = None
        self.run_log = RunLog()
        self._judge = Judge(self.layout.judging)  # the only one: it reads one result at a time
        self._blobs = BlobStore(self.layout)

    def _now(self) -> Now:
        return self._health.now() if self._health else Now()

    def store(self) -> Store:
        """Make the store, not yet open."""
        return Store(
            self.layout.database,
            now=self.now,
            on_commit=self.metrics.observe_commit,
            windows=Windows(self.chosen.retry_window_seconds, self.chosen.retry_window_cap_seconds),
        )

    def keep_launch(self) -> None:
        """Keep what is launched beside the run's plan, for a start without its file.

        Blocks, for a thread. Raises OSError.
        """
        if self.launch is None:
            return
        document = encode_launch(self.launch).encode()
        place = self.layout.launch
        # A full disk must not keep a run from going on.
        if not place.exists() or place.read_bytes() != document:
            write_private(place, document)

    def intake(self, store: Store) -> Intake:
        """Make what takes bodies in."""
        return Intake(
            self.layout,
            self._blobs,
            store,
            self.chosen,
            self.plan,
            waiting=self.connections // 2,
            wall=self.now,
        )

    def judging(self, store: Store) -> Judging:
        """Make what has results judged."""
        return Judging(self.layout, self._blobs, store, self.plan, self._judge)

    def finish(self, intake: Intake) -> Finish:
        """Make what makes the tarball."""
        definitions = () if self.launch is None else self.launch.definitions
        return Finish(
            self.layout,
            self._blobs,
            intake,
            self._judge,
            keep_blobs=self.chosen.keep_blobs,
            definitions={each.name: definition_document(each) for each in definitions},
            taken_by=self.launch.snapshot if self.launch else "",
            log_written=self.run_log.settle,
            wall=self.wall,
        )

    def upload(self) -> TarballUploader | None:
        """Make what uploads the tarball, if that is asked for."""
        chosen = self.chosen
        if not chosen.upload_url_file:
            return None
        from reporter.aggregator.tarball.upload import TarballUploader

        return TarballUploader(
            self.layout.output,
            Path(chosen.upload_url_file),
            chosen.upload_ca,
            give_up=chosen.upload_give_up_seconds,
            now=self.now,
        )

    def authority(self) -> Authority:
        """Read the run's certificates, or make and export them; blocks, for a thread.

        Raises CertificateError, OSError, and SettingsError when nobody would get them.
        """
        chosen, names = self.chosen, from_settings.server_names(self.chosen)
        authority = Authority.open(
            self.layout.tls,
            self.plan,
            names,
            now=self.wall(),
            seconds=validity(self.plan, self.launch),
            hand_out=from_settings.hand_out(chosen) if self.launch is None else None,
        )
        if authority.fresh:
            exported = [path for path in (chosen.export_certs, chosen.export_secrets) if path]
            self._log.info("Certificates created", names=names, exported=exported)
        else:
            self._log.info("Existing certificates of this run are used, nothing is exported")
        if authority.uncovered:
            self._log.warning(
                "The server certificate lacks names that workers may use",
                names=authority.uncovered,
            )
        return authority

    def workers(self, store: Store, intake: Intake, authority: Authority) -> Listener:
        """Make what serves workers. Raises CertificateError, OSError."""
        chosen = self.chosen
        app = WorkerApp(
            store,
            intake,
            self.plan,
            self._traffic,
            interval=self.rhythm.interval,
            clock=self.clock,
            now=self.now,
        )
        ca = read_ca(Path(chosen.worker_ca)) if chosen.worker_ca else authority.ca
        return Listener(
            app,
            ssl_context=worker_context(ca, authority.server),
            host=chosen.listen.host,
            port=chosen.listen.port,
            connections=self.connections,
            keep_alive=self.rhythm.keep_alive,
            waiting_handshakes=from_settings.waiting_handshakes(),
            observer=self._traffic,
        )

    def health(
        self, store: Store, authority: Authority, intake: Intake, workers: Listener
    ) -> Health:
        """Make what probes and scrapes ask."""
        self._health = Health(
            store,
            self.layout,
            authority,
            workers,
            reserve=self.chosen.disk_reserve_bytes,
            uploads=lambda: intake.uploads.active,
            clock=self.clock,
            wall=self.wall,
        )
        return self._health

    def status(self, gate: StartupGate) -> Listener:
        """Make what probes, scrapes and readers connect to. Raises CertificateError."""
        chosen = self.chosen
        return Listener(
            gate,
            ssl_context=from_settings.status_tls(
                chosen,
                self._certificate_changed,
                # A run that has begun does not end for it: workers need none of these files.
                self._without_certificate if self.layout.database.exists() else None,
            ),
            host=chosen.status_listen.host,
            port=chosen.status_listen.port,
            connections=max(1, self.connections // 8),  # a few readers beside the workers
            keep_alive=_STATUS_KEEP_ALIVE,
            waiting_handshakes=from_settings.waiting_handshakes(),
            observer=self._traffic,
        )

    def _without_certificate(self, error: str) -> ssl.SSLContext:
        self._log.warning(
            "The status listener's certificate is missing: status and results can only be read "
            "through a port-forward",
            error=error,
        )
        return stand_in_context(self.wall())

    def _certificate_changed(self, error: str | None) -> None:
        if error is None:
            self._log.info("The status listener's certificate was reloaded")
        else:
            self._log.warning(
                "The status listener's new certificate cannot be used; keeping the previous one",
                error=error,
            )

    def status_app(self, store: Store, health: Health) -> StatusApp:
        """Make what serves probes, metrics and status of an open run."""
        return StatusApp(
            store,
            health,
            self.metrics.render,
            from_settings.audience(self.chosen),
            self._traffic,
            interval=self.rhythm.interval,
            clock=self.clock,
            wall=self.wall,
            results=ResultFiles(self.layout, self._blobs),
            shown=Shown(self.layout),
            retrieved=store.retrieved,
        )

    def launcher(self, store: Store, intake: Intake, authority: Authority) -> Launcher | None:
        """Make what launches the plugins, if that is asked for."""
        if self.launch is None or self._api is None:
            return None
        from reporter.launch.launcher import Launcher
        from reporter.launch.logs import Logs

        run, chosen = self.plan.run, self.chosen
        address = chosen.advertised(socket.gethostname(), chosen.listen.port)
        return Launcher(
            self._api,
            store,
            self.plan,
            self.launch,
            namespace=chosen.pod_namespace,
            url=f"https://{address}",
            ca=authority.ca,
            client=partial(authority.client, run),
            forget_key=authority.forget_key,
            uploading=lambda: intake.uploads.holding,
            close=intake.uploads.close,
            logs=Logs(
                self._api,
                chosen.pod_namespace,
                self.layout.podlogs,
                self.layout.staging,
                check_room=self.layout.check_room,
            ),
            now=self.now,
        )

    def control(
        self,
        store: Store,
        intake: Intake,
        finish: Finish,
        workers: Listener,
        launcher: Launcher | None,
        *,
        upload: TarballUploader | None = None,
    ) -> Control:
        """Make what carries the run through its phases."""
        return Control(
            store,
            finish,
            plan=self.plan,
            timing=Timing(
                hold=self.chosen.hold_seconds,
                package_give_up=self.chosen.package_give_up_seconds,
                heartbeat_interval=self.rhythm.interval,
                heartbeat_timeout=self.rhythm.timeout,
            ),
            holding=lambda: intake.uploads.holding,
            excused=lambda: intake.uploads.excused,
            queued=lambda: intake.uploads.queued,
            full=lambda: workers.full_seconds,
            removed=None if launcher is None else lambda: launcher.through,
            upload=upload,
            count=self.metrics.count,
            now=self.now,
        )

    def annotator(self, store: Store) -> Annotator | None:
        """Make what writes the status to our Pod, if we are in a cluster."""
        if self._api is None:
            return None
        return Annotator(
            self._api,
            self.chosen.pod_namespace,
            store.snapshot,
            pod_name=self.chosen.pod_name,
            strict=self.chosen.status_values == "strict",
            on_failure=lambda _: self.metrics.count("annotation_failures"),
            clock=self.clock,
        )
