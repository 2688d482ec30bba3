"""`status-ctl jobs --watch`: every change of what reporters say of Jobs, as it comes."""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, said
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.common.objects import section, text
from reporter.errors import Forbidden, InvalidRequest, KubeError, Silence, Unauthorized
from reporter.jobs.finding import Object
from reporter.jobs.list import Line, item, lines_of, none_in, table_of

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PAUSE = 2.0  # seconds before the API server is asked again after a failure
POLL = 10.0  # seconds between two lists without permission to watch Jobs

Key = tuple[str, str]


class Shown:
    """What was shown so far, by the Job's namespace and name; writes what is new."""

    def __init__(self, namespace: str | None, options: argparse.Namespace) -> None:
        self._namespace, self._options = namespace, options
        self._jobs: dict[Key, list[Line]] = {}
        self._header = False

    def all(self, jobs: Iterable[Object]) -> None:
        """Take a whole list: what is not in it was deleted."""
        found = {_key(job): list(lines_of(job)) for job in jobs}
        gone = [key for key in self._jobs if key not in found]
        self._put([line for key in gone for line in self._drop(key)])
        self._put([line for key, lines in found.items() for line in self._take(key, lines)])

    def one(self, event: str, job: Object) -> None:
        """Take an event of a watch."""
        if event == "DELETED":
            self._put(self._drop(_key(job)))
        elif event != "BOOKMARK":
            self._put(self._take(_key(job), list(lines_of(job))))

    def _take(self, key: Key, lines: list[Line]) -> list[Line]:
        before = self._jobs.pop(key, [])
        if lines:
            self._jobs[key] = lines
        return [line for line in lines if line not in before]

    def _drop(self, key: Key) -> list[Line]:
        return [replace(line, deleted=True) for line in self._jobs.pop(key, [])]

    def _put(self, lines: list[Line]) -> None:
        if not lines:
            return
        match self._options.output:
            case "name":
                show.put_names(dict.fromkeys(f"job.batch/{line.name}" for line in lines))
            case "json":
                written = (json.dumps(item(line), ensure_ascii=False) for line in lines)
                show.put(map(show.safe_json, written))
            case "yaml":
                for line in lines:
                    show.put(["---"])
                    show.put_data("yaml", item(line))
            case form:
                # The others are there for the widths of the columns.
                rest = [line for known in self._jobs.values() for line in known]
                wide, everywhere = form == "wide", self._namespace is None
                options = self._options
                header, *text = table_of([*lines, *rest], options, wide=wide, everywhere=everywhere)
                show.put([*([] if self._header else [header]), *text[: len(lines)]])
                self._header = True


def follow(
    api: "KubeApi",
    namespace: str | None,
    options: argparse.Namespace,
    sleep: Callable[[float], None] = time.sleep,
) -> NoReturn:
    """Show every change until Ctrl-C. Raises CannotTell without permission to list Jobs."""
    shown, told, first = Shown(namespace, options), "", True
    while True:
        pause = PAUSE
        try:
            jobs = list(api.list_jobs(namespace, options.selector, timeout=TIMEOUT))
            if first and not any(True for job in jobs for _ in lines_of(job)):
                tell(f"{none_in(namespace)}; waiting")
            first = False
            shown.all(jobs)
        except (Forbidden, Unauthorized, InvalidRequest) as error:
            raise CannotTell(said(error)) from None
        except KubeError as error:
            trouble = f"{said(error)}; trying again"
        else:
            trouble, pause = _watch(api, namespace, options, shown)
        if trouble and trouble != told:
            tell(trouble)
        told = trouble
        sleep(pause)


def _watch(
    api: "KubeApi", namespace: str | None, options: argparse.Namespace, shown: Shown
) -> tuple[str, float]:
    """Follow one watch to its end; return what was in the way, and how long to pause."""
    try:
        for event, job in api.watch_jobs(namespace, options.selector):
            shown.one(event, job)
    except Forbidden as error:
        return f"{said(error)}; listing every {POLL:g} s instead", POLL
    except Silence:
        pass  # nothing has changed for a while, or the connection is dead: a new one tells
    except KubeError as error:
        return f"{said(error)}; trying again", PAUSE
    return "", PAUSE


def _key(job: Object) -> Key:
    metadata = section(job, "metadata")
    return text(metadata, "namespace"), text(metadata, "name")
