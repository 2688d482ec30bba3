"""`status-ctl wait JOB...`: until the last word of its reporter stands on each of these Jobs."""

import argparse
import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, job_name, open_cluster, said
from reporter.cli.exits import CANNOT_TELL, FAILED, GOOD, NOT_OVER, CannotTell
from reporter.cli.output import tell
from reporter.cli.table import Bar, paint
from reporter.common.objects import Object, View
from reporter.common.text import clean
from reporter.errors import Forbidden, InvalidRequest, KubeError, NotFound, Unauthorized
from reporter.jobs.job import JobView, Outcome, newest_pod, pods_selector
from reporter.jobs.lines import lines_of
from reporter.jobs.setting import Setup
from reporter.verdict.not_starting import Trouble, trouble_of
from reporter.verdict.pod import Names, find_adapter, read_pod
from reporter.verdict.rows import Row

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PAUSE = 1.0  # seconds between two looks at the same Job
LAST_TRIES = 90.0
"""Seconds that a reporter may still write after its Job has ended, where no Pod is shown to us."""
STUCK = 60.0
"""Seconds after which --fail-fast takes a container that does not start for a failure by itself."""
_HOPELESS = frozenset({Row.IMAGE, Row.CONFIG, Row.START, Row.CRASH_LOOPING})
"""Rows of verdicts that may still change and seldom do."""
MOST_PODS = 500
LAST_LOOK = 1.0  # seconds for a request at the end of the time


@dataclass(slots=True)
class Awaited:
    """One Job as far as it was seen; `over` once there is nothing more to wait for."""

    name: str
    seen: JobView | None = None
    unread: str = ""  # why the last look showed nothing
    ended_at: float | None = None  # when we first saw it ended; monotonic
    silent: bool = False  # nobody was left that writes, when its Pods were last looked at
    over: bool = False
    trouble: tuple[str, str] | None = None  # Pod and row, for --fail-fast alone
    trouble_since: float = 0.0  # monotonic
    stuck: bool = False  # for so long that it counts as failed
    remark: str = ""

    @property
    def key(self) -> str:
        """How kubectl names it."""
        return f"job.batch/{self.name}"

    @property
    def outcome(self) -> Outcome:
        """What has become of it."""
        return Outcome.OPEN if self.seen is None else self.seen.outcome

    @property
    def state(self) -> str:
        """What stands on it now, in words."""
        if self.seen is None:
            return self.unread or "does not exist"
        return ", ".join(map(str, self.seen.verdicts)) or "no condition yet"


def run(options: argparse.Namespace) -> int:
    """Wait for the Jobs that are named, and return the exit code."""
    names = dict.fromkeys(job_name(written, options) for written in options.jobs)
    api, namespace = open_cluster(options)
    assert namespace is not None
    waiting = Waiting(api, namespace, [Awaited(name) for name in names], options)
    try:
        return waiting.run()
    finally:
        waiting.bar.clear()
        api.close()


