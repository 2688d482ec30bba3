"""Everything that `status-ctl run` creates, in order. The launcher makes the rest.

The objects are in manifests/. No object has an owner: a manifest that is printed cannot know a UID.
Objects that belong together have the run's labels.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reporter.common.manifest import Values, filled
from reporter.common.objects import View, section
from reporter.launch.job import secret_names
from reporter.run import names
from reporter.run.launch_file import encode_launch
from reporter.run.plan import Key, plan_document
from reporter.runctl.pod_security import pod_security
from reporter.runctl.spec import RunSpec, plugin_account, status_name

_SERVICES: Final = {"nodeport": "NodePort", "loadbalancer": "LoadBalancer", "": None}
_MOST_RESTARTS: Final = 2**31 - 1  # also of containers


def objects(spec: RunSpec) -> list[dict[str, Any]]:
    """Return what is to be created, in this order."""
    own = [own_namespace(spec)] if spec.create_namespace else []
    return [*own, *without_namespace(spec)]


def own_namespace(spec: RunSpec) -> dict[str, Any]:
    """Return the namespace of a run that creates it."""
    values = {
        "run": spec.run,
        "namespace": spec.namespace,
        "pod_security": pod_security(spec.launch.definitions)[0],
    }
    (found,) = filled("reporter.runctl", "namespace.yaml", values)
    return found


def without_namespace(spec: RunSpec) -> list[dict[str, Any]]:
    """Return all but the namespace, in order: the ConfigMap is the lock on the run's name."""
    values = _values(spec)
    (pod,) = filled("reporter.runctl", "aggregator-pod.yaml", values)
    return [
        *filled("reporter.runctl", "run.yaml", values),
        *map(dict, spec.extra),
        *filled("reporter.runctl", "aggregator.yaml", {**values, "pod": pod}),
    ]


def _values(spec: RunSpec) -> Values:
    """Return what the manifests name; None and what is empty leaves a key or an object out."""
    run, namespace, launch = spec.run, spec.namespace, spec.launch
    selector = {names.RUN_LABEL: run, "app.kubernetes.io/name": "status-aggregator"}
    host = f"{run}.{namespace}"
    adapters = [names.entry_name(run, key) for key in _adapters(spec)]
    return {
        "run": run,
        "namespace": namespace,
        "labels": names.labels(run) | selector,
        "selector": selector,
        "elsewhere": _elsewhere(spec),
        "plan": _plan(spec),
        "aggregator_role": f"{run}-aggregator",
        "aggregator_account": spec.aggregator_service_account or f"{run}-aggregator",
        "create_aggregator_account": not spec.aggregator_service_account,
        "secrets": sorted(secret_names(spec.plan)),
        "plugin_role": plugin_account(run),
        "plugin_account": launch.service_account,
        "create_plugin_account": launch.service_account == plugin_account(run),
        "adapters": adapters,
        "adapter_verbs": ["get", "patch"] if launch.write_conditions else ["get"],
        "service_type": _SERVICES[spec.expose],
        "status_name": status_name(run),
        "status_tls": spec.status_tls and _encoded(spec.status_tls.files),
        "probe_scheme": "HTTPS" if spec.status_tls else None,  # without a client certificate
        "upload_name": f"{run}-upload",
        "upload": spec.upload and _encoded(spec.upload.files),
        "upload_ca": spec.upload is not None and spec.upload.ca,
        "exit": spec.exit,
        "restart_policy": "Never" if spec.exit else "OnFailure",
        "storage": spec.storage,
        "no_storage": spec.storage is None,
        "exit_and_storage": spec.exit and spec.storage is not None,
        "backoff_limit": _backoff_limit(spec),
        "storage_class": spec.storage_class or None,
        "image": launch.image,
        "advertise_address": spec.worker_address,
        "server_names": f"{run},{host},{host}.svc,{host}.svc.cluster.local",
        "fixed_group": spec.fixed_group,
        "pull_secrets": [{"name": name} for name in launch.pull_secrets] or None,
        "node_selector": dict(spec.node_selector) or None,
    }


def _backoff_limit(spec: RunSpec) -> int:
    """Return how often the aggregator may be started again.

    One whose exit code is a verdict has six tries with what is on its volume; without a volume the
    plugins would run twice. The others stay until somebody deletes them.
    """
    if not spec.exit:
        return _MOST_RESTARTS
    return 0 if spec.storage is None else 6


def _plan(spec: RunSpec) -> dict[str, str]:
    data = {
        "plan.json": json.dumps(plan_document(spec.plan), indent=1),
        "launch.json": encode_launch(spec.launch),
    }
    for plugin, keys in spec.launch.config_keys.items():
        config = spec.launch.definition(plugin).config
        data |= {key: config[file] for file, key in keys.items()}
    return data


def _elsewhere(spec: RunSpec) -> dict[str, str] | None:
    """Say where else objects are: who deletes the run may not be able to search all namespaces."""
    places = (View(each).namespace for each in spec.extra)
    found = dict.fromkeys(each or names.CLUSTER for each in places if each != spec.namespace)
    return {names.ELSEWHERE: ",".join(found)} if found else None


def _adapters(spec: RunSpec) -> Iterator[Key]:
    """Yield the entries with our sidecar under the plugins' account."""
    for plugin in spec.plan.plugins:
        definition = spec.launch.definition(plugin.name)
        pod = section(definition.template, "spec")
        named = pod.get("serviceAccountName") or pod.get("serviceAccount")
        if definition.contract == "result-file" and not named:
            yield from plugin.keys


def _encoded(data: Mapping[str, bytes]) -> dict[str, str]:
    return {name: base64.b64encode(each).decode("ascii") for name, each in data.items() if each}
