"""What every program's metrics share: one consistent page in the format a scraper prefers.

Which families a program has is not known here.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric


class Page(NamedTuple):
    """One rendered scrape; `final` says whether it shows a final verdict."""

    body: bytes
    content_type: str
    final: bool


class Collected(Protocol):
    """Something that yields families of metrics."""

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        ...


class Renderer:
    """Renders the families of one source.

    `lock` stands around facts and rendering: a page shows the facts of one moment.
    """

    def __init__(self, source: Collected) -> None:
        self.lock = threading.Lock()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(source)

    def render(self, accept: str) -> tuple[bytes, str]:
        """Return body and content type in the format that the `Accept` header prefers.

        The caller holds the lock.
        """
        try:
            # It repeats the version that it was asked for in the content type.
            plain = accept.isascii() and accept.isprintable()
            encode, content_type = choose_encoder(accept if plain else "")
        except TypeError:  # it compares a version that is no number with one
            encode, content_type = choose_encoder("")
        return encode(self._registry), content_type


class Spread:
    """How observed values spread over buckets; not thread-safe by itself."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def buckets(self) -> list[tuple[str, float]]:
        """Return (upper bound, values up to it), the last being all of them."""
        seen, found = 0, []
        for bound, count in zip((*map(str, self._bounds), "+Inf"), self._counts, strict=True):
            seen += count
            found.append((bound, float(seen)))
        return found
