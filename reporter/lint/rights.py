"""What the RBAC objects of the files allow a service account."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from reporter.common.objects import Object, items, section, text


class Right(NamedTuple):
    """What is asked for: an API group, a resource (`jobs/status`) and a verb."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        group = f".{self.group}" if self.group else ""
        name, _, part = self.resource.partition("/")
        return f"{self.verb} {name}{group}{'/' if part else ''}{part}"


class Account(NamedTuple):
    """A service account; the namespace is empty where the files do not say it."""

    namespace: str
    name: str


NEEDED: Final = (
    Right("batch", "jobs/status", "get"),
    Right("batch", "jobs/status", "patch"),
    Right("", "pods", "get"),
)
"""Without these the verdict cannot be written, or only the file counts."""
WATCH: Final = Right("", "pods", "watch")
EVENTS: Final = Right("events.k8s.io", "events", "create")


@dataclass(frozen=True, slots=True)
class Rights:
    """The RBAC objects and service accounts of all files, by kind."""

    objects: Mapping[str, Sequence[Object]] = field(default_factory=dict)

    def lacking(
        self, account: Account, job: str, wanted: Sequence[Right]
    ) -> frozenset[Right] | None:
        """Return which rights an account lacks; None where the files do not tell.

        They do not tell where they bind nothing to the account and to no other account that may
        write verdicts either, or bind a role that is not in the files. `job` is the Job's name, or
        empty where only the cluster knows it.
        """
        bound = [each for each in self._bindings(account.namespace) if _binds(each, account)]
        if not bound:
            others = [self._rules(each) for each in self._bindings(account.namespace)]
            ours = any(_allowed(rules or (), NEEDED[1], None) for rules in others)
            return frozenset(wanted) if ours else None
        rules: list[Object] = []
        for binding in bound:
            granted = self._rules(binding)
            if granted is None:
                return None
            rules += granted
        return frozenset(right for right in wanted if not _allowed(rules, right, job))

    def granted(self, account: Account, job: str, wanted: Sequence[Right]) -> frozenset[Right]:
        """Return which rights the files give an account for certain."""
        rules = [
            rule
            for binding in self._bindings(account.namespace)
            if _binds(binding, account)
            for rule in self._rules(binding) or ()
        ]
        return frozenset(right for right in wanted if _allowed(rules, right, job))

    def mounts_token(self, account: Account) -> bool:
        """Return whether Pods of the account get its token, unless they say otherwise."""
        return not any(
            text(section(each, "metadata"), "name") == account.name
            and _same(_namespace(each), account.namespace)
            and each.get("automountServiceAccountToken") is False
            for each in self.objects.get("ServiceAccount", ())
        )

    def _bindings(self, namespace: str) -> Iterator[Object]:
        yield from self.objects.get("ClusterRoleBinding", ())
        for each in self.objects.get("RoleBinding", ()):
            if _same(_namespace(each), namespace):
                yield each

    def _rules(self, binding: Object) -> list[Object] | None:
        """Return the rules that a binding grants; None where its role is not in the files."""
        wanted = section(binding, "roleRef")
        for role in self.objects.get(text(wanted, "kind"), ()):
            fits = text(wanted, "kind") == "ClusterRole" or _same(
                _namespace(role), _namespace(binding)
            )
            named = text(section(role, "metadata"), "name") == text(wanted, "name")
            if fits and named and "aggregationRule" not in role:
                return list(items(role, "rules"))
        return None


def _namespace(value: Object) -> str:
    return text(section(value, "metadata"), "namespace")


def _same(one: str, other: str) -> bool:
    """Kustomize and `kubectl -n` fill in the namespaces that files do not have."""
    return not one or not other or one == other


def _binds(binding: Object, account: Account) -> bool:
    everybody = {
        "system:authenticated",
        "system:serviceaccounts",
        f"system:serviceaccounts:{account.namespace}",
    }
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    for subject in items(binding, "subjects"):
        kind, name = text(subject, "kind"), text(subject, "name")
        if (kind == "Group" and name in everybody) or (kind == "User" and name == user):
            return True
        here = _same(text(subject, "namespace"), account.namespace)
        if kind == "ServiceAccount" and name == account.name and here:
            return True
    return False


def _allowed(rules: Sequence[Object], right: Right, job: str | None) -> bool:
    """Return whether rules grant a right on the Job of that name; None stands for any Job."""
    return any(_allows(rule, right, job) for rule in rules)


def _allows(rule: Object, right: Right, job: str | None) -> bool:
    if right.group not in (groups := _texts(rule, "apiGroups")) and "*" not in groups:
        return False
    resource, verbs = right.resource, _texts(rule, "verbs")
    part = resource.partition("/")[2]
    able = {resource, "*", *([f"*/{part}"] if part else [])}
    if not able & _texts(rule, "resources") or not {right.verb, "*"} & verbs:
        return False
    names = _texts(rule, "resourceNames")
    # Pods have generated names, and what is created has none yet.
    return not names or (resource.startswith("jobs/") and (job is None or job in names))


def _texts(rule: Object, key: str) -> frozenset[str]:
    found = rule.get(key)
    listed = found if isinstance(found, list) else ()
    return frozenset(each for each in listed if isinstance(each, str))
