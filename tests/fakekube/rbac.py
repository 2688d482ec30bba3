"""Who may do what: bearer tokens of service accounts, and rules of verb, resource and name."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakekube.answers import ApiError


@dataclass(frozen=True)
class Rule:
    """As in a Role; `names` empty means every name. Resources are written `jobs/status`.

    With `namespaces` it is a Role in each of these; without it a ClusterRole, bound in the cluster.
    """

    verbs: tuple[str, ...]
    resources: tuple[str, ...]
    names: tuple[str, ...] = ()
    groups: tuple[str, ...] = ("", "batch")
    namespaces: tuple[str, ...] = ()

    def allows(
        self, verb: str, group: str, resource: str, name: str | None, namespace: str
    ) -> bool:
        return (
            (not self.namespaces or namespace in self.namespaces)
            and ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.groups or group in self.groups)
            and ("*" in self.resources or resource in self.resources)
            and (not self.names or name in self.names)
        )


ROLES: dict[str, tuple[Rule, ...]] = {
    "admin": (Rule(("*",), ("*",), groups=("*",)),),
    "reporter": (
        Rule(("get", "patch"), ("jobs/status",)),
        Rule(("get", "watch"), ("pods",)),
        Rule(("create",), ("events",), groups=("events.k8s.io",)),
    ),
    "no-events": (Rule(("get", "patch"), ("jobs/status",)), Rule(("get", "watch"), ("pods",))),
    "go-reporter": (
        Rule(("get",), ("jobs",)),
        Rule(("get", "update", "patch"), ("jobs/status",)),
        Rule(("get", "list"), ("pods",)),
    ),
    "aggregator": (Rule(("list", "patch"), ("pods",)),),
    "no-pods": (Rule(("get", "patch"), ("jobs/status",)),),
    "nothing": (),
}
"""Roles by name.

Everything, our rights, ours without Events, the Go reporter's, the aggregator's, the Job's status
alone, none.
"""


def forbidden(
    user: str, verb: str, group: str, resource: str, namespace: str, name: str | None
) -> ApiError:
    """403 with the text of the RBAC authorizer."""
    kind = resource.partition("/")[0]
    what = f"{kind}.{group}" if group else kind
    named = f'{what} "{name}"' if name else what
    details = {"group": group} if group else {}
    return ApiError(
        403,
        "Forbidden",
        f'{named} is forbidden: User "{user}" cannot {verb} resource "{resource}" '
        f'in API group "{group}" '
        + (f'in the namespace "{namespace}"' if namespace else "at the cluster scope"),
        **({"name": name} if name else {}),
        **details,
        kind=kind,
    )


def unknown_path(role: str | None, path: str) -> ApiError:
    """403 for a path that nobody was given a right to, whether it exists or not."""
    user = f"system:serviceaccount:default:{role}" if role else "system:anonymous"
    return ApiError(403, "Forbidden", f'forbidden: User "{user}" cannot get path "{path}"')


class Tokens:
    """The tokens that are good, and the rules of the role behind each."""

    def __init__(self) -> None:
        self.roles: dict[str, Sequence[Rule]] = dict(ROLES)
        self._holders: dict[str, str] = {}

    def add(self, token: str, role: str) -> None:
        self._holders[token] = role

    def revoke(self, token: str) -> None:
        self._holders.pop(token, None)

    def role_of(self, authorization: str | None) -> str | None:
        """Return the role of a request; None is anonymous. 401 for a token nobody gave out."""
        if not authorization:
            return None
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or token not in self._holders:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return self._holders[token]

    def check(
        self,
        role: str | None,
        verb: str,
        group: str,
        resource: str,
        namespace: str,
        name: str | None,
    ) -> None:
        """Raise 403 unless a rule of the role allows it."""
        if (group, resource) == ("", "namespaces"):
            # A namespace is in itself: a Role there may allow to read it.
            namespace = name or ""
        rules = self.roles.get(role, ()) if role else ()
        if not any(rule.allows(verb, group, resource, name, namespace) for rule in rules):
            user = f"system:serviceaccount:{namespace}:{role}" if role else "system:anonymous"
            raise forbidden(user, verb, group, resource, namespace, name)
