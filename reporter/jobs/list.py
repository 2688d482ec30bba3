"""`status-ctl jobs`: the verdicts on all Jobs, straight from their conditions."""

import argparse
import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, open_cluster, said
from reporter.cli.exits import GOOD, CannotTell
from reporter.cli.output import tell
from reporter.common.objects import Object, View
from reporter.errors import Forbidden, InvalidRequest, KubeError, Silence, Unauthorized
from reporter.jobs.job import JobView
from reporter.jobs.lines import Line, lines_of, none_in, table_of

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Lists the Jobs with a status reporter: those with its condition, and those whose Pods have a
reporter that has not written one yet. No aggregator is needed.

With --watch it runs until Ctrl-C and prints a line for every change of a condition (with -o json or
yaml a document, with -o name a name).

exit codes:
  0    the Jobs could be read, whatever their conditions
  2    usage error
  4    cannot tell: not reachable, forbidden
  130  Ctrl-C"""

API_VERSION = "v1"
PAUSE = 2.0  # seconds before the API server is asked again after a failure
POLL = 10.0  # seconds between two lists without permission to watch Jobs


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "-l", "--selector", metavar="LABELS", default="", help="label selector, as KEY=VALUE,..."
    )
    parser.add_argument(
        "-w", "--watch", action="store_true", help="keep running and print a line for every change"
    )
    show.arguments(parser)
    cluster_arguments(parser, everywhere=True)


def run(options: argparse.Namespace) -> int:
    """Read all Jobs, show those that are ours, and return the exit code."""
    api, namespace = open_cluster(options)
    if options.watch:
        _watch(api, namespace, options)
    with closing(api), asking():
        jobs = api.list_all("Job", namespace, options.selector, timeout=TIMEOUT)
        lines = [line for job in jobs for line in lines_of(JobView(job))]
    match options.output:
        case "name":
            found = dict.fromkeys((line.namespace, line.name) for line in lines)
            show.put_names(f"job.batch/{name}" for _, name in found)
        case "json" | "yaml":
            items = [line.data() for line in lines]
            document = {"api_version": API_VERSION, "kind": "Jobs", "items": items}
            show.put_data(options.output, document)
        case _ if lines:
            show.put(table_of(lines, options, everywhere=namespace is None))
    if not lines:
        tell(none_in(namespace))
    return GOOD


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


def _watch(api: "KubeApi", namespace: str | None, options: argparse.Namespace) -> NoReturn:
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
