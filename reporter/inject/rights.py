"""The rights that a reporter needs of the account that its Pod has anyway."""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from reporter.common.objects import Object, items


class Right(NamedTuple):
    """What is asked for: an API group, a resource (`jobs/status`) and a verb."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        name, _, part = self.resource.partition("/")
        return f"{self.verb} {name}{group}{'/' if part else ''}{part}"


NEEDED: Final = (
    Right("batch", "jobs/status", "get"),
    Right("batch", "jobs/status", "patch"),
    Right("", "pods", "get"),
)
"""Without these the verdict cannot be written, or only the file counts."""
WATCH: Final = Right("", "pods", "watch")
EVENTS: Final = Right("events.k8s.io", "events", "create")
_ALL: Final = (*NEEDED, WATCH, EVENTS)
_API: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"app.kubernetes.io/name": "status-reporter"}


def role_and_binding(namespace: str, account: str, *, hook: bool) -> list[dict[str, Any]]:
    """Return both; without a namespace they are of the one that they are applied to.

    Each account has its own: who removes them takes nothing from the Jobs of others. So have its
    Helm hooks, because Helm creates and deletes theirs at other times.
    """
    verbs: dict[tuple[str, str], list[str]] = {}
    for each in _ALL:
        verbs.setdefault((each.group, each.resource), []).append(each.verb)
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": listed}
        for (group, resource), listed in verbs.items()
    ]
    placed = {"namespace": namespace} if namespace else {}
    name = f"status-reporter-{account}{'-hook' if hook else ''}"
    subject = {"kind": "ServiceAccount", "name": account, **placed}
    bound = {"roleRef": {"apiGroup": _API, "kind": "Role", "name": name}, "subjects": [subject]}
    return [
        {
            "apiVersion": f"{_API}/v1",
            "kind": kind,
            "metadata": {"name": name, **placed, "labels": dict(_LABELS)},
            **rest,
        }
        for kind, rest in (("Role", {"rules": rules}), ("RoleBinding", bound))
    ]


def gives(shown: Object, wanted: Object) -> bool:
    """Say whether a Role or RoleBinding gives what ours of the same kind would give."""
    if wanted["kind"] == "Role":
        return all(allowed(items(shown, "rules"), right, None) for right in _ALL)
    subjects = [dict(each) for each in items(shown, "subjects")]
    return shown.get("roleRef") == wanted["roleRef"] and all(
        any(each.items() >= subject.items() for each in subjects) for subject in wanted["subjects"]
    )


def allowed(rules: Iterable[Object], right: Right, job: str | None) -> bool:
    """Return whether rules grant a right on the Job of that name; None stands for any Job."""
    return any(_allows(rule, right, job) for rule in rules)


def _allows(rule: Object, right: Right, job: str | None) -> bool:
    if right.group not in (groups := _texts(rule, "apiGroups")) and "*" not in groups:
        return False
    resource, verbs = right.resource, _texts(rule, "verbs")
    able = {resource, "*", f"*/{resource.partition('/')[2]}"}
    if not able & _texts(rule, "resources") or not {right.verb, "*"} & verbs:
        return False
    names = _texts(rule, "resourceNames")
    # Pods have generated names, and what is created has none yet.
    return not names or (resource.startswith("jobs/") and (job is None or job in names))


def _texts(rule: Object, key: str) -> frozenset[str]:
    found = rule.get(key)
    listed = found if isinstance(found, list) else ()
    return frozenset(each for each in listed if isinstance(each, str))
