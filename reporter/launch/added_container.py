"""The container that is added to a plugin's Pod: our sidecar or our worker, and what it mounts.

Keys and tokens are files of this container alone: in the environment or in a shared volume the
plugin could read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.common.objects import Object, section
from reporter.run.definition import RESERVED, RESERVED_VOLUMES, Definition
from reporter.run.plan import Key
from reporter.run.spec import Launch, RunLocation

SIDECAR, WORKER = RESERVED
CERTIFICATES, TOKEN, CONFIG = RESERVED_VOLUMES
RESULT_FILE: Final = "adapter-result.json"

_CERTIFICATES_AT = "/var/run/status-aggregator"
_PEMS = {"CA_CERT_FILE": "ca.crt", "CLIENT_CERT_FILE": "tls.crt", "CLIENT_KEY_FILE": "tls.key"}


@dataclass(frozen=True, slots=True)
class ResultsMount:
    """Where a plugin leaves its results, and the mount that leads there in its container."""

    directory: str
    mount: Object


@dataclass(frozen=True, slots=True)
class Setting:
    """What the added container is told. `per_node` says whose result it is, `grace` is seconds."""

    place: RunLocation
    launch: Launch
    definition: Definition
    key: Key
    job: str
    port: int
    timeout: int
    grace: int
    host_network: bool
    per_node: bool


def variables(values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Write variables as a container has them."""
    return [{"name": name, "value": value} for name, value in values.items()]


def from_field(name: str, path: str) -> dict[str, Any]:
    """Write a variable that Kubernetes fills in from the Pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def node_name() -> dict[str, Any]:
    """Write the variable for the node where the Pod really is: a wrong one would be refused."""
    return from_field("NODE_NAME", "spec.nodeName")


def link_environment(place: RunLocation, key: Key, *, per_node: bool) -> list[dict[str, Any]]:
    """Return what a container needs to reach the aggregator; it mounts `certificates_mount`."""
    values = {
        "AGGREGATOR_URL": place.aggregator_url,
        "RESULT_TYPE": key.plugin,
        "AGGREGATOR_SCOPE": "node" if per_node else "global",
        **certificate_files(),
    }
    return [*variables(values), *([node_name()] if per_node else [])]


def certificate_files() -> dict[str, str]:
    """Return the variables that name the files of `certificates_mount`."""
    return {name: f"{_CERTIFICATES_AT}/{file}" for name, file in _PEMS.items()}


def certificates_mount() -> dict[str, Any]:
    """Return the mount of the client's certificate."""
    return {"name": CERTIFICATES, "mountPath": _CERTIFICATES_AT, "readOnly": True}


def certificates_volume(secret: str) -> dict[str, Any]:
    """Return the volume with the client's certificate."""
    return {"name": CERTIFICATES, "secret": {"secretName": secret}}


def token_volume() -> dict[str, Any]:
    """Return the volume with a token of the Pod's account.

    Without defaultMode: the kubelet gives it an owner and a mode that the container's user can
    read, and a mode set here would override them.
    """
    return {
        "name": TOKEN,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
                {
                    "configMap": {
                        "name": "kube-root-ca.crt",
                        "items": [{"key": "ca.crt", "path": "ca.crt"}],
                    }
                },
                {
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "namespace",
                                "fieldRef": {"fieldPath": "metadata.namespace"},
                            }
                        ]
                    }
                },
            ]
        },
    }


def sidecar(given: Setting, adapter: Object, pod: Object, results: ResultsMount) -> dict[str, Any]:
    """Return the status-reporter in its native form, beside a container that is an adapter."""
    values = {
        "REPORTER_FORM": "native",
        "JOB_NAME": given.job,
        "JOB_NAMESPACE": given.place.namespace,
        "ADAPTER_CONTAINER_NAME": adapter["name"],
        "RESULTS_PATH": f"{results.directory}/{RESULT_FILE}",
        "MAX_WAIT_TIME_SECONDS": str(given.timeout),
        # The Job goes when the run has its result, and its Events with it.
        "REPORT_EVENTS": "false",
        **_link_habits(given),
    }
    if not given.launch.write_conditions:
        values["REPORT_CONDITION"] = "false"
    if given.host_network:
        values["METRICS_PORT"] = "0"  # the node's ports are everybody's
    return {
        "name": SIDECAR,
        "image": given.launch.image,
        # This makes an init container a sidecar.
        "restartPolicy": "Always",
        "env": [
            *variables(values),
            from_field("POD_NAME", "metadata.name"),
            *link_environment(given.place, given.key, per_node=given.per_node),
        ],
        "resources": {
            "requests": {"cpu": "50m", "memory": "48Mi"},
            "limits": {"memory": "64Mi"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": security(adapter, pod),
        "volumeMounts": [{**results.mount, "readOnly": True}, *_own_mounts()],
    }


def worker(given: Setting, plugin: Object, pod: Object, results: ResultsMount) -> dict[str, Any]:
    """Return our worker for a plugin that writes a done file."""
    values = {
        "SONOBUOY_RESULTS_DIR": results.directory,
        "SONOBUOY_NS": given.place.namespace,
        "SONOBUOY_WORKER_CONTAINER": WORKER,
        "WORKER_GRACE_SECONDS": str(given.grace),
        **_link_habits(given),
    }
    return {
        "name": WORKER,
        "image": given.launch.image,
        "command": ["/sonobuoy"],
        "args": ["worker", "single-node" if given.per_node else "global"],
        "env": [
            *variables(values),
            from_field("SONOBUOY_PLUGIN_POD", "metadata.name"),
            *link_environment(given.place, given.key, per_node=given.per_node),
        ],
        "resources": {
            "requests": {"cpu": "20m", "memory": "48Mi"},
            "limits": {"memory": "128Mi"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": security(plugin, pod),
        "volumeMounts": [dict(results.mount), *_own_mounts()],
    }


def _link_habits(given: Setting) -> dict[str, str]:
    habits = {"SONOBUOY_PROGRESS_PORT": str(given.port)}
    if not given.definition.heartbeats:
        habits["WORKER_HEARTBEAT_SECONDS"] = "0"  # who has sent one may not fall silent
    return habits


def token_mount() -> dict[str, Any]:
    """Return the mount of the token of `token_volume`, where clients look for it."""
    return {
        "name": TOKEN,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": True,
    }


def _own_mounts() -> list[dict[str, Any]]:
    return [certificates_mount(), token_mount()]


def security(plugin: Object, pod: Object) -> dict[str, Any]:
    """Return the restricted profile, with the user of the plugin's container where it names one.

    Its files may be readable for nobody else. A Pod-wide user holds for both by itself, and root,
    which some plugins ask for, must not be forbidden then: the kubelet would not start us.
    """
    own, whole = section(plugin, "securityContext"), section(pod, "securityContext")
    same = {name: own[name] for name in ("runAsUser", "runAsGroup") if name in own}
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": {**whole, **same}.get("runAsUser") != 0,
        "seccompProfile": {"type": "RuntimeDefault"},
        **same,
    }
