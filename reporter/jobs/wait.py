"""`status-ctl wait JOB...`: until the last word of its reporter stands on each of these Jobs."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, job_name, open_cluster, said
from reporter.cli.exits import CANNOT_TELL, FAILED, GOOD, TIME_OVER, CannotTell
from reporter.cli.output import tell
from reporter.cli.table import Bar, paint
from reporter.common.objects import section, text
from reporter.common.text import clean
from reporter.errors import Forbidden, InvalidRequest, KubeError, NotFound, Unauthorized
from reporter.jobs.finding import Object
from reporter.jobs.job import ended, standing
from reporter.jobs.list import item, lines_of
from reporter.jobs.outcome import JobOutcome, nobody_writes, open_because, outcome
from reporter.jobs.written_verdict import WrittenVerdict

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PAUSE = 1.0  # seconds between two looks at the same Job
LAST_TRIES = 90.0
"""Seconds that a reporter may still write after its Job has ended, where no Pod is shown to us."""
MOST_PODS = 500
LAST_LOOK = 1.0  # seconds for a request at the end of the time


@dataclass(slots=True)
class Awaited:
    """One Job as far as it was seen; `over` once there is nothing more to wait for."""

    name: str
    seen: Object | None = None
    unread: str = ""  # why the last look showed nothing
    ended_at: float | None = None  # when we first saw it ended; monotonic
    silent: bool = False  # nobody was left that writes, when its Pods were last looked at
    over: bool = False
    outcome: JobOutcome = JobOutcome.OPEN
    remark: str = ""

    @property
    def key(self) -> str:
        """How kubectl names it."""
        return f"job.batch/{self.name}"

    @property
    def state(self) -> str:
        """What stands on it now, in words."""
        if self.seen is None:
            return self.unread or "does not exist"
        return ", ".join(map(_words, standing(self.seen))) or "no condition yet"


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
        self,
        api: "KubeApi",
        namespace: str,
        jobs: list[Awaited],
        options: argparse.Namespace,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api, self._namespace, self._jobs = api, namespace, jobs
        self._options, self._clock, self._sleep = options, clock, sleep
        self._end = None if options.timeout is None else clock() + options.timeout
        self.bar = Bar(sys.stderr)

    def run(self) -> int:
        """Look until nothing is open; return the exit code. Raises CannotTell."""
        while True:
            for job in self._jobs:
                if not job.over:
                    self._look(job)
                if self._options.fail_fast and job.outcome is JobOutcome.FAILED:
                    return FAILED
            left = [job for job in self._jobs if not job.over]
            if not left:
                return self._code()
            if self._end is not None and self._clock() + 0.05 >= self._end:
                for job in left:
                    self._tell(f"timed out waiting for {job.key}: {job.state}")
                return self._code() or TIME_OVER
            self.bar.put(_progress(left, len(self._jobs)))
            pause = PAUSE if self._end is None else min(PAUSE, self._end - self._clock())
            self._sleep(max(pause, 0.0))

    def _code(self) -> int:
        """A failure that is known stays one, whatever becomes of the others."""
        if any(job.outcome is JobOutcome.FAILED for job in self._jobs):
            return FAILED
        lost = any(job.over and job.outcome is JobOutcome.OPEN for job in self._jobs)
        return CANNOT_TELL if lost else GOOD

    def _look(self, job: Awaited) -> None:
        try:
            found = self._api.view_job(self._namespace, job.name, timeout=self._patience())
        except NotFound:
            job.unread = ""
            if job.seen is not None:
                self._lose(job, "was deleted before its last verdict was seen")
            else:
                self._remark(
                    job,
                    f"not found in namespace {self._namespace!r} yet (-n for another one); waiting",
                )
        except (Forbidden, Unauthorized, InvalidRequest) as error:
            raise CannotTell(said(error)) from None
        except KubeError as error:
            job.unread = said(error)
            self._remark(job, f"{job.unread}; waiting")
        else:
            if job.seen is not None and _uid(found) != _uid(job.seen):
                self._lose(job, "was replaced by another Job of that name")
            else:
                self._judge(job, found)

    def _judge(self, job: Awaited, found: Object) -> None:
        job.seen, job.outcome = found, outcome(found)
        if job.outcome is not JobOutcome.OPEN:
            job.over = True
            self._put(job, found)
        elif job.silent:
            self._lose(job, f"has ended without a final verdict ({job.state})")
        else:
            self._remark(job, open_because(found))
            # The next look shows anything that was written until the Pods were looked at.
            job.silent = ended(found) and self._is_silent(job, found)

    def _is_silent(self, job: Awaited, found: Object) -> bool:
        job.ended_at = self._clock() if job.ended_at is None else job.ended_at
        labels = section(found, "spec", "selector", "matchLabels")
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        try:
            pods = self._api.list_pods(
                self._namespace, selector, limit=MOST_PODS, timeout=self._patience()
            )
        except KubeError:
            return self._clock() - job.ended_at >= LAST_TRIES
        return nobody_writes(found, pods)

    def _put(self, job: Awaited, found: Object) -> None:
        self.bar.clear()
        match self._options.output:
            case "name":
                show.put_names([job.key])
            case "json":
                items = [item(line) for line in lines_of(found)]
                show.put(show.safe_json(json.dumps(each, ensure_ascii=False)) for each in items)
            case "yaml":
                for line in lines_of(found):
                    show.put(["---"])
                    show.put_data("yaml", item(line))
            case form:
                colours = show.colours(self._options)
                for each in standing(found):
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

    def _patience(self) -> float:
        left = TIMEOUT if self._end is None else self._end - self._clock()
        return min(TIMEOUT, max(left, LAST_LOOK))


def _words(verdict: WrittenVerdict) -> str:
    return f"{verdict.type}={verdict.status} {verdict.reason}: {verdict.message}"


def _progress(left: list[Awaited], count: int) -> str:
    """Say on a line what is waited for."""
    shown = "; ".join(f"{job.key}: {job.state}" for job in left)
    return clean(f"{count - len(left)} of {count} decided; waiting for {shown}", 4096)


def _uid(job: Object) -> str:
    return text(section(job, "metadata"), "uid")
