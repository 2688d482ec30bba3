"""Facts of several nodes beside each other: as lines of name and value, and what differs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from reporter.common.objects import json_object

Facts = Mapping[str, Any]

LARGEST: Final = 4 * 1024 * 1024
"""Bytes of the file of a node."""
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


def read_facts_file(data: bytes) -> Facts | None:
    """Return facts of our format; whatever a plugin of somebody else calls so is none."""
    facts = json_object(data) if len(data) <= LARGEST else None
    return facts if facts and facts.get("api_version") == "v1" and "collected_at" in facts else None


class Difference(NamedTuple):
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
    facts: dict[str, dict[str, set[str]]] = {}
    for node, known in nodes.items():
        for name, value in dict(_lines("", known)).items():
            if own or not _is_own(name):
                facts.setdefault(name, {}).setdefault(value, set()).add(node)
    found = []
    for name, values in sorted(facts.items()):
        if missing := nodes.keys() - set().union(*values.values()):
            values.setdefault(ABSENT, set()).update(missing)
        if len(values) > 1:
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
        yield name, _text(value)
    elif name in _ORDERED:
        yield name, " ".join(map(_text, value))
    else:
        given: Counter[str] = Counter()
        for at, each in enumerate(value):
            if isinstance(each, Mapping):
                key = next((str(each[key]) for key in _KEYS if key in each), str(at))
                rest = {k: v for k, v in each.items() if v != key} or {"there": True}
                yield from _lines(f"{name}[{_label(key, given)}]", rest)
                continue
            key, _, setting = _text(each).partition("=")
            if key and setting:
                yield f"{name}[{_label(key, given)}]", setting
            else:
                yield f"{name}[{_text(each)}]", "yes"


def _label(key: str, given: Counter[str]) -> str:
    """Tell apart what has the same name in a list: the second is `name (2)`."""
    label = key
    while label in given:
        given[key] += 1
        label = f"{key} ({given[key]})"
    given[label] += 1
    return label


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _is_own(name: str) -> bool:
    before, _, rest = name.partition("[")
    plain = f"{before}[]{rest.rpartition(']')[2]}" if rest else name
    return any(own in (name, plain) or plain.startswith((f"{own}.", f"{own}[")) for own in _OWN)
