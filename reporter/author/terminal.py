"""The report for a person without a cluster: a Job in memory, and what happens to it, line by line.

The Job answers the two calls that `JobCondition` makes, so the patch is built and read back
by the same code as in a cluster. The output is valid YAML: events are its comments.
"""

import signal
import time
import uuid
from collections.abc import Mapping
from typing import Any, TextIO

from reporter.cli.output import STATUS_COLOURS
from reporter.cli.table import paint
from reporter.common.objects import stamp
from reporter.common.text import clean
from reporter.errors import KubeError
from reporter.sidecar.job import patched
from reporter.verdict.case import Observation
from reporter.verdict.condition import Statement
from reporter.verdict.facts import Progress, Terminated, pod_of
from reporter.verdict.rows import Report, describe_progress


class JobInMemory:
    """One Job that nobody else writes to. `shown` is the object as the API would show it."""

    def __init__(self, namespace: str, name: str) -> None:
        self.shown: dict[str, Any] = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "creationTimestamp": stamp(time.time()),
                "name": name,
                "namespace": namespace,
                "resourceVersion": "1",
                "uid": str(uuid.uuid4()),
            },
            "status": {},
        }

    def get(self, *_: str, **__: object) -> dict[str, Any]:
        """Return the Job."""
        return self.shown

    def patch(
        self, _kind: str, _namespace: str, _name: str, body: dict[str, Any], **__: object
    ) -> dict[str, Any]:
        """Merge annotations by key and conditions by type, and return the Job."""
        version = int(self.shown["metadata"]["resourceVersion"])
        self.shown = patched(self.shown, body)
        self.shown["metadata"]["resourceVersion"] = str(version + 1)
        return self.shown


class Timeline:
    """Prints, one comment a line, how the condition changes and what the adapter does meanwhile.

    It is told by the loop, as the sidecar's logs and metrics are.
    """

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        self._out, self._colour = out, colour
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._ended = False
        self._line("    TIME", "STATUS", "FINAL", "REASON", "MESSAGE")

    def observed(self, o: Observation) -> None:
        """Tell progress and the adapter's end, once each."""
        if o.progress != self._progress and o.progress is not None:
            self.remark(f"progress: {describe_progress(o.progress) or 'nothing said'}")
        self._progress = o.progress
        pod = pod_of(o.pod)
        state = pod.adapter_state if pod else None
        if isinstance(state, Terminated) and not self._ended:
            self._ended = True
            self.remark(f"the adapter exited with code {_end(state)}")

    def published(self, statement: Statement, seconds: float) -> None:
        """Tell what the condition says from now on."""
        report = statement.report
        final = "yes" if statement.final else "no"
        self._line(self._time(), report.status, final, report.reason, report.message)

    def withheld(self, report: Report, evidence: Mapping[str, Any]) -> None:
        """Hear of a verdict that may not be written: in memory all may."""

    def failed(self, what: str, error: KubeError) -> None:
        """Hear of a failed request: there are none in memory."""

    def remark(self, text: str) -> None:
        """Tell something that is no condition."""
        self._print(f"# {self._time()}  {clean(text, 2048)}")

    def _line(self, at: str, status: str, final: str, reason: str, message: str) -> None:
        code = STATUS_COLOURS.get(status, "1") if self._colour else ""
        self._print(f"# {at}  {paint(f'{status:<7}', code)}  {final:<5}  {reason:<24}  {message}")

    def _time(self) -> str:
        return f"{time.monotonic() - self._began:7.3f}s"

    def _print(self, line: str) -> None:
        print(line, file=self._out, flush=True)


def _end(run: Terminated) -> str:
    signals = {number.value: number.name for number in signal.Signals}
    by = f", {signals.get(run.signal, run.signal)}" if run.signal else ""
    said = f": {run.message}" if run.message else ""
    return f"{run.exit_code} ({run.reason}{by}){said}"
