"""Everything that `status-ctl run` creates, in order. The launcher makes the rest.

No object has an owner: a manifest that is printed cannot know a UID. Objects that belong together
have the run's labels.
"""

import base64
import json
from typing import Any, Final

from reporter.common.objects import section, text
from reporter.run import names
from reporter.run.options import (
    RunOptions,
    StatusTls,
    UploadTo,
    aggregator_account,
    plugin_account,
    status_name,
    upload_name,
)
from reporter.run.plan import plan_document
from reporter.run.spec import launch_document
from reporter.runctl.aggregator_pod import (
    CONTAINER,
    DATA,
    LAUNCH_FILE,
    PLAN_FILE,
    STATUS_PORT,
    UPLOAD_CA,
    UPLOAD_URL,
    WORKERS_PORT,
    aggregator_pod,
    labels,
    selector,
)
from reporter.runctl.pod_security import pod_security
from reporter.runctl.run_rights import aggregator_rules, plugin_rules

CREATED_BY: Final = "status-reporter.io/created-by-run"
"""Annotation of a namespace that was made for a run, and goes with it."""


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
    made += [dict(each) for each in options.extra]
    made += [_service(options), _network_policy(options)]
    if options.expose:
        made.append(_outside(options))
    if options.status_tls is not None:
        made.append(_status_secret(options, options.status_tls))
    if options.upload is not None:
        made.append(_upload_secret(options, options.upload))
    return [*made, *_aggregator(options, account)]


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
    made = _made(options, "ConfigMap", options.run, data=data, immutable=True)
    places = (text(section(each, "metadata"), "namespace") for each in options.extra)
    elsewhere = dict.fromkeys(each or names.CLUSTER for each in places if each != options.namespace)
    if elsewhere:
        # Whoever deletes the run may not be able to search all namespaces for it.
        made["metadata"]["annotations"] = {names.ELSEWHERE: ",".join(elsewhere)}
    return made


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
        # Also while the Pod is not ready: workers and the kubelet retry.
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


def _upload_secret(options: RunOptions, upload: UploadTo) -> dict[str, Any]:
    files = {UPLOAD_URL: upload.url.encode(), UPLOAD_CA: upload.ca}
    data = {file: base64.b64encode(each).decode("ascii") for file, each in files.items() if each}
    return _made(options, "Secret", upload_name(options.run), type="Opaque", data=data)


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
        upload_secret="" if options.upload is None else upload_name(name),
        upload_ca=options.upload is not None and bool(options.upload.ca),
        pull_secrets=options.launch.pull_secrets,
        node_selector=options.node_selector,
        fixed_group=options.fixed_group,
        ends=options.exit,
    )
    if options.exit:
        job = _made(options, "Job", name, spec={**_attempts(options), "template": pod})
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


def _attempts(options: RunOptions) -> dict[str, Any]:
    """Return how often a Job's Pod is replaced. Its exit code is the verdict, which is final.

    A Pod that ends otherwise is replaced, and the next one goes on from the volume. Without a
    volume there would be nothing to go on from, and the plugins would run twice.
    """
    if options.storage is None:
        return {"backoffLimit": 0}
    verdicts = {"operator": "In", "values": [1, 2], "containerName": CONTAINER}
    moved = {"type": "DisruptionTarget", "status": "True"}
    rules = [
        {"action": "FailJob", "onExitCodes": verdicts},
        {"action": "Ignore", "onPodConditions": [moved]},
    ]
    return {"backoffLimit": 6, "podFailurePolicy": {"rules": rules}}


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