class Waiting:
    """Looks at several Jobs in turn until each is decided."""

    def __init__(
        self, api: "KubeApi", namespace: str, jobs: list[Awaited], options: argparse.Namespace
    ) -> None:
        self._api, self._namespace, self._jobs, self._options = api, namespace, jobs, options
        self._blind = False  # no Pod is shown to us
        self._end = time.monotonic() + (math.inf if options.timeout is None else options.timeout)
        self.bar = Bar(sys.stderr)

    def run(self) -> int:
        """Look until nothing is open; return the exit code. Raises CannotTell."""
        while True:
            for job in self._jobs:
                if not job.over:
                    self._look(job)
                if self._options.fail_fast and (job.outcome is Outcome.FAILED or job.stuck):
                    return FAILED
            open_jobs = [job for job in self._jobs if not job.over]
            if not open_jobs:
                return self._code()
            if self._left() <= 0.05:
                for job in open_jobs:
                    self._tell(f"timed out waiting for {job.key}: {job.state}")
                return self._code() or NOT_OVER
            decided, count = len(self._jobs) - len(open_jobs), len(self._jobs)
            shown = "; ".join(f"{job.key}: {job.state}" for job in open_jobs)
            self.bar.put(clean(f"{decided} of {count} decided; waiting for {shown}", 4096))
            time.sleep(max(min(PAUSE, self._left()), 0.0))

    def _code(self) -> int:
        """A failure that is known stays one, whatever becomes of the others."""
        if any(job.outcome is Outcome.FAILED for job in self._jobs):
            return FAILED
        lost = any(job.over and job.outcome is Outcome.OPEN for job in self._jobs)
        return CANNOT_TELL if lost else GOOD

    def _look(self, job: Awaited) -> None:
        try:
            found = self._api.get("Job", self._namespace, job.name, timeout=self._patience())
        except NotFound:
            job.unread = ""
            if job.seen is not None:
                self._lose(job, "was deleted before its last verdict was seen")
            else:
                where = f"namespace {self._namespace!r} yet (-n for another one)"
                self._remark(job, f"not found in {where}; waiting")
        except (Forbidden, Unauthorized, InvalidRequest) as error:
            raise CannotTell(said(error)) from None
        except KubeError as error:
            job.unread = said(error)
            self._remark(job, f"{job.unread}; waiting")
        else:
            view = JobView(found)
            if job.seen is not None and view.uid != job.seen.uid:
                self._lose(job, "was replaced by another Job of that name")
            else:
                job.seen = view
                self._judge(job, view)

    def _judge(self, job: Awaited, view: JobView) -> None:
        if view.outcome is not Outcome.OPEN:
            job.over = True
            self._put(job, view)
        elif job.silent:
            self._lose(job, f"has ended without a final verdict ({job.state})")
        else:
            self._remark(job, view.open_because)
            if view.ended:
                # The next look shows anything that was written until the Pods were looked at.
                job.silent = self._is_silent(job, view)
            elif self._options.fail_fast and self._is_stuck(job, view):
                job.stuck = True
                self._put(job, view)

    def _is_silent(self, job: Awaited, view: JobView) -> bool:
        job.ended_at = time.monotonic() if job.ended_at is None else job.ended_at
        pods = self._pods(view)
        if pods is None:
            return time.monotonic() - job.ended_at >= LAST_TRIES
        return view.nobody_writes(pods)

    def _is_stuck(self, job: Awaited, view: JobView) -> bool:
        """Return whether its newest Pod has failed, as far as anybody can tell before its end."""
        going = [each for each in view.verdicts if each.final is False]
        said = [each for each in going if each.row in _HOPELESS]
        if going and not said:
            return False  # its reporter is at work, and tells all of it
        pods = self._pods(view)
        if pods is None:
            return bool(said)
        pod = newest_pod(pods) or {}
        name = View(pod).name
        if any(each.pod == name for each in view.verdicts):
            # What a retry may change is no failure yet.
            return any(each.pod == name for each in said)
        trouble = _not_starting(pod, view.setups[0]) if view.setups else None
        seen = (name, trouble.row) if trouble else None
        if seen != job.trouble:
            job.trouble, job.trouble_since = seen, time.monotonic()
        if trouble is None or time.monotonic() < job.trouble_since + STUCK:
            return False
        self._remark(job, trouble.text)
        return True

    def _pods(self, view: JobView) -> Sequence[Object] | None:
        """Return the Job's Pods; None where they are not shown to us."""
        if self._blind:
            return None
        selector, patience = pods_selector(view.object), self._patience()
        try:
            return self._api.list_page(
                "Pod", self._namespace, selector, limit=MOST_PODS, timeout=patience
            ).items
        except KubeError as error:
            self._blind = isinstance(error, Forbidden)
            return None

    def _put(self, job: Awaited, view: JobView) -> None:
        self.bar.clear()
        match self._options.output:
            case "name":
                show.put_names([job.key])
            case "json" | "yaml" as form:
                for line in lines_of(view):
                    show.put_document(form, line.data())
            case form:
                colours = show.colours(self._options)
                for each in view.verdicts:
                    status = paint(each.status, colours.get(each.status, ""))
                    where = f" (row {each.row}, Pod {each.pod})" if form == "wide" else ""
                    words = clean(f"{each.reason}: {each.message}{where}", 4096)
                    show.put([f"{job.key}  {clean(each.type, 512)}={status}  {words}"])

    def _lose(self, job: Awaited, why: str) -> None:
        job.over = True
        self._tell(f"{job.key} {why}")

    def _remark(self, job: Awaited, words: str) -> None:
        """Say what is in the way, once."""
        if words and words != job.remark:
            self._tell(f"{job.key}: {words}")
        job.remark = words

    def _tell(self, words: str) -> None:
        self.bar.clear()
        tell(words)

    def _left(self) -> float:
        """Return the seconds that are left to wait."""
        return self._end - time.monotonic()

    def _patience(self) -> float:
        return min(TIMEOUT, max(self._left(), LAST_LOOK))


def _not_starting(pod: Object, setup: Setup) -> Trouble | None:
    """Return what keeps the adapter from starting, or its reporter."""
    adapter, _, _ = find_adapter(pod, setup.names)
    found = (trouble_of(read_pod(pod, Names("", name))) for name in (adapter, setup.name))
    return next(filter(None, found), None)
