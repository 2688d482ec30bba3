"""The options of a snapshot, variables with their rules, and the resources that they choose.

`status-ctl run` reads them before anything starts, because the rights depend on them, and the agent
reads the same ones in its container.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, NamedTuple

from reporter.common import label_selector
from reporter.kube.resources import Resource

PREFIX: Final = "SNAPSHOT_"
MIB: Final = 2**20
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PATTERN = re.compile(r"(\*|[a-z0-9-]{1,63})(\.(\*|[a-z0-9][-a-z0-9.]{0,252}))?")


class Pattern(NamedTuple):
    """Names resources: `pods`, `pods.core`, `deployments.apps`, `*.example.com`; `*` is all.

    A plural alone means every group's, as one seldom knows them by heart.
    """

    plural: str
    group: str = "*"

    def fits(self, resource: Resource) -> bool:
        """Say whether it names this resource."""
        return self.plural in {"*", resource.plural} and self.group in {"*", resource.group}


def _setting(default: Any, read: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"read": read})


def _patterns(text: str) -> tuple[Pattern, ...]:
    found = []
    for each in filter(None, map(str.strip, text.split(","))):
        if not _PATTERN.fullmatch(each):
            raise ValueError(f"{each[:80]!r} is not RESOURCE or RESOURCE.GROUP")
        plural, dot, group = each.partition(".")
        found.append(Pattern(plural, {"core": ""}.get(group, group) if dot else "*"))
    return tuple(found)


def _names(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))
    for each in found:
        if not _NAME.fullmatch(each):
            raise ValueError(f"{each[:80]!r} is not the name of a namespace")
    return found


def _selector(text: str) -> str:
    label_selector.parse(text)
    return text.strip()


def _switch(text: str) -> bool:
    return _one_of("true", "false")(text) == "true"


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(f"must be {' or '.join(words)}")
        return text

    return read


def _whole(low: int, high: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise ValueError(f"must be an integer from {low} to {high}")
        return int(text)

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotOptions:
    """What to collect, and how much of it. The variables are these names in capitals.

    `resources` and `namespaces` empty mean all of them. `log_kib` is of each log, `resource_mib` of
    each resource, `total_mib` and `max_files` of everything.
    """

    resources: tuple[Pattern, ...] = _setting((), _patterns)
    exclude: tuple[Pattern, ...] = _setting((), _patterns)
    namespaces: tuple[str, ...] = _setting((), _names)
    namespace_selector: str = _setting("", _selector)
    secrets: str = _setting("none", _one_of("none", "metadata"))
    kubelet: bool = _setting(False, _switch)
    pod_logs: bool = _setting(False, _switch)
    log_kib: int = _setting(1024, _whole(1, 2**20))
    resource_mib: int = _setting(256, _whole(1, 2**20))
    total_mib: int = _setting(1024, _whole(1, 2**20))
    max_files: int = _setting(15_000, _whole(100, 10_000_000))
    seconds: int = _setting(2_700, _whole(1, 31_536_000))


def read_options(environ: Mapping[str, str]) -> tuple[SnapshotOptions, list[str]]:
    """Return the options that are set, and what is wrong with them, a line each.

    A variable that begins with `SNAPSHOT_` and is no option is a problem: it would be ignored.
    """
    known = {f"{PREFIX}{each.name.upper()}": each for each in fields(SnapshotOptions)}
    values: dict[str, Any] = {}
    problems = []
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        if variable not in known:
            problems.append(f"{variable}: is not an option; known are {', '.join(known)}")
            continue
        option = known[variable]
        if not environ[variable].strip(" ,\t\n"):
            # A variable that a shell did not know must not stand for the whole cluster.
            problems.append(f"{variable}: must not be empty; leave it out for the default")
            continue
        try:
            values[option.name] = option.metadata["read"](environ[variable])
        except ValueError as error:
            problems.append(f"{variable}: {error}")
    if "namespaces" in values and "namespace_selector" in values:
        problems.append(f"{PREFIX}NAMESPACES: must not be set together with a selector")
    return SnapshotOptions(**values), problems


_CREDENTIALS: Final = "their names or fields are credentials"
_OF_CREDENTIALS: Final = {
    "oauth.openshift.io": (
        *("oauthaccesstokens", "oauthauthorizetokens", "useroauthaccesstokens"),
        "oauthclients",
    ),
    "dex.coreos.com": (
        *("authcodes", "authrequests", "connectors", "devicerequests", "devicetokens"),
        *("oauth2clients", "offlinesessionses", "passwords", "refreshtokens", "signingkeies"),
    ),
    "management.cattle.io": ("clusterregistrationtokens", "samltokens", "tokens"),
    "ext.cattle.io": ("tokens",),
}
NEVER: Final = {
    ("events.k8s.io", "events"): "the same objects as the events of the core group",
    **{
        (group, plural): _CREDENTIALS
        for group, plurals in _OF_CREDENTIALS.items()
        for plural in plurals
    },
}
"""Left out whatever is asked for."""


class Choice(NamedTuple):
    """What is collected, and what is not with the reasons; sorted as the resources were."""

    chosen: tuple[Resource, ...] = ()
    left_out: tuple[tuple[Resource, str], ...] = ()


def is_secrets(resource: Resource) -> bool:
    """Say whether it is the Secrets of the core group."""
    return (resource.group, resource.plural) == ("", "secrets")


def choose(resources: Iterable[Resource], options: SnapshotOptions) -> Choice:
    """Sort them into what is collected and what is left out."""
    reasons = [(each, _left_out(each, options)) for each in resources]
    return Choice(
        tuple(each for each, reason in reasons if not reason),
        tuple((each, reason) for each, reason in reasons if reason),
    )


def _left_out(resource: Resource, options: SnapshotOptions) -> str:
    if "list" not in resource.verbs:
        return "cannot be listed"
    if reason := NEVER.get((resource.group, resource.plural)):
        return reason
    if is_secrets(resource) and options.secrets == "none":
        return "Secrets are left out unless SNAPSHOT_SECRETS=metadata"
    if options.resources and not any(each.fits(resource) for each in options.resources):
        return "not in SNAPSHOT_RESOURCES"
    if any(each.fits(resource) for each in options.exclude):
        return "in SNAPSHOT_EXCLUDE"
    return ""
