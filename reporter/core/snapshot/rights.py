"""The rights that a snapshot takes: its own account, a ClusterRole and its binding.

RBAC cannot say "everything but Secrets". So every resource is named that is collected, and what
comes to the cluster afterwards is not readable.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Final

from reporter.core.resources import Resource
from reporter.core.snapshot.options import SnapshotOptions

_READ: Final = ["list"]


def rules(resources: Iterable[Resource], options: SnapshotOptions) -> list[dict[str, Any]]:
    """Return the rules of the ClusterRole for these resources."""
    named = sorted({(each.group, each.plural) for each in resources})
    # Which namespaces and nodes there are has to be known, whatever else is collected.
    if not options.all_namespaces:
        named.append(("", "namespaces"))
    if options.kubelet:
        named.append(("", "nodes"))
    if options.pod_logs:
        named.append(("", "pods"))
    found = [
        {"apiGroups": [group], "resources": [plural for _, plural in members], "verbs": _READ}
        for group, members in groupby(sorted(set(named)), key=lambda each: each[0])
    ]
    if options.kubelet:
        found.append({"apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"]})
    if options.pod_logs:
        found.append({"apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"]})
    return found


def remarks(options: SnapshotOptions) -> list[str]:
    """Say what the rights beyond plain reading mean, a line each."""
    said = []
    if not options.all_namespaces:
        secrets = ", the Secrets of all namespaces too" if options.secrets == "metadata" else ""
        said.append(
            "these rights hold in all namespaces, not only in those that are chosen" + secrets
        )
    if options.secrets == "metadata":
        said.append(
            "the snapshot's account may list Secrets: only their metadata is collected, but the "
            "same right reads their values, and whoever can use the account has it"
        )
    if options.kubelet:
        said.append(
            "the snapshot's account may reach the kubelets (nodes/proxy: get): the same right runs "
            "commands in the Pods of every node"
        )
    if options.pod_logs:
        said.append("logs are collected as they are, but for credentials in URLs")
    return said
