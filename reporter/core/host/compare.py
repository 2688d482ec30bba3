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

    What is in a list of words has the value `yes`: `cpu.flags[fpu]`.
    """
    return dict(sorted(_lines("", facts)))


def differences(nodes: Mapping[str, Facts], *, own: bool = False) -> list[Difference]:
    """Return what is not the same on all nodes; with `own` also what every machine has of its own.

    A node whose facts are partial may lack one: that counts as a value, `absent`.
    """
    told = {node: lines(facts) for node, facts in nodes.items()}
    names = sorted({name for each in told.values() for name in each})
    found = []
    for name in names:
        values = {node: each.get(name, ABSENT) for node, each in told.items()}
        counted = Counter(values.values())
        if len(counted) < 2 or (not own and _is_own(name)):
            continue
        ranked = sorted(counted, key=lambda value: (-counted[value], value))
        majority = ranked[0] if 2 * counted[ranked[0]] > len(nodes) else None
        by_value = {
            value: tuple(sorted(node for node, said in values.items() if said == value))
            for value in ranked
        }
        found.append(Difference(name, majority, by_value))
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
        used: set[str] = set()
        counted: Counter[str] = Counter()
        for at, each in enumerate(value):
            if isinstance(each, Mapping):
                key = next((str(each[key]) for key in _KEYS if key in each), str(at))
                rest = {k: v for k, v in each.items() if v != key} or {"there": True}
                counted[key] += 1
                while (label := f"{key} ({counted[key]})" if counted[key] > 1 else key) in used:
                    counted[key] += 1
                used.add(label)
                yield from _lines(f"{name}[{label}]", rest)
            else:
                yield f"{name}[{_shown(each)}]", "yes"


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _is_own(name: str) -> bool:
    before, _, rest = name.partition("[")
    plain = f"{before}[]{rest.rpartition(']')[2]}" if rest else name
    return any(plain == own or plain.startswith((f"{own}.", f"{own}[")) for own in _OWN)
