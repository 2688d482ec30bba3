"""`status-ctl jobs --watch`: every change of what reporters say of Jobs, as it comes."""

import argparse
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, said
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.common.objects import Object, View
from reporter.errors import Forbidden, InvalidRequest, KubeError, Silence, Unauthorized
from reporter.jobs.job import JobView
from reporter.jobs.list import Line, lines_of, none_in, table_of

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PAUSE = 2.0  # seconds before the API server is asked again after a failure
POLL = 10.0  # seconds between two lists without permission to watch Jobs


class _Shown:
    """What was shown so far, by the Job's namespace and name; writes what is new."""

    def __init__(self, options: argparse.Namespace, *, everywhere: bool) -> None:
        self._options, self._everywhere = options, everywhere
        self._jobs: dict[tuple[str, str], list[Line]] = {}
        self._headed = False

    @property
    def nothing(self) -> bool:
        """Whether no Job is ours now."""
        return not self._jobs

    def all(self, jobs: Iterable[Object]) -> None:
        """Take a whole list: what is not in it was deleted."""
        found = {_key(job): lines_of(JobView(job)) for job in jobs}
        gone = [key for key in self._jobs if key not in found]
        self._put([line for key in gone for line in self._drop(key)])
        self._put([line for key, lines in found.items() for line in self._take(key, lines)])

    def one(self, event: str, job: Object) -> None:
        """Take an event of a watch."""
        if event == "DELETED":
            self._put(self._drop(_key(job)))
        elif event != "BOOKMARK":
            self._put(self._take(_key(job), lines_of(JobView(job))))

    def _take(self, key: tuple[str, str], lines: list[Line]) -> list[Line]:
        before = self._jobs.pop(key, [])
        if lines:
            self._jobs[key] = lines
        return [line for line in lines if line not in before]

    def _drop(self, key: tuple[str, str]) -> list[Line]:
        return [replace(line, deleted=True) for line in self._jobs.pop(key, [])]

    def _put(self, lines: list[Line]) -> None:
        match self._options.output:
            case "name":
                show.put_names(dict.fromkeys(f"job.batch/{line.name}" for line in lines))
            case "json" | "yaml" as form:
                for line in lines:
                    show.put_document(form, line.data())
            case _ if lines:
                # The others are there for the widths of the columns.
                rest = [line for known in self._jobs.values() for line in known]
                everyone = [*lines, *rest]
                header, *rows = table_of(everyone, self._options, everywhere=self._everywhere)
                show.put([*([] if self._headed else [header]), *rows[: len(lines)]])
                self._headed = True


def follow(api: "KubeApi", namespace: str | None, options: argparse.Namespace) -> NoReturn:
    """Show every change until Ctrl-C. Raises CannotTell without permission to list Jobs."""
    shown, told, first = _Shown(options, everywhere=namespace is None), "", True
    while True:
        trouble, pause = "", PAUSE
        try:
            jobs = list(api.list_all("Job", namespace, options.selector, timeout=TIMEOUT))
        except (Forbidden, Unauthorized, InvalidRequest) as error:
            raise CannotTell(said(error)) from None
        except KubeError as error:
            trouble = f"{said(error)}; trying again"
        else:
            shown.all(jobs)
            if first and shown.nothing:
                tell(f"{none_in(namespace)}; waiting")
            first = False
            try:
                for event, job in api.watch("Job", namespace, options.selector):
                    shown.one(event, job)
            except Silence:
                pass  # nothing has changed for a while, or the connection is dead: a new one tells
            except Forbidden as error:
                trouble, pause = f"{said(error)}; listing every {POLL:g} s instead", POLL
            except KubeError as error:
                trouble = f"{said(error)}; trying again"
        if trouble and trouble != told:
            tell(trouble)
        told = trouble
        time.sleep(pause)


def _key(job: Object) -> tuple[str, str]:
    return View(job).namespace, View(job).name
