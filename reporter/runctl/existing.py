"""A run that stands in the cluster: where it is, and what a person can do with it."""

import argparse
import shlex
import sys
from typing import TYPE_CHECKING

from reporter.cli.cluster import TIMEOUT, open_cluster, words
from reporter.cli.exits import CannotTell
from reporter.common.objects import section
from reporter.errors import Forbidden, NotFound
from reporter.run.names import is_run_name, selector
from reporter.runctl.by_cluster import ByCluster
from reporter.runctl.cluster_rights import Beyond
from reporter.runctl.run_objects import CREATED_BY
from reporter.runctl.search import OWN_NAMESPACE, has_plan, not_found

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_TRACES = ("StatefulSet", "Job", "Secret", "Role")
"""Kinds of which a run that is not wholly deleted has something left."""


def place_words(namespace: str, options: argparse.Namespace, *, own: bool = False) -> str:
    """Return the options by which a command finds a run there; its own is found by its name."""
    where = "" if own and not options.namespace else f" -n {namespace}"
    for name in ("context", "kubeconfig"):
        if given := getattr(options, name):
            where += f" --{name} {shlex.quote(given)}"
    return where


def hints(
    run: str,
    namespace: str,
    options: argparse.Namespace,
    *,
    own: bool,
    ended: bool = False,
    gone: bool = False,
    saved: bool = False,
) -> str:
    """Return what can be done with a run, as commands; its own namespace is found by its name.

    The run may have `ended`, its aggregator may be `gone` with it, and its results may be `saved`
    elsewhere. `delete` asks before anything is lost, on a terminal; elsewhere it needs `--yes`.
    """
    where = place_words(namespace, options, own=own)
    going = [
        ("look at it", f"status-ctl status {run}{where}"),
        ("wait for it", f"status-ctl wait run/{run}{where}"),
    ]
    fetched = ended and not gone  # by the command that is named before
    sure = "" if fetched or saved or sys.stderr.isatty() else " --yes"
    lines = [
        *([] if ended else going),
        *([("read the results", f"status-ctl results run/{run}{where}")] if fetched else []),
        *([] if gone else [("download the results", f"status-ctl retrieve {run}{where}")]),
        ("then delete it" if fetched else "delete it", f"status-ctl delete {run}{where}{sure}"),
    ]
    widest = max(len(what) for what, _ in lines)
    return "\n".join(
        ["what to do with the run:", *(f"  {what:<{widest}}  {how}" for what, how in lines)]
    )


def named_run(
    options: argparse.Namespace, *, rights_too: bool = False
) -> "tuple[KubeApi, str, str]":
    """Return the API, the namespace and the name of the run that a command was given.

    With `rights_too`, also a run of which only rights outside its namespace are left.
    A usage error for what is no name. Raises KubeError, CannotTell.
    """
    name = options.name.removeprefix("run/")
    if not is_run_name(name):
        options.error(f"not a valid run name: {options.name!r}")
    api, namespace = open_cluster(options)
    assert namespace is not None
    there = bool(options.namespace)
    return api, find_run(api, name, namespace, only_there=there, rights_too=rights_too), name


def find_run(
    api: "KubeApi", run: str, namespace: str, *, only_there: bool, rights_too: bool = False
) -> str:
    """Return the namespace that has something of the run. Raises KubeError, CannotTell.

    That is `namespace`, else, unless `only_there`, the one that a run of that name makes. A run has
    its plan as long as it is there; what a deletion that was interrupted has left may lack it. Its
    namespace may be deleted, and the rights that it had elsewhere, sought with `rights_too`, not.
    """
    # In the same order as `Search`: two commands must not mean two runs of one name.
    places = [namespace] if only_there else [namespace, OWN_NAMESPACE.format(run=run)]
    looks = [
        *((_has_plan, place) for place in places),
        *((_has_rest, place) for place in places),
        *((_is_made_by, place) for place in places),
        *((_has_rights, place) for place in places if rights_too),
    ]
    hidden: dict[str, str] = {}
    for look, place in looks:
        try:
            if look(api, place, run):
                return place
        except NotFound:
            continue
        except Forbidden as error:
            if look is _has_plan:
                hidden[place] = words(error)
    seen = [place for place in places if place not in hidden]
    told = [not_found(run, seen)] if seen else []
    told += [f"no access to namespace {place}: {why}" for place, why in hidden.items()]
    raise CannotTell("\n".join(told))


def stands(api: "KubeApi", run: str, namespace: str) -> bool:
    """Return whether that namespace shows a run of that name. Raises KubeError."""
    try:
        return _has_plan(api, namespace, run)
    except (NotFound, Forbidden):
        return False


def asked_there(options: argparse.Namespace, namespace: str, run: str) -> ByCluster:
    """Return what is asked about the run in that namespace, and in no other. Raises CannotTell."""
    return ByCluster(argparse.Namespace(**{**vars(options), "namespace": namespace}), run)


def _has_plan(api: "KubeApi", namespace: str, run: str) -> bool:
    return has_plan(api, namespace, run, timeout=TIMEOUT)


def _has_rest(api: "KubeApi", namespace: str, run: str) -> bool:
    return any(
        api.list_page(kind, namespace, selector(run), limit=1, timeout=TIMEOUT).items
        for kind in _TRACES
    )


def _is_made_by(api: "KubeApi", namespace: str, run: str) -> bool:
    found = api.get("Namespace", None, namespace, timeout=TIMEOUT)
    return section(found, "metadata", "annotations").get(CREATED_BY) == run


def _has_rights(api: "KubeApi", namespace: str, run: str) -> bool:
    return bool(Beyond(api, namespace, run).listed())
