"""The aggregator's Pod in a run that launches its plugins itself."""

from collections.abc import Mapping
from typing import Any, Final

from reporter.launch.added_container import from_field, variables
from reporter.run import names

CONTAINER: Final = "kube-sonobuoy"
"""The name by which `sonobuoy retrieve` finds it."""
WORKERS_PORT: Final = 8080
STATUS_PORT: Final = 8081
PLAN_FILE: Final = "plan.json"
LAUNCH_FILE: Final = "launch.json"
DATA: Final = "data"
UPLOAD_URL: Final = "url"
UPLOAD_CA: Final = "ca.crt"

_NAME = "status-aggregator"
EVERY_RUN: Final = f"app.kubernetes.io/name={_NAME},{names.RUN_LABEL}"
"""The label selector of all aggregators that were launched for a run."""
_PLAN_AT = "/run/plan"
_TLS_AT = "/run/status-tls"
_UPLOAD_AT = "/run/upload"
_USER = 65532  # the image's


def selector(run: str) -> dict[str, str]:
    """Return the labels by which the aggregator's Pod is found."""
    return {names.RUN_LABEL: run, "app.kubernetes.io/name": _NAME}


def labels(run: str) -> dict[str, str]:
    """Return the labels of the aggregator's own objects."""
    return {**names.labels(run), "app.kubernetes.io/name": _NAME}


def aggregator_pod(
    run: str,
    namespace: str,
    image: str,
    account: str,
    *,
    data: Mapping[str, Any] | None = None,
    status_secret: str = "",
    upload_secret: str = "",
    upload_ca: bool = False,
    pull_secrets: tuple[str, ...] = (),
    node_selector: Mapping[str, str] | None = None,
    fixed_group: bool = True,
    ends: bool = False,
) -> dict[str, Any]:
    """Return its Pod template.

    `data` is the volume of its state, nothing where a claim of that name is. `status_secret` names
    the Secret for access from outside, `upload_secret` the one with the URL for the results and,
    with `upload_ca`, the CA of its host. Without `fixed_group` the platform gives users and groups.
    One that `ends` does so when the run is over.
    """
    container = _container(run, namespace, image, status_secret)
    if ends:
        container["env"] += variables({"EXIT_WHEN_FINISHED": "true"})
    if upload_secret:
        _add_upload(container, upload_ca=upload_ca)
    pod: dict[str, Any] = {
        "serviceAccountName": account,
        "automountServiceAccountToken": True,
        # A Service's environment variables must not be mistaken for our settings.
        "enableServiceLinks": False,
        "restartPolicy": "Never" if ends else "Always",
        "containers": [container],
        "volumes": [
            # Without it a Pod that replaces another goes on with what is in the state.
            {"name": "plan", "configMap": {"name": run, "optional": True}},
            {"name": "tmp", "emptyDir": {}},
            *([{"name": DATA, **data}] if data else []),
            *([_secret_volume("status-tls", status_secret)] if status_secret else []),
            *([_secret_volume("upload", upload_secret)] if upload_secret else []),
        ],
    }
    if fixed_group:
        # The image's user may write to the volume.
        pod["securityContext"] = {
            "fsGroup": _USER,
            "fsGroupChangePolicy": "OnRootMismatch",
        }
    if pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in pull_secrets]
    if node_selector:
        pod["nodeSelector"] = dict(node_selector)
    return {
        "metadata": {
            "labels": {
                **labels(run),
                # The `sonobuoy` command finds the run's status by this label.
                "sonobuoy-component": "aggregator",
                "sidecar.istio.io/inject": "false",
            },
            "annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
        },
        "spec": pod,
    }


def _container(run: str, namespace: str, image: str, status_secret: str) -> dict[str, Any]:
    service = f"{run}.{namespace}"
    settings = {
        "PLAN": f"{_PLAN_AT}/{PLAN_FILE}",
        "LAUNCH": f"{_PLAN_AT}/{LAUNCH_FILE}",
        "STATE": f"/{DATA}/state",
        "OUTPUT": f"/{DATA}/output",
        "ADVERTISE_ADDRESS": f"{service}.svc:{WORKERS_PORT}",
        "SERVER_NAMES": f"{run},{service},{service}.svc,{service}.svc.cluster.local",
    }
    mounts = [
        {"name": DATA, "mountPath": f"/{DATA}"},
        {"name": "plan", "mountPath": _PLAN_AT, "readOnly": True},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - the root is read-only
    ]
    scheme = {}
    if status_secret:
        settings |= {
            "STATUS_TLS_CERT": f"{_TLS_AT}/tls.crt",
            "STATUS_TLS_KEY": f"{_TLS_AT}/tls.key",
            "STATUS_TLS_CLIENT_CA": f"{_TLS_AT}/ca.crt",
        }
        mounts.append({"name": "status-tls", "mountPath": _TLS_AT, "readOnly": True})
        scheme = {"scheme": "HTTPS"}  # probes are served without a client certificate
    live = {"httpGet": {"path": "/livez", "port": "status", **scheme}}
    ready = {"httpGet": {"path": "/readyz", "port": "status", **scheme}}
    return {
        "name": CONTAINER,
        "image": image,
        "command": ["python3", "/app/cmd/status-aggregator.py", "run"],
        "env": [
            *variables(settings),
            from_field("POD_NAME", "metadata.name"),
            from_field("POD_NAMESPACE", "metadata.namespace"),
        ],
        "ports": [
            {"name": "workers", "containerPort": WORKERS_PORT},
            {"name": "status", "containerPort": STATUS_PORT},
        ],
        # Recovery after a crash takes long with many large results.
        "startupProbe": {**live, "periodSeconds": 1, "failureThreshold": 600},
        "readinessProbe": {**ready, "periodSeconds": 5},
        "livenessProbe": {
            **live,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "384Mi"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
    }


def _add_upload(container: dict[str, Any], *, upload_ca: bool) -> None:
    settings = {"UPLOAD_URL_FILE": f"{_UPLOAD_AT}/{UPLOAD_URL}"}
    if upload_ca:
        settings["UPLOAD_CA"] = f"{_UPLOAD_AT}/{UPLOAD_CA}"
    container["env"] += variables(settings)
    container["volumeMounts"].append({"name": "upload", "mountPath": _UPLOAD_AT, "readOnly": True})


def _secret_volume(name: str, secret: str) -> dict[str, Any]:
    # Somebody may have deleted it: a Pod that replaces another would wait for it for ever.
    return {"name": name, "secret": {"secretName": secret, "optional": True}}
