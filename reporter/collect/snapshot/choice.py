"""Which resources a snapshot collects, and why the others are left out."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from reporter.collect.snapshot.options import SnapshotOptions
from reporter.kube.resources import Resource

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


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A resource that is not collected, and why not."""

    resource: Resource
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """What is collected and what is not, each sorted by group and plural."""

    chosen: tuple[Resource, ...]
    left_out: tuple[LeftOut, ...]


def is_secrets(resource: Resource) -> bool:
    """Say whether it is the Secrets of the core group."""
    return (resource.group, resource.plural) == ("", "secrets")


def choose(resources: Iterable[Resource], options: SnapshotOptions) -> Choice:
    """Sort them into what is collected and what is left out."""
    chosen, left_out = [], []
    for resource in resources:
        if reason := _reason(resource, options):
            left_out.append(LeftOut(resource, reason))
        else:
            chosen.append(resource)
    return Choice(tuple(chosen), tuple(left_out))


def _reason(resource: Resource, options: SnapshotOptions) -> str:
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
