"""A plugin that ends without a done file: its results are packed in its place, or its end reported.

Sees the Pod through `get_pod`; whoever has no right to read it goes without.
"""

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reporter.common import log
from reporter.common.objects import Object, items, section, text
from reporter.common.private_file import write_private
from reporter.errors import Forbidden, KubeError, Unauthorized
from reporter.link import done_file
from reporter.link.gather import GatherFailure
from reporter.link.heart import Background
from reporter.link.tree_archive import pack
from reporter.verdict.facts import Terminated
from reporter.verdict.pod import Names, read_pod

ARCHIVE = "out.tar.gz"
EVERY_SECONDS = 5.0
HITS = 2
PATIENCE_SECONDS = 30.0
"""After a crash of the plugin: for whoever else may still write a done file."""


def ended(pod: Object, worker: str) -> dict[str, Terminated]:
    """Return how the other containers of the Pod have ended, if all of them have, for good.

    `worker` names our own. Nothing where one runs, will run again, or nobody knows.
    """
    declared = {text(c, "name") for c in items(section(pod, "spec"), "containers")}
    started = {text(c, "name") for c in items(section(pod, "status"), "containerStatuses")}
    found = {}
    for name in sorted((declared | started) - {worker}):
        read = read_pod(pod, Names(reporter=worker, adapter=name))
        state = read.adapter.state if read.adapter else None
        if not isinstance(state, Terminated) or read.restart.restarts_after(state.exit_code):
            return {}
        found[name] = state
    return found


class AutoTar(Background):
    """Looks at the Pod every five seconds on a thread of its own, until there is a done file.

    When all others have ended well twice in a row it packs the results directory and writes the
    done file. When one has crashed, `failure` says so half a minute later.
    """

    def __init__(
        self,
        get_pod: Callable[[], dict[str, Any]],
        worker: str,
        results: Path,
        *,
        every: float = EVERY_SECONDS,
        patience: float = PATIENCE_SECONDS,
        over: threading.Event | None = None,
    ) -> None:
        super().__init__("auto-tar", over)
        self._get_pod, self._worker, self._results = get_pod, worker, results
        self._every, self._patience = every, patience
        self._log = log.get()
        self.failure: GatherFailure | None = None
        """Set once, when no result can come any more."""

    def _run(self) -> None:
        hits = 0
        while not self._over.wait(self._every) and not done_file.seen(self._results):
            try:
                found = ended(self._get_pod(), self._worker)
            except (Forbidden, Unauthorized) as error:
                self._log.info("No auto-tar: not allowed to read the Pod", error=error)
                return
            except KubeError:
                found = {}
            hits = hits + 1 if found else 0
            if hits < HITS:
                continue
            for name, state in found.items():
                if state.exit_code != 0:
                    self._report(name, state)
                    return
            self._deliver()
            return

    def _report(self, container: str, state: Terminated) -> None:
        if self._over.wait(self._patience) or done_file.seen(self._results):
            return
        reason = f" ({state.reason})" if state.reason else ""
        self.failure = GatherFailure(
            f"container {container} ended with exit code {state.exit_code}{reason} "
            "before there were results",
            "plugin_failed",
            partial=True,
        )

    def _deliver(self) -> None:
        try:
            archive = pack_in_place(self._results)
            if not done_file.seen(self._results):
                write_private(self._results / done_file.NAME, os.fsencode(archive))
        except OSError as error:
            self.failure = GatherFailure(
                f"the plugin left no done file, and its results cannot be packed: {error}",
                "unreadable_result",
            )
            return
        self._log.warning("The plugin left no done file: packing its results", file=archive)


def pack_in_place(results: Path) -> Path:
    """Pack a directory into `out.tar.gz` inside of it; return that path. Raises OSError.

    The archive appears as a whole; a file of that name from before is a member of it.
    """
    with done_file.directory(results) as opened:
        number, name = tempfile.mkstemp(prefix=f".{ARCHIVE}.", dir=opened)
        with open(number, "wb") as file:  # noqa: PTH123 - a descriptor
            try:
                pack(opened, file, exclude=(Path(name), opened / done_file.NAME))
                Path(name).replace(opened / ARCHIVE)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
    return results / ARCHIVE
