"""`status-ctl runs`: the runs that stand in the cluster, and how each is."""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, open_cluster
from reporter.cli.exits import GOOD
from reporter.cli.output import tell
from reporter.cli.table import table, terminal_columns
from reporter.common.objects import View, text
from reporter.errors import Forbidden, NotFound
from reporter.run.names import PART_OF, RUN_LABEL
from reporter.run.pod_status import newest_first, of_reading, read_status
from reporter.run.view import Document, counts
from reporter.runctl.cluster_run import NO_POD, place_words
from reporter.runctl.spec import CREATED_BY, EVERY_RUN, PLAN

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Lists the runs that `status-ctl run` has started, in the current namespace or with -A in all
namespaces. A run that was started without -n has its own namespace. Runs that were created or
deleted only in part are listed too, if you can list ConfigMaps and namespaces.

exit codes:
  0    the runs could be read, whatever their status
  2    usage error
  4    cannot tell: not reachable, forbidden
  130  Ctrl-C"""

_API_VERSION: Final = "v1"
_HEADER: Final = ("NAME", "STATUS", "RESULT", "DONE", "FAILED", "AGE", "DETAIL")
_MADE: Final = ",".join([*(f"{key}={value}" for key, value in PART_OF.items()), RUN_LABEL])


@dataclass(frozen=True, slots=True)
class ListedRun:
    """One run: its aggregator's Job, and what its Pod says; `detail` is why it says nothing.

    `created_at` is Unix seconds.
    """

    namespace: str
    name: str
    created_at: float | None
    document: Document | None
    detail: str = ""


def arguments(parser: argparse.ArgumentParser) -> None:
    show.arguments(parser)
    cluster_arguments(parser, everywhere=True)


def run(options: argparse.Namespace) -> int:
    """Read all runs, show them, and return the exit code."""
    api, namespace = open_cluster(options)
    with closing(api), asking():
        whole = list(_runs_in(api, namespace))
        parts = _incomplete(api, namespace, whole, options)
        found = sorted([*whole, *parts], key=lambda each: (each.namespace, each.name))
    match options.output:
        case "name":
            show.put_names(f"run/{each.name}" for each in found)
        case "json" | "yaml":
            items = [_item(each) for each in found]
            show.put_data(
                options.output, {"api_version": _API_VERSION, "kind": "Runs", "items": items}
            )
        case form if found:
            columns = None if form == "wide" else terminal_columns(sys.stdout)
            header, cells = [*_HEADER], [_cells(each) for each in found]
            if namespace is None:
                header = ["NAMESPACE", *header]
                cells = [[each.namespace, *row] for each, row in zip(found, cells, strict=True)]
            show.put(table(header, cells, columns=columns, colours=show.colours(options)))
    if not found:
        where = "any namespace" if namespace is None else f"namespace {namespace!r}; -A lists all"
        tell(f"no runs in {where}")
    return GOOD


def _runs_in(api: "KubeApi", namespace: str | None) -> Iterator[ListedRun]:
    """Yield the runs of a namespace, None for all. Raises KubeError."""
    found = list(api.list_all("Pod", namespace, EVERY_RUN, timeout=TIMEOUT))
    pods = {_named(pod): pod for pod in reversed(newest_first(found))}
    for job in api.list_all("Job", namespace, EVERY_RUN, timeout=TIMEOUT):
        place, name = _named(job)
        created = View(job).created
        pod = pods.get((place, name))
        if pod is None:
            yield ListedRun(place, name, created, None, NO_POD)
            continue
        look = of_reading(read_status(pod))
        yield ListedRun(place, name, created, look.document, look.detail)


def _incomplete(
    api: "KubeApi", namespace: str | None, whole: Iterable[ListedRun], options: argparse.Namespace
) -> list[ListedRun]:
    """Return the runs of which there are only traces. Raises KubeError."""
    known = {(each.namespace, each.name) for each in whole}
    found: dict[tuple[str, str], ListedRun] = {}
    for place, name, trace in _traces(api, namespace):
        key, going = (place, name), trace.deleting
        if key in known or (key in found and not going):
            continue
        command = f"status-ctl delete {name}{place_words(place, options)}"
        detail = f"incomplete, unless it is just being created or deleted; {command} removes it"
        created = trace.created
        found[key] = ListedRun(place, name, created, None, "is being deleted" if going else detail)
    return list(found.values())


def _named(found: Any) -> tuple[str, str]:
    return View(found).namespace, text(View(found).labels, RUN_LABEL)


def _cells(run: ListedRun) -> list[str]:
    age = show.ago(None if run.created_at is None else time.time() - run.created_at)
    if run.document is None:
        return [run.name, "", "", "", "", age, run.detail]
    counted = counts(run.document)
    return [
        run.name,
        text(run.document, "status"),
        text(run.document, "result_status"),
        f"{counted['decided']}/{counted['entries']}",
        str(counted["failed"]),
        age,
        "",
    ]


def _item(run: ListedRun) -> dict[str, Any]:
    return {
        "namespace": run.namespace,
        "name": run.name,
        "created_at": run.created_at,
        "status": dict(run.document) if run.document is not None else None,
        "detail": run.detail,
    }


def _traces(api: "KubeApi", namespace: str | None) -> Iterator[tuple[str, str, View]]:
    """Yield namespace and run of plans and of namespaces that a run has made.

    So runs are seen of which only a part is there, as after a `run` or a `delete` that was killed:
    the ConfigMap is created first and deleted last, the namespace that a run makes even before and
    after it. Only their metadata is read: a plan can have a megabyte. A user without permission to
    see them sees none.
    """
    try:
        for found in api.list_all(PLAN, namespace, EVERY_RUN, metadata_only=True, timeout=TIMEOUT):
            yield *_named(found), View(found)
    except Forbidden:
        pass
    try:
        if namespace is not None:
            made = [api.get("Namespace", None, namespace, timeout=TIMEOUT)]
        else:
            made = list(api.list_all("Namespace", None, _MADE, metadata_only=True, timeout=TIMEOUT))
    except (Forbidden, NotFound):
        return
    for found in made:
        view = View(found)
        if run := text(view.annotations, CREATED_BY):
            yield view.name, run, view
