"""Everything that `status-ctl run` creates, in order. The launcher makes the rest.

No object has an owner: a manifest that is printed cannot know a UID. What belongs together has the
run's labels.
"""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reporter.core.launch import names
from reporter.core.launch.aggregator_pod import (
    DATA,
    LAUNCH_FILE,
    PLAN_FILE,
    STATUS_PORT,
    WORKERS_PORT,
    aggregator_pod,
    labels,
    selector,
)
from reporter.core.launch.job import secret_name
from reporter.core.launch.pod_security import pod_security
from reporter.core.launch.spec import Launch, launch_document
from reporter.core.objects import section
from reporter.core.run.definition import Definition
from reporter.core.run.plan import Key, Plan, plan_document

CREATED_BY: Final = "status-reporter.io/created-by-run"
"""Annotation of a namespace that was made for a run, and goes with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTls:
    """What the status listener needs for access from outside, as PEM."""

    certificate: bytes
    private_key: bytes = field(repr=False)
    client_ca: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is to run, where, and with what.

    `launch` has the image and its pull secrets, for the aggregator too. `storage` is a quantity,
    nothing for an emptyDir. `exit` makes a Job of the aggregator, which
    ends with the verdict. `expose` makes a Service for access from outside and needs
    `status_tls`. `fixed_group` is off where the platform gives Pods their users and groups.
    """

    namespace: str
    plan: Plan
    launch: Launch
    storage: str | None = "10Gi"
    storage_class: str = ""
    exit: bool = False
    expose: Literal["", "nodeport", "loadbalancer"] = ""
    status_tls: StatusTls | None = None
    create_namespace: bool = False
    aggregator_service_account: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    fixed_group: bool = True

    @property
    def run(self) -> str:
        """The run's name."""
        return self.plan.run


def aggregator_account(run: str) -> str:
    """Return the name of the aggregator's own account, Role and RoleBinding."""
    return f"{run}-aggregator"


def plugin_account(run: str) -> str:
    """Return the name of the account of plugins that name none, of its Role and RoleBinding."""
    return f"{run}-plugin"


def status_name(run: str) -> str:
    """Return the name of the Secret and the Service for access from outside."""
    return f"{run}-status"


def config_keys(definitions: Iterable[Definition]) -> dict[str, dict[str, str]]:
    """Return the keys in the run's ConfigMap for the files of each plugin's configuration."""
    return {
        definition.name: {file: f"config.{i}.{j}" for j, file in enumerate(definition.config)}
        for i, definition in enumerate(definitions)
        if definition.config
    }


def objects(options: RunOptions) -> list[dict[str, Any]]:
    """Return what is to be created, in this order: the ConfigMap is the lock on the name."""
    made = [_namespace(options)] if options.create_namespace else []
    made.append(_config_map(options))
    if not options.aggregator_service_account:
        made.append(_account(options, aggregator_account(options.run)))
    account = options.aggregator_service_account or aggregator_account(options.run)
    made += _bound(options, aggregator_account(options.run), account, aggregator_rules(options))
    own = options.launch.service_account
    if own == plugin_account(options.run):
        plugins = _account(options, own)
        # No plugin gets this token unless it asks: it is mounted into our containers.
        plugins["automountServiceAccountToken"] = False
        made.append(plugins)
    made += _bound(options, plugin_account(options.run), own, plugin_rules(options))
    made += [_service(options), _network_policy(options)]
    if options.expose:
        made.append(_outside(options))
    if options.status_tls is not None:
        made.append(_status_secret(options, options.status_tls))
    return [*made, *_aggregator(options, account)]


def aggregator_rules(options: RunOptions) -> list[dict[str, Any]]:
    """Return what the aggregator may do: what its launcher asks for and nothing more."""
    run = options.run
    secrets = sorted(
        {secret_name(run, plugin, key) for plugin in options.plan.plugins for key in plugin.keys}
    )
    rules = [
        _rule("batch", "jobs", "create", "delete", "get", "list", "watch"),
        _rule("", "pods", "get", "list", "watch"),
        _rule("", "pods/log", "get"),
        _rule("", "events", "list", "watch"),
        _rule("", "configmaps", "get", only=[run]),
        _rule("", "secrets", "create"),
        _rule("", "secrets", "delete", "get", only=secrets),
    ]
    if not options.exit:
        # The run's status on its own Pod. A Job's Pod has no name that is known before.
        rules.append(_rule("", "pods", "patch", only=[f"{run}-0"]))
    return rules


def plugin_rules(options: RunOptions) -> list[dict[str, Any]]:
    """Return what our containers beside the plugins may do with the account that is theirs."""
    rules = [_rule("", "pods", "get", "watch")]
    jobs = [names.entry_name(options.run, key) for key in _watched_over(options)]
    if jobs:
        verbs = ["get", "patch"] if options.launch.write_conditions else ["get"]
        rules.append(_rule("batch", "jobs/status", *verbs, only=jobs))
    return rules


def _watched_over(options: RunOptions) -> list[Key]:
    """List the entries with our sidecar under the plugins' account."""
    found: list[Key] = []
    for plugin in options.plan.plugins:
        definition = options.launch.definition(plugin.name)
        spec = section(definition.template, "spec")
        named = spec.get("serviceAccountName") or spec.get("serviceAccount")
        if definition.contract == "result-file" and not named:
            found += plugin.keys
    return found


