"""What the loop needs of others: small interfaces, declared here by their consumer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from reporter.errors import KubeError
from reporter.verdict.case import Observation, Policy
from reporter.verdict.condition import Standing, Statement
from reporter.verdict.facts import PodLook
from reporter.verdict.payloads import FirstLook, Progress, ResultLook, Searched
from reporter.verdict.rows import Report


class PodSource(Protocol):
    """Where the Pod, or what stands for it, is looked at."""

    def look(self, *, fresh: bool = False, timeout: float = ...) -> PodLook:
        """Return the newest state; `fresh` asks whoever knows now."""

    def next_look(self) -> float:
        """Return when looking again is worth it by itself; infinity if something wakes the loop."""


class ResultSource(Protocol):
    """Where the result file is looked at."""

    def look(self) -> ResultLook:
        """Return what lies there now."""

    def look_around(self) -> Searched:
        """Return where that is, and what lies there instead."""


class ProgressSource(Protocol):
    """Where progress is looked at."""

    def look(self) -> Progress | None:
        """Return the newest good progress."""


class FileEvents(Protocol):
    """What wakes the loop when a file changes."""

    def sleep(self, wake: "Wake", seconds: float, *, cost: float) -> None:
        """Sleep until woken, until a file may have changed, or for so long.

        `cost` is how long the last look at the files took, in seconds.
        """


class Sink(Protocol):
    """Where reports go."""

    @property
    def standing(self) -> Standing | None:
        """What was read or written last."""

    def expect(self, uid: str) -> None:
        """Name the Job that is meant."""

    def read(self, *, timeout: float = ...) -> Standing:
        """Read what stands. Raises KubeError."""

    def write(self, statement: Statement, *, timeout: float = ...) -> Standing:
        """Write on what was read. Raises KubeError."""

    def annotate(self, member: str, shown: Mapping[str, Any], *, timeout: float = ...) -> Standing:
        """Add a member to the annotation that stands. Raises KubeError."""

    def announce(self, statement: Statement, *, timeout: float, late: bool = ...) -> None:
        """Tell people of a final statement, or of a `late` result. Raises KubeError."""


class Telemetry(Protocol):
    """Who is told what the loop does."""

    def observed(self, o: Observation) -> None:
        """Hear of every pass."""

    def published(self, statement: Statement, seconds: float) -> None:
        """Hear of every write that was accepted."""

    def withheld(self, report: Report, evidence: Mapping[str, Any]) -> None:
        """Hear of a final verdict that cannot be written; it is tried again, and told again."""

    def failed(self, what: str, error: KubeError) -> None:
        """Hear of every request that failed."""


class Stop(Protocol):
    """Whether the process was asked to end."""

    @property
    def requested_at(self) -> float | None:
        """Monotonic time of the first request."""


class Wake(Protocol):
    """What the loop sleeps on."""

    def wait(self, timeout: float | None, extra_fds: Any = ...) -> set[int] | None:
        """Sleep until woken (None), descriptors are readable, or `timeout` seconds are over."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything the loop looks at."""

    pod: PodSource
    result: ResultSource
    progress: ProgressSource
    events: FileEvents | None = None
    first_look: FirstLook | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What the user set, as far as the loop's acting depends on it."""

    job_name: str
    pod_name: str
    policy: Policy
    report_running: bool = True
    poll_interval: float = 2.0
