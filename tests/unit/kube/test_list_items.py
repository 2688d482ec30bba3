"""The objects of a list, read one by one from bytes that come in any pieces."""

import io
import json
from typing import Any, BinaryIO, cast

import pytest

from reporter.errors import Unavailable
from reporter.kube.list_items import ListItems

OBJECTS = [
    {"metadata": {"name": f"n{n}"}, "data": {"a": 'q"[{\\', "é": "\u2028"}} for n in range(9)
]
META = {"resourceVersion": "7", "continue": "more"}


class Dripping:
    """A file that gives a few bytes at a time."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file, self._step = io.BytesIO(data), step

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, self._step))


def encoded(document: Any, *, indent: int | None = None) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=indent).encode()


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 10_000])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("order", [("kind", "metadata", "items"), ("items", "kind", "metadata")])
def test_any_pieces_and_any_order(step: int, indent: int | None, order: tuple[str, ...]) -> None:
    """Built-in resources have their items last, custom ones first."""
    whole = {"kind": "PodList", "metadata": META, "items": OBJECTS}
    document = {name: whole[name] for name in order} | {"apiVersion": "v1", "number": 12345}
    listed = ListItems(cast("BinaryIO", Dripping(encoded(document, indent=indent), step)))

    assert OBJECTS == list(listed)
    assert ("PodList", META) == (listed.kind, listed.metadata)


@pytest.mark.parametrize("items", [[], None])
def test_a_list_without_objects(items: Any) -> None:
    """An empty list, and Go's empty one."""
    assert [] == list(ListItems(io.BytesIO(encoded({"kind": "PodList", "items": items}))))


def test_a_list_says_what_it_is_in_other_types() -> None:
    """It counts as saying nothing."""
    listed = ListItems(io.BytesIO(encoded({"kind": 7, "metadata": [], "items": []})))

    assert [] == list(listed)
    assert ("", {}) == (listed.kind, listed.metadata)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"items":[',
        b'{"items":[{}',
        b'{"items":[{} {}]}',
        b'{"items":[1]}',
        b'{"items":[{"a":}]}',
        b'{"items":[]',
        b'{"items":[] "kind"',
        b'{"kind" 1}',
        b'{"items":[{"a":"\xff"}]}',
        b'{"items":[' + b'{"a":' * 200_000,
    ],
    ids=lambda data: str(data[:24]),
)
def test_what_is_no_list_is_refused(data: bytes) -> None:
    """Never another error, and never an end as if all had come."""
    with pytest.raises(Unavailable):
        list(ListItems(io.BytesIO(data)))


def test_what_came_before_the_break_is_given() -> None:
    """An object is given as soon as it is complete."""
    listed = iter(ListItems(io.BytesIO(b'{"items":[{"a":1},{"b":2},{"c"')))

    assert [{"a": 1}, {"b": 2}] == [next(listed), next(listed)]
    with pytest.raises(Unavailable):
        next(listed)


def test_an_object_beyond_all_bounds() -> None:
    """It is given up when the window is full, not when the memory is."""
    data = b'{"items":[{"a":"' + b"x" * (33 * 2**20)

    with pytest.raises(Unavailable, match="larger than"):
        list(ListItems(io.BytesIO(data)))