def _rule(group: str, resource: str, *verbs: str, only: list[str] | None = None) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "apiGroups": [group],
        "resources": [resource],
        "verbs": list(verbs),
    }
    if only is not None:
        rule["resourceNames"] = only
    return rule


def _made(options: RunOptions, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    group = {
        "Role": "rbac.authorization.k8s.io/v1",
        "RoleBinding": "rbac.authorization.k8s.io/v1",
        "NetworkPolicy": "networking.k8s.io/v1",
        "StatefulSet": "apps/v1",
        "Job": "batch/v1",
    }
    return {
        "apiVersion": group.get(kind, "v1"),
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": options.namespace,
            "labels": labels(options.run),
        },
        **rest,
    }


def _namespace(options: RunOptions) -> dict[str, Any]:
    level, _ = pod_security(options.launch.definitions)
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": options.namespace,
            "labels": {
                **names.labels(options.run),
                "pod-security.kubernetes.io/enforce": level,
            },
            "annotations": {CREATED_BY: options.run},
        },
    }


def _config_map(options: RunOptions) -> dict[str, Any]:
    launch = options.launch
    data = {
        PLAN_FILE: json.dumps(plan_document(options.plan), indent=1),
        LAUNCH_FILE: json.dumps(launch_document(launch), indent=1, ensure_ascii=False),
    }
    for plugin, keys in launch.config_keys.items():
        files = launch.definition(plugin).config
        data |= {key: files[file] for file, key in keys.items()}
    return _made(options, "ConfigMap", options.run, data=data, immutable=True)


def _account(options: RunOptions, name: str) -> dict[str, Any]:
    return _made(options, "ServiceAccount", name)


def _bound(
    options: RunOptions, name: str, account: str, rules: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    subject = {"kind": "ServiceAccount", "name": account, "namespace": options.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return [
        _made(options, "Role", name, rules=rules),
        _made(options, "RoleBinding", name, roleRef=role, subjects=[subject]),
    ]


def _service(options: RunOptions) -> dict[str, Any]:
    ports = {"workers": WORKERS_PORT, "status": STATUS_PORT}
    spec = {
        "selector": selector(options.run),
        # Also while the Pod is not ready: workers retry, and so does the kubelet.
        "publishNotReadyAddresses": True,
        "ports": [{"name": name, "port": port, "targetPort": name} for name, port in ports.items()],
    }
    return _made(options, "Service", options.run, spec=spec)


def _outside(options: RunOptions) -> dict[str, Any]:
    spec = {
        "type": {"nodeport": "NodePort", "loadbalancer": "LoadBalancer"}[options.expose],
        "selector": selector(options.run),
        "ports": [{"name": "status", "port": STATUS_PORT, "targetPort": "status"}],
    }
    return _made(options, "Service", status_name(options.run), spec=spec)


def _network_policy(options: RunOptions) -> dict[str, Any]:
    # Workers on their node's network come from addresses that selectors rarely match; their
    # certificates guard the port. The node's own probes and port-forwards always get in.
    open_ports = ["workers", "status"] if options.expose else ["workers"]
    spec = {
        "podSelector": {"matchLabels": selector(options.run)},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"port": port}]} for port in open_ports],
    }
    return _made(options, "NetworkPolicy", options.run, spec=spec)


def _status_secret(options: RunOptions, tls: StatusTls) -> dict[str, Any]:
    files = {"ca.crt": tls.client_ca, "tls.crt": tls.certificate, "tls.key": tls.private_key}
    data = {file: base64.b64encode(pem).decode("ascii") for file, pem in files.items()}
    return _made(options, "Secret", status_name(options.run), type="kubernetes.io/tls", data=data)


def _aggregator(options: RunOptions, account: str) -> list[dict[str, Any]]:
    name = options.run
    pod = aggregator_pod(
        name,
        options.namespace,
        options.launch.image,
        account,
        data=_volume(options),
        status_secret="" if options.status_tls is None else status_name(name),
        pull_secrets=options.launch.pull_secrets,
        node_selector=options.node_selector,
        fixed_group=options.fixed_group,
        restart="Never" if options.exit else "Always",
    )
    if options.exit:
        # The exit code is the verdict: no second Pod may give another one.
        job = _made(options, "Job", name, spec={"backoffLimit": 0, "template": pod})
        claim = [_made(options, "PersistentVolumeClaim", name, spec=_claim(options))]
        return [*(claim if options.storage else []), job]
    spec: dict[str, Any] = {
        "serviceName": name,
        # The state is locked: a second process cannot start on it.
        "replicas": 1,
        # Claims inherit these labels.
        "selector": {"matchLabels": selector(name)},
        "template": pod,
    }
    if options.storage:
        metadata = {"name": DATA, "labels": names.labels(name)}
        spec["volumeClaimTemplates"] = [{"metadata": metadata, "spec": _claim(options)}]
        spec["persistentVolumeClaimRetentionPolicy"] = {
            "whenDeleted": "Delete",
            "whenScaled": "Delete",
        }
    return [_made(options, "StatefulSet", name, spec=spec)]


def _volume(options: RunOptions) -> dict[str, Any] | None:
    if options.storage is None:
        return {"emptyDir": {}}
    return {"persistentVolumeClaim": {"claimName": options.run}} if options.exit else None


def _claim(options: RunOptions) -> dict[str, Any]:
    claim: dict[str, Any] = {
        # Not a network file system: the store would need its slow journal.
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": options.storage}},
    }
    if options.storage_class:
        claim["storageClassName"] = options.storage_class
    return claim
