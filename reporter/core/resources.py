"""What an API server offers, read from its discovery documents in both of their forms.

`aggregated` reads the one document that has all groups (Kubernetes 1.30, as a beta 1.26);
`groups` and `plain` read the older ones, one for each version of a group. `preferred` says what to
ask for: each resource once, in the version that the server prefers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from reporter.core.objects import items, section, text

Object = Mapping[str, Any]

AGGREGATED: Final = "APIGroupDiscoveryList"
STALE: Final = "the server of this group does not answer; what it offers may have changed"


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """A resource in one version; `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """As people write it: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """As objects have it."""
        return f"{self.group}/{self.version}" if self.group else self.version


@dataclass(frozen=True, slots=True, order=True)
class DiscoveryTrouble:
    """Why it is not known what a version of a group offers."""

    group: str
    version: str
    text: str


@dataclass(frozen=True, slots=True)
class Offer:
    """What one version of a group offers. With trouble it may offer more than is listed."""

    group: str
    version: str
    resources: tuple[Resource, ...] = ()
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Discovered:
    """Each resource once, and every version of a group that could not be looked into."""

    resources: tuple[Resource, ...]
    troubles: tuple[DiscoveryTrouble, ...]


def preferred(offers: Iterable[Offer]) -> Discovered:
    """Take each resource of a group from the first version that has it; sorted by their names."""
    found: dict[tuple[str, str], Resource] = {}
    troubles = []
    for offer in offers:
        for resource in offer.resources:
            found.setdefault((resource.group, resource.plural), resource)
        if offer.trouble:
            troubles.append(DiscoveryTrouble(offer.group, offer.version, offer.trouble))
    return Discovered(tuple(sorted(found.values(), key=_place)), tuple(sorted(troubles)))


def aggregated(document: Object) -> list[Offer]:
    """Read an APIGroupDiscoveryList: its versions are in the server's order of preference."""
    offers = []
    for group in items(document, "items"):
        name = text(section(group, "metadata"), "name")
        for version in items(group, "versions"):
            called = text(version, "version")
            if not called:
                continue
            made = tuple(
                Resource(
                    name,
                    called,
                    text(each, "resource"),
                    text(section(each, "responseKind"), "kind"),
                    text(each, "scope") == "Namespaced",
                    _verbs(each),
                )
                for each in items(version, "resources")
                if text(each, "resource")
            )
            stale = text(version, "freshness") == "Stale"
            offers.append(Offer(name, called, made, STALE if stale else ""))
    return offers


def groups(core: Object, others: Object) -> Iterator[tuple[str, str]]:
    """Yield group and version from an APIVersions and an APIGroupList, preferred ones first."""
    versions = core.get("versions")
    for version in versions if isinstance(versions, list) else ():
        if isinstance(version, str) and version:
            yield "", version
    for group in items(others, "groups"):
        name = text(group, "name")
        first = text(section(group, "preferredVersion"), "version")
        listed = [text(each, "version") for each in items(group, "versions")]
        for version in dict.fromkeys([first, *listed]):
            if name and version:
                yield name, version


def plain(group: str, version: str, document: Object) -> Offer:
    """Read the APIResourceList of one version of a group; subresources are left out."""
    made = tuple(
        Resource(
            group,
            version,
            text(each, "name"),
            text(each, "kind"),
            each.get("namespaced") is True,
            _verbs(each),
        )
        for each in items(document, "resources")
        if text(each, "name") and "/" not in text(each, "name")
    )
    return Offer(group, version, made)


def _verbs(found: Object) -> frozenset[str]:
    verbs = found.get("verbs")
    listed = verbs if isinstance(verbs, list) else ()
    return frozenset(each for each in listed if isinstance(each, str))


def _place(resource: Resource) -> tuple[str, str]:
    return resource.group, resource.plural
