"""What the RBAC objects of the files allow a service account."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from reporter.common.objects import Object, items, section, text
from reporter.inject.hooks import Hook, comes_later, hook_of
from reporter.inject.rights import NEEDED, Right, allowed


class Account(NamedTuple):
    """A service account; the namespace is empty where the files do not say it."""

    namespace: str
    name: str


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
            ours = any(allowed(rules or (), NEEDED[1], None) for rules in others)
            return frozenset(wanted) if ours else None
        rules: list[Object] = []
        for binding in bound:
            granted = self._rules(binding)
            if granted is None:
                return None
            rules += granted
        return frozenset(right for right in wanted if not allowed(rules, right, job))

    def granted(self, account: Account, job: str, wanted: Sequence[Right]) -> frozenset[Right]:
        """Return which rights the files give an account for certain."""
        rules = [
            rule
            for binding in self._bindings(account.namespace)
            if _binds(binding, account)
            for rule in self._rules(binding) or ()
        ]
        return frozenset(right for right in wanted if allowed(rules, right, job))

    def later_than(self, hook: Hook, account: Account) -> list[str]:
        """Return what of an account and its rights Helm creates after a hook, by kind and name.

        Of several bindings that let it write verdicts one that is there in time is enough, and
        one whose role is not in the files.
        """
        ways = [
            [binding, role] if role else []
            for binding in self._bindings(account.namespace)
            if _binds(binding, account)
            for role in list(self._roles(binding)) or [{}]
            if not role or allowed(items(role, "rules"), NEEDED[1], None)
        ]
        late = [
            [each for each in way if comes_later(hook_of(each), hook)]
            for way in ([*self._accounts(account)], *ways)
        ]
        found = late[0] + min(late[1:], key=len, default=[])
        return [f"{text(each, 'kind')} {text(section(each, 'metadata'), 'name')}" for each in found]

    def mounts_token(self, account: Account) -> bool:
        """Return whether Pods of the account get its token, unless they say otherwise."""
        return not any(
            each.get("automountServiceAccountToken") is False for each in self._accounts(account)
        )

    def _accounts(self, account: Account) -> Iterator[Object]:
        for each in self.objects.get("ServiceAccount", ()):
            named = text(section(each, "metadata"), "name") == account.name
            if named and _same(_namespace(each), account.namespace):
                yield each

    def _bindings(self, namespace: str) -> Iterator[Object]:
        yield from self.objects.get("ClusterRoleBinding", ())
        for each in self.objects.get("RoleBinding", ()):
            if _same(_namespace(each), namespace):
                yield each

    def _rules(self, binding: Object) -> list[Object] | None:
        """Return the rules that a binding grants; None where its role is not in the files."""
        for role in self._roles(binding):
            return list(items(role, "rules"))
        return None

    def _roles(self, binding: Object) -> Iterator[Object]:
        """Yield the role of a binding, as often as it is in the files."""
        wanted = section(binding, "roleRef")
        for role in self.objects.get(text(wanted, "kind"), ()):
            fits = text(wanted, "kind") == "ClusterRole" or _same(
                _namespace(role), _namespace(binding)
            )
            named = text(section(role, "metadata"), "name") == text(wanted, "name")
            if fits and named and "aggregationRule" not in role:
                yield role


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
