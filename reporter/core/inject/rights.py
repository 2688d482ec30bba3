"""The rights that a reporter needs of the account that its Pod has anyway."""

from typing import Any, Final

ROLE: Final = "status-reporter"
_API: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"app.kubernetes.io/name": "status-reporter"}


def role(namespace: str) -> dict[str, Any]:
    """Return the Role; without a namespace it is of the one that it is applied to."""
    return {
        "apiVersion": f"{_API}/v1",
        "kind": "Role",
        "metadata": _metadata(ROLE, namespace),
        "rules": [
            _rule("batch", "jobs/status", "get", "patch"),
            _rule("", "pods", "get", "watch"),
            _rule("events.k8s.io", "events", "create"),
        ],
    }


def role_binding(namespace: str, account: str) -> dict[str, Any]:
    """Return what gives the Role to an account."""
    subject = {"kind": "ServiceAccount", "name": account}
    return {
        "apiVersion": f"{_API}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(f"{ROLE}-{account}", namespace),
        "roleRef": {"apiGroup": _API, "kind": "Role", "name": ROLE},
        "subjects": [subject | ({"namespace": namespace} if namespace else {})],
    }


def _metadata(name: str, namespace: str) -> dict[str, Any]:
    placed = {"namespace": namespace} if namespace else {}
    return {"name": name, **placed, "labels": dict(_LABELS)}


def _rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
