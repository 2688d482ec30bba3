"""What `kubectl apply` cannot take."""

import pytest

from reporter.runctl.run import MOST_ANNOTATIONS, too_large_to_apply

# As `kubectl apply` writes it for an object without annotations.
FRAME = (
    "kubectl.kubernetes.io/last-applied-configuration"
    '{"apiVersion":"v1","data":{"a":""},"kind":"ConfigMap","metadata":{"annotations":{},'
    '"name":"first"}}\n'
)
ROOM = MOST_ANNOTATIONS - len(FRAME)


@pytest.mark.parametrize(
    ("value", "annotations", "too_large"),
    [
        ("x" * ROOM, {}, False),
        ("x" * (ROOM + 1), {}, True),
        ("é" * (ROOM // 2 + 1), {}, True),
        ('"' * (ROOM // 2 + 1), {}, True),
        ("<" * (ROOM // 6), {}, False),
        ("&" * (ROOM // 6 + 1), {}, True),
        ("\u2028" * (ROOM // 6 + 1), {}, True),
        ("x" * (ROOM - 100), {"note": "y" * 100}, True),
    ],
    ids=["all of it", "a byte more", "bytes", "quotes", "as 6", "& too", "U+2028 too", "others"],
)
def test_the_copy_has_to_fit(value: str, annotations: dict[str, str], too_large: bool) -> None:
    """With all that kubectl writes around it."""
    metadata = {"name": "first"} | ({"annotations": annotations} if annotations else {})
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}

    assert too_large == too_large_to_apply(wanted)
