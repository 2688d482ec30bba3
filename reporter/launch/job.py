"""The Job of an entry, and the Secret with the certificate by which its Pod reports."""

import base64
from typing import Any, Final

from reporter.launch.plugin_pod import pod_template
from reporter.run import names
from reporter.run.identity import ANY_NODE
from reporter.run.plan import Key, Plan, Plugin
from reporter.run.spec import Launch, RunLocation

UPLOADS: Final = 3_600  # seconds for uploads after the plugin's time: none is cut off
KEPT: Final = 86_400  # seconds that a Job stays whose launcher never came back


def secret_name(run: str, plugin: Plugin, key: Key) -> str:
    """Return the name of the Secret that an entry's Pod mounts; nodes may share one."""
    shared = plugin.nodes and plugin.identity == "plugin"
    return names.entry_name(run, Key(plugin.name, ANY_NODE) if shared else key)


def secret_names(plan: Plan) -> set[str]:
    """Return the names of all Secrets that are made for a run."""
    return {secret_name(plan.run, plugin, key) for plugin in plan.plugins for key in plugin.keys}


def job(
    place: RunLocation, launch: Launch, plugin: Plugin, key: Key, *, index: int, timeout: int
) -> dict[str, Any]:
    """Return an entry's Job.

    `index` is the plugin's place in the plan, `timeout` the seconds from the start of its container
    to its result. One Pod, never a second: a plugin's first result counts, and what became of its
    Pod is told.
    """
    definition = launch.definition(plugin.name)
    name = names.entry_name(place.run, key)
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": definition.start_timeout_seconds + timeout + UPLOADS,
        "template": pod_template(
            place,
            launch,
            key,
            job=name,
            secret=secret_name(place.run, plugin, key),
            index=index,
            timeout=timeout,
        ),
    }
    if definition.cleanup != "never":
        spec["ttlSecondsAfterFinished"] = KEPT
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(place, name, key),
        "spec": spec,
    }


def secret(
    place: RunLocation, name: str, key: Key, *, ca: bytes, certificate: bytes, private_key: bytes
) -> dict[str, Any]:
    """Return a Secret with a client's certificate, all three as PEM."""
    files = {"ca.crt": ca, "tls.crt": certificate, "tls.key": private_key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(place, name, key),
        "type": "kubernetes.io/tls",
        "data": {file: base64.b64encode(pem).decode("ascii") for file, pem in files.items()},
    }


def _metadata(place: RunLocation, name: str, key: Key) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": place.namespace,
        "labels": {**names.labels(place.run), names.PLUGIN_LABEL: key.plugin},
        "annotations": names.annotations(key),
    }
    if place.owner is not None:
        metadata["ownerReferences"] = [dict(place.owner)]
    return metadata
