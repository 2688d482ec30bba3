"""Facts of several nodes beside each other: as lines of name and value, and what differs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

Facts = Mapping[str, Any]

ABSENT: Final = "absent"
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
    facts: dict[str, dict[str, list[str]]] = {}
    for node, told in nodes.items():
        for name, value in dict(_lines("", told)).items():
            facts.setdefault(name, {}).setdefault(value, []).append(node)
    found = []
    for name in sorted(facts):
        if _is_own(name) and not own:
            continue
        values = facts[name]
        if missing := nodes.keys() - {node for having in values.values() for node in having}:
            values.setdefault(ABSENT, []).extend(missing)
        if len(values) < 2:
            continue
        ranked = sorted(values, key=lambda value: (-len(values[value]), value))
        majority = ranked[0] if 2 * len(values[ranked[0]]) > len(nodes) else None
        having = {value: tuple(sorted(values[value])) for value in ranked}
        found.append(Difference(name, majority, having))
    return found


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
