"""Lists: pages, their continuation as long as its moment is remembered, and metadata alone."""

import base64
import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.fakekube.answers import ApiError
from tests.fakekube.journal import Entry
from tests.fakekube.kinds import Kind
from tests.fakekube.selectors import FieldSelector, LabelSelector
from tests.fakekube.store import Object, Store, copied

_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)
_METADATA = "PartialObjectMetadata"


@dataclass(frozen=True)
class _Token:
    """Where a list goes on: after this place, as of that version (-1: as of now)."""

    version: int
    after: str

    def __str__(self) -> str:
        said = {"v": "meta.k8s.io/v1", "rv": self.version, "start": self.after}
        return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")

    @classmethod
    def read(cls, text: str) -> "_Token":
        said = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        return cls(said["rv"], said["start"])


def listed(entry: Entry, kind: Kind, found: Sequence[Object], store: Store) -> dict[str, Any]:
    """Answer with the page of `found` that is asked for; the caller holds the store's lock."""
    fields, labels = FieldSelector(entry), LabelSelector(entry)
    fitting = {_place(one): one for one in found if fields.fits(one) and labels.fits(one)}
    places = sorted(fitting)
    version, begin = store.version, 0
    if written := entry.query.get("continue"):
        token = _Token.read(written)
        if 0 <= token.version < store.oldest:
            error = ApiError(410, "Expired", _TOO_OLD)
            error.body["metadata"] = {"continue": str(_Token(-1, token.after))}
            raise error
        version = token.version if token.version >= 0 else store.version
        begin = bisect_right(places, token.after)
    limit = int(entry.query.get("limit") or 0)
    end = begin + limit if limit else len(places)
    meta: dict[str, Any] = {"resourceVersion": str(version)}
    if end < len(places):
        meta["continue"] = str(_Token(version, places[end - 1]))
    items = [fitting[place] for place in places[begin:end]]
    if f"as={_METADATA}List" in entry.headers.get("accept", ""):
        own = {"kind": _METADATA, "apiVersion": "meta.k8s.io/v1"}
        shown = [{**own, "metadata": copied(one["metadata"])} for one in items]
        return own | {"kind": f"{_METADATA}List", "metadata": meta, "items": shown}
    # What the elements are is said once, by the list.
    shown = [
        {key: copied(value) for key, value in one.items() if key not in {"kind", "apiVersion"}}
        for one in items
    ]
    named = {"kind": f"{kind.name}List", "apiVersion": kind.api_version}
    return named | {"metadata": meta, "items": shown}


def _place(found: Object) -> str:
    # As etcd sorts them: by the key that they are stored under.
    return f"{found['metadata'].get('namespace', '')}/{found['metadata']['name']}"
