"""Facts of several nodes beside each other: as lines of name and value, and what differs."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Facts = Mapping[str, Any]

ABSENT: Final = "absent"
_ENTRY: Final = 300  # bytes that a name or a value takes beside its text, its first run included
_RUN: Final = 8  # of nodes that follow each other and have the same value
_KEYS: Final = ("name", "path", "address", "destination")
_ORDERED: Final = frozenset({"network.resolver.nameservers", "network.resolver.search"})
_OWN: Final = (
    "api_version",
    "boot",
    "collected_at",
    "container_mounts",
    "hostname",
    "kubelet.flags[--hostname-override]",
    "kubelet.flags[--node-ip]",
    "kubelet.flags[--provider-id]",
    "load",
    "machine_id",
    "network.interfaces[].mac_address",
    "network.ipv4_addresses",
    "network.ipv4_routes",
    "network.ipv6_addresses",
    "network.ipv6_routes",
    "node",
    "pressure",
    "file_systems[].available_bytes",
    "file_systems[].inodes_available",
    "memory.available_bytes",
    "memory.free_bytes",
    "memory.huge_pages_free",
    "memory.swap_free_bytes",
    "time.estimated_error_seconds",
    "time.maximum_error_seconds",
    "time.offset_seconds",
)
"""What every machine has of its own, or what changes with the minute."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact that is not the same on all nodes.

    `values` has the nodes by value, the most frequent first; `majority` is the value of more than
    half of the nodes, None where no value is.
    """

    name: str
    majority: str | None
    values: Mapping[str, tuple[str, ...]]


def lines(facts: Facts) -> dict[str, str]:
    """Return facts as values by name, sorted: `cpu.sockets`, `disks[vda].size_bytes`.

    In a list of words `--v=2` is a name and its value, `kubelet.flags[--v]`; a word that is no such
    pair has the value `yes`: `cpu.flags[fpu]`.
    """
    return dict(sorted(_lines("", facts)))


def differences(nodes: Mapping[str, Facts], *, own: bool = False) -> list[Difference]:
    """Return what is not the same on all nodes; with `own` also what every machine has of its own.

    A node whose facts are partial may lack one: that counts as a value, `absent`.
    """
    comparison = Comparison(own=own)
    for node, facts in nodes.items():
        comparison.add(node, facts)
    return list(comparison.differences())


class Comparison:
    """Facts of nodes that come one after the other; of a node nothing is kept but its values.

    `most` bounds the memory for them in bytes, roughly. A fact that no longer fits is left out as a
    whole, never as the value of one node: that would then seem to lack it.
    """

    def __init__(self, *, own: bool = False, most: int | None = None) -> None:
        self._own, self._left = own, most
        self._nodes: list[str] = []
        self._facts: dict[str, dict[str, array[int]] | None] = {}  # None: not compared
        self.left_out = False
        """Whether a fact was left out for want of memory."""

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self._nodes)

    def add(self, node: str, facts: Facts) -> None:
        """Take the facts of one more node, or raise MemoryError or RecursionError and take none."""
        found = dict(_lines("", facts))
        at = len(self._nodes)
        self._nodes.append(node)
        try:
            self._take_in(at, found)
        except MemoryError:
            found.clear()
            self._drop(at)
            raise

    def _take_in(self, at: int, found: Mapping[str, str]) -> None:
        for name, value in found.items():
            if name not in self._facts and self._take(_ENTRY + len(name)):
                own = not self._own and _is_own(name)
                self._facts[name] = None if own else {}
            values = self._facts.get(name)
            if values is None:
                continue
            runs = values.get(value)
            if runs is not None and runs[-1] == at:
                runs[-1] = at + 1
            elif self._take(_RUN if runs is not None else _ENTRY + len(value)):
                new = array("I", (at, at + 1))
                if runs is None:
                    values[value] = new
                else:
                    runs.extend(new)
            else:
                self._facts[name] = None

    def _drop(self, at: int) -> None:
        """Drop what was taken of the last node."""
        self._nodes.pop()
        for values in filter(None, self._facts.values()):
            for value in [value for value, runs in values.items() if runs[-1] == at + 1]:
                runs = values[value]
                if runs[-2] < at:
                    runs[-1] = at
                elif len(runs) > 2:
                    del runs[-2:]
                else:
                    del values[value]

    def differences(self) -> Iterator[Difference]:
        """Yield what is not the same on all nodes, by name."""
        for name in sorted(self._facts):
            values = self._facts[name]
            if values is None:
                continue
            counted = {value: _nodes_in(runs) for value, runs in values.items()}
            if missing := len(self._nodes) - sum(counted.values()):
                counted[ABSENT] = counted.get(ABSENT, 0) + missing
            if len(counted) < 2:
                continue
            ranked = sorted(counted, key=lambda value: (-counted[value], value))
            majority = ranked[0] if 2 * counted[ranked[0]] > len(self._nodes) else None
            yield Difference(name, majority, {each: self._having(values, each) for each in ranked})

    def _having(self, values: Mapping[str, "array[int]"], value: str) -> tuple[str, ...]:
        """Return the nodes with a value."""
        found = [self._nodes[at] for at in _places(values.get(value, ()))]
        if value == ABSENT:
            told = {at for runs in values.values() for at in _places(runs)}
            found += [node for at, node in enumerate(self._nodes) if at not in told]
        return tuple(sorted(found))

    def _take(self, size: int) -> bool:
        """Take memory, if there is as much."""
        if self._left is not None:
            if self.left_out or size > self._left:
                self.left_out = True  # for ever: a fact that begins later would seem to be absent
                return False
            self._left -= size
        return True


def _places(runs: Iterable[int]) -> Iterator[int]:
    pairs = iter(runs)
    for start, end in zip(pairs, pairs, strict=True):
        yield from range(start, end)


def _nodes_in(runs: "array[int]") -> int:
    return sum(runs[1::2]) - sum(runs[::2])


def _lines(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            # Names of sysctls have dots of their own.
            yield from _lines(f"{name}.{key}" if name else str(key), each)
    elif not isinstance(value, list):
        yield name, _shown(value)
    elif name in _ORDERED:
        yield name, " ".join(map(_shown, value))
    else:
        labels = _Labels()
        for at, each in enumerate(value):
            if isinstance(each, Mapping):
                key = next((str(each[key]) for key in _KEYS if key in each), str(at))
                rest = {k: v for k, v in each.items() if v != key} or {"there": True}
                yield from _lines(f"{name}[{labels.new(key)}]", rest)
                continue
            key, _, told = _shown(each).partition("=")
            if key and told:
                yield f"{name}[{labels.new(key)}]", told
            else:
                yield f"{name}[{_shown(each)}]", "yes"


class _Labels:
    """Tells apart what has the same name in a list: the second is `name (2)`."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counted: Counter[str] = Counter()

    def new(self, key: str) -> str:
        """Return a name that was not given yet."""
        label = key
        while True:
            self._counted[key] += 1
            if self._counted[key] > 1:
                label = f"{key} ({self._counted[key]})"
            if label not in self._used:
                self._used.add(label)
                return label


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _is_own(name: str) -> bool:
    before, _, rest = name.partition("[")
    plain = f"{before}[]{rest.rpartition(']')[2]}" if rest else name
    return any(own in (name, plain) or plain.startswith((f"{own}.", f"{own}[")) for own in _OWN)
