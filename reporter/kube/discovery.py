"""What the API server offers, asked for with two requests where it can say all in one document.

A group whose server does not answer is noted, and the others are there all the same.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, Protocol

from reporter.core.resources import (
    AGGREGATED,
    Discovered,
    Offer,
    aggregated,
    groups,
    plain,
    preferred,
)
from reporter.errors import InvalidRequest, KubeError
from reporter.kube.client import JSON

Document = dict[str, Any]

_ALL_IN_ONE: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as={AGGREGATED}"
    for version in ("v2", "v2beta1")
)


class Documents(Protocol):
    """How a document is asked for, as `Reading.document`; whoever wants retries puts them here."""

    def __call__(
        self, path: str, names: Mapping[str, str] = ..., /, *, accept: str = ...
    ) -> Document:
        """Return the JSON object at a path. Raises KubeError."""


def discover(document: Documents) -> Discovered:
    """Return every resource once, and what could not be looked into.

    Raises KubeError where not even the groups are known.
    """
    core, others = _start(document, "/api"), _start(document, "/apis")
    if all(each.get("kind") == AGGREGATED for each in (core, others)):
        return preferred(chain(aggregated(core), aggregated(others)))
    return preferred(_one_by_one(document, core, others))


def _start(document: Documents, path: str) -> Document:
    try:
        return document(path, accept=f"{_ALL_IN_ONE},{JSON}")
    except InvalidRequest:  # 406: it knows none of these
        return document(path)


def _one_by_one(document: Documents, core: Document, others: Document) -> Iterator[Offer]:
    # One of the two may have all in one document where a proxy answers the other.
    for start in (core, others):
        if start.get("kind") == AGGREGATED:
            yield from aggregated(start)
    for group, version in groups(core, others):
        path, names = "/api/{version}", {"version": version}
        if group:
            path, names["group"] = "/apis/{group}/{version}", group
        try:
            found = document(path, names)
        except KubeError as error:
            yield Offer(group, version, trouble=str(error))
        else:
            yield plain(group, version, found)
