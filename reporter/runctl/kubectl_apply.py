"""Whether an object is too large for `kubectl apply`, which keeps a copy of it in an annotation."""

import json
from collections.abc import Mapping
from typing import Any, Final

from reporter.common.objects import section

MOST_ANNOTATIONS: Final = 256 * 1024
"""Bytes that the names and values of all annotations of an object may have."""
_COPY: Final = "kubectl.kubernetes.io/last-applied-configuration"
_AROUND: Final = len('"annotations":{},\n')  # what kubectl adds to the copy


def too_large_to_apply(wanted: Mapping[str, Any]) -> bool:
    """Return whether the API server would refuse it with that copy."""
    copy = json.dumps(wanted, separators=(",", ":"), ensure_ascii=False)
    escaped = 5 * sum(map(copy.count, "<>&"))  # kubectl writes < as \u003c
    own = section(wanted, "metadata", "annotations")
    others = sum(len(f"{name}{value}".encode()) for name, value in own.items())
    size = len(_COPY) + len(copy.encode()) + escaped + _AROUND + others
    return size > MOST_ANNOTATIONS
