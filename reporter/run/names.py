"""The names, labels and annotations of a run's objects.

They are a function of the plan alone. So a launcher that was killed between two requests finds what
it has made, and makes nothing twice.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from reporter.common.objects import section, text
from reporter.run.plan import GLOBAL, Key

RUN_LABEL: Final = "status-reporter.io/run"
NAMESPACE_LABEL: Final = "status-reporter.io/namespace"
"""On objects that are not in the namespace of the run they belong to: that namespace."""
ELSEWHERE: Final = "status-reporter.io/elsewhere"
"""Annotation of a run's ConfigMap: the other namespaces in which the run has objects, and `*` if it
has objects without a namespace."""
CLUSTER: Final = "*"
STARTED_BY: Final = "status-reporter.io/started-by"
"""Annotation of a run's ConfigMap: SHA-256 of the CA of the aggregator that starts its plugins."""
PLUGIN_LABEL: Final = "status-reporter.io/plugin"
PLUGIN: Final = "status-reporter.io/plugin"
NODE: Final = "status-reporter.io/node"
"""Annotations, because the names of nodes may be longer than a label's value."""
OWN_GRACE: Final = "status-reporter.io/own-grace-period-seconds"
"""Annotation of a plugin's Pod: the grace period before it was extended for our container."""
PART_OF: Final = {
    "app.kubernetes.io/part-of": "status-reporter",
    "app.kubernetes.io/managed-by": "status-reporter",
}

_RUN = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?")
_SECONDS = re.compile(r"[1-9][0-9]{0,8}")
_SHOWN = 8  # characters of the plugin's name
_DIGITS = 10  # of the digest


def is_run_name(name: str) -> bool:
    """Say whether a run that is launched can have that name: an RFC 1035 label of at most 40."""
    return _RUN.fullmatch(name) is not None


def labels(run: str) -> dict[str, str]:
    """Return the labels of everything that belongs to a run."""
    return {**PART_OF, RUN_LABEL: run}


def selector(run: str) -> str:
    """Return the label selector of everything that belongs to a run."""
    return f"{RUN_LABEL}={run}"


def belongs(found: Mapping[str, Any], run: str, namespace: str) -> bool:
    """Say whether an object is of this run. Runs of other namespaces may have the same name."""
    said = section(found, "metadata", "labels")
    return text(said, RUN_LABEL) == run and text(said, NAMESPACE_LABEL) in {"", namespace}


@lru_cache(maxsize=2**17)
def entry_name(run: str, key: Key) -> str:
    """Return the name of an entry's Job, and of its Secret where it has one of its own.

    At most 60 characters: a Job's Pods add six, and its name is a label's value.
    """
    prefix = re.sub(r"[^a-z0-9]+", "-", key.plugin.lower())[:_SHOWN].strip("-") or "plugin"
    said = "\0".join((run, key.plugin, key.node)).encode()
    return f"{run}-{prefix}-{hashlib.sha256(said).hexdigest()[:_DIGITS]}"


def node_port(namespace: str, run: str, index: int) -> int:
    """Return the progress port of a run's plugin, by its place in the plan, on its node's network.

    There the Pods of all runs share the ports. By default neither Linux nor Kubernetes assigns
    one of these.
    """
    digest = hashlib.sha256(f"{namespace}/{run}".encode()).digest()
    return 20_000 + (int.from_bytes(digest[:8]) + index) % 10_000


def annotations(key: Key) -> dict[str, str]:
    """Return what says whose an object is."""
    return {PLUGIN: key.plugin, NODE: key.node}


def own_grace(pod: Mapping[str, Any]) -> int | None:
    """Return the seconds of grace that a Pod has without our container, if it says so."""
    said = text(section(pod, "metadata", "annotations"), OWN_GRACE)
    return int(said) if _SECONDS.fullmatch(said) else None


def key_of(found: Mapping[str, Any]) -> Key | None:
    """Return whose an object is, if it says so."""
    said = section(found, "metadata", "annotations")
    plugin = text(said, PLUGIN)
    return Key(plugin, text(said, NODE) or GLOBAL) if plugin else None
