"""What every program's metrics share: one consistent page in the format a scraper prefers.

Which families a program has is not known here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from prometheus_client import CollectorRegistry, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric

# One more series for each histogram and label, which nobody asks for.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Page(NamedTuple):
    """One rendered scrape; `final` says whether it shows a final verdict."""

    body: bytes
    content_type: str
    final: bool


class Collected(Protocol):
    """Something that yields families of metrics."""

    def collect(self) -> Iterable[Metric]:
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
