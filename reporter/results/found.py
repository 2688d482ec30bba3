"""What is found in the results of a run: plugins, their tests, and what is said of them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any

from reporter.results.not_passed import BAD, GOOD, said
from reporter.run.counting import verdict_of


@dataclass(frozen=True, slots=True)
class Test:
    """One test: the names above it, from the plugin on, its own, and what is said of it."""

    path: tuple[str, ...]
    name: str
    status: str
    details: Mapping[str, Any]
    meta: Mapping[str, Any]

    @property
    def good(self) -> bool:
        """Whether nothing speaks against it."""
        return self.status in GOOD

    @property
    def said(self) -> str:
        """What a failed test says, the most telling of its details first."""
        return said(self.details, self.meta)


@dataclass
class PluginResults:
    """The results of a plugin.

    `unlisted` is how many tests are counted and not kept, `written` the file as it is.
    """

    name: str
    status: str
    tests: list[Test]
    counts: Counter[str] = field(default_factory=Counter)
    unlisted: int = 0
    written: IO[bytes] | None = None

    @property
    def verdict(self) -> str:
        """What it means. A file that says better of itself than its tests do is not believed."""
        return self.status if self.status in BAD else verdict_of(self.counts)


@dataclass
class Results:
    """The results of a run by plugin, and what cannot be read, in words."""

    plugins: list[PluginResults] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
