"""The rights that a reporter needs of the account that its Pod has anyway."""

from collections.abc import Mapping
from typing import Any, Final

from reporter.common.objects import items

_API: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"app.kubernetes.io/name": "status-reporter"}


def role(namespace: str, account: str) -> dict[str, Any]:
    """Return the Role; without a namespace it is of the one that it is applied to.

    Each account has one of its own: who removes it takes nothing from the Jobs of others.
    """
    return {
        "apiVersion": f"{_API}/v1",
        "kind": "Role",
        "metadata": _metadata(account, namespace),
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
        "metadata": _metadata(account, namespace),
        "roleRef": {"apiGroup": _API, "kind": "Role", "name": _name(account)},
        "subjects": [subject | ({"namespace": namespace} if namespace else {})],
    }


def gives(shown: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Say whether a Role or RoleBinding gives what ours of the same kind would give."""
    if shown.get("roleRef") != wanted.get("roleRef"):
        return False
    subjects = [dict(each) for each in items(shown, "subjects")]
    return all(
        any(each.items() >= subject.items() for each in subjects)
        for subject in items(wanted, "subjects")
    ) and all(
        any(all(_holds(each, key, rule[key]) for key in rule) for each in items(shown, "rules"))
        for rule in items(wanted, "rules")
    )


def _holds(rule: Mapping[str, Any], key: str, names: Any) -> bool:
    listed = rule.get(key)
    return isinstance(listed, list) and ("*" in listed or all(each in listed for each in names))


def _name(account: str) -> str:
    return f"status-reporter-{account}"


def _metadata(account: str, namespace: str) -> dict[str, Any]:
    placed = {"namespace": namespace} if namespace else {}
    return {"name": _name(account), **placed, "labels": dict(_LABELS)}


def _rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
