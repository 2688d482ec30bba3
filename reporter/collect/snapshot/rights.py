"""The rights that a snapshot takes, for an account of its own.

RBAC cannot say "everything but Secrets". So every resource is named that is collected, and what
comes to the cluster afterwards is not readable. Where namespaces are chosen by name, what is in
namespaces may be read in these alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from reporter.collect.snapshot.options import SnapshotOptions
from reporter.kube.resources import Resource

Rule = dict[str, Any]

_SHOWN: Final = 5  # names of namespaces


@dataclass(frozen=True, slots=True)
class Rights:
    """`cluster` are the rules of a ClusterRole, `inside` those of a Role in each of `namespaces`.

    Where there are no rules, there is no role. The numbers are those of the resources that may be
    listed.
    """

    cluster: tuple[Rule, ...]
    inside: tuple[Rule, ...]
    namespaces: tuple[str, ...]
    listed_in_cluster: int
    listed_inside: int


def rights(resources: Iterable[Resource], options: SnapshotOptions) -> Rights:
    """Return the least rights with which these resources can be collected."""
    chosen = options.namespaces
    in_cluster, inside = set[tuple[str, str]](), set[tuple[str, str]]()
    for each in resources:
        (inside if chosen and each.namespaced else in_cluster).add((each.group, each.plural))
    numbers = len(in_cluster), len(inside)
    # Which namespaces, nodes and Pods there are has to be known, whatever else is collected.
    if options.namespace_selector:
        in_cluster.add(("", "namespaces"))
    if options.kubelet:
        in_cluster.add(("", "nodes"))
    if options.pod_logs:
        (inside if chosen else in_cluster).add(("", "pods"))
    cluster, role = _listing(in_cluster), _listing(inside)
    if options.kubelet:
        cluster.append(_rule("", ["nodes/proxy"], "get"))
    if options.pod_logs:
        (role if chosen else cluster).append(_rule("", ["pods/log"], "get"))
    if chosen and cluster:
        cluster.append(_rule("", ["namespaces"], "get") | {"resourceNames": list(chosen)})
    elif chosen:
        role.append(_rule("", ["namespaces"], "get"))
    return Rights(tuple(cluster), tuple(role), chosen, *numbers)


def _listing(named: Iterable[tuple[str, str]]) -> list[Rule]:
    return [
        _rule(group, [plural for _, plural in members], "list")
        for group, members in groupby(sorted(named), key=lambda each: each[0])
    ]


def _rule(group: str, resources: list[str], verb: str) -> Rule:
    return {"apiGroups": [group], "resources": resources, "verbs": [verb]}


def remarks(granted: Rights, options: SnapshotOptions) -> list[str]:
    """Say what the account may read, and what the rights beyond plain reading mean, a line each."""
    only = "" if options.kubelet else " only"
    said = [f"its account may list {_reach(granted, only)}"]
    if options.namespace_selector:
        secrets = ", the Secrets of all namespaces too" if options.secrets == "metadata" else ""
        said.append(
            "these rights hold in all namespaces, not only in those with the chosen labels"
            f"{secrets}; SNAPSHOT_NAMESPACES limits them"
        )
    if options.secrets == "metadata":
        where = " of these namespaces" if options.namespaces else ""
        said.append(
            f"the snapshot's account may list Secrets{where}: only their metadata is collected, "
            "but this permission also allows reading their values, for everyone who can use the "
            "account"
        )
    if options.kubelet:
        said.append(
            "the snapshot's account may reach the kubelets (nodes/proxy: get): the same right runs "
            "commands in the Pods of every node"
        )
    if options.pod_logs:
        said.append("logs are collected as they are, except for credentials in URLs")
    return said


def _reach(granted: Rights, only: str) -> str:
    if not granted.namespaces:
        return f"{_counted(granted.listed_in_cluster, '')} in the whole cluster"
    more = len(granted.namespaces) - _SHOWN
    names = ", ".join(granted.namespaces[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    several = "namespaces" if len(granted.namespaces) > 1 else "namespace"
    said = f"{_counted(granted.listed_inside, 'namespaced ')} in {several} {names}{only}"
    if not granted.listed_in_cluster:
        return said
    return f"{said}, and {_counted(granted.listed_in_cluster, 'cluster-scoped ')}"


def _counted(number: int, sort: str) -> str:
    return f"{number} {sort}resource{'' if number == 1 else 's'}"
