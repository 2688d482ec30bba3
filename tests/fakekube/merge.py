"""Strategic merge as the API server does it: conditions by type, with its rule of order."""

from typing import Any

from tests.fakekube.answers import NotImitated

Condition = dict[str, Any]


def merge_maps(live: dict[str, Any] | None, patch: dict[str, Any]) -> dict[str, Any]:
    """Merge `patch` into a copy of `live`: null deletes, maps merge, all else replaces."""
    merged = dict(live or {})
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            old = merged.get(key)
            merged[key] = merge_maps(old if isinstance(old, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def merge_conditions(live: list[Condition], patch: list[Condition]) -> list[Condition]:
    """Merge by type. Types that are new come first; those that exist keep their place."""
    if any("type" not in element or "$patch" in element for element in patch):
        raise NotImitated("a patch of a condition without a type, or with a directive")
    before = {condition["type"]: condition for condition in reversed(live)}
    places = {condition["type"]: place for place, condition in reversed(list(enumerate(live)))}
    right = [merge_maps(before.get(element["type"]), element) for element in patch]
    types = {element["type"] for element in patch}
    left = [(place, c) for place, c in enumerate(live) if c["type"] not in types]
    merged: list[Condition] = []
    for condition in right:
        # The patch's own order holds; what only the server has goes in before the first patched
        # condition that stood behind it.
        place = places.get(condition["type"], -1)
        while left and left[0][0] < place:
            merged.append(left.pop(0)[1])
        merged.append(condition)
    return merged + [condition for _, condition in left]
