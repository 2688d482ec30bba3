"""The files of a network namespace: addresses, routes, and the resolver's configuration."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Final

from reporter.collect.host.numbers import hexadecimal, known, natural, short, words

Facts = dict[str, Any]

_MOST: Final = 1_024  # entries of a list
_UP: Final = 0x1
_REJECT: Final = 0x200
_SCOPES: Final = {0x00: "global", 0x10: "host", 0x20: "link", 0x40: "site"}
_LOCAL = re.compile(r"\|-- ([0-9.]{7,15})\s+/32 host LOCAL")


def ipv4_addresses(fib_trie: str) -> list[str]:
    """Read /proc/net/fib_trie: the addresses of the machine itself, without the loopback's."""
    found = set()
    for text in _LOCAL.findall(fib_trie):
        try:
            address = IPv4Address(text)
        except AddressValueError:
            continue
        if not address.is_loopback:
            found.add(address)
    return [str(address) for address in sorted(found)][:_MOST]


def ipv6_addresses(if_inet6: str) -> list[Facts]:
    """Read /proc/net/if_inet6."""
    found = []
    for line in if_inet6.splitlines()[:_MOST]:
        match line.split():
            case [packed, _, prefix, scope, _, interface]:
                address, length = _ipv6(packed), hexadecimal(prefix)
                if address is None or length is None or length > 128 or address.is_loopback:
                    continue
                found.append(
                    known(
                        address=str(address),
                        prefix_length=length,
                        scope=_SCOPES.get(hexadecimal(scope) or 0),
                        interface=short(interface),
                    )
                )
    return found


def ipv4_routes(text: str) -> list[Facts]:
    """Read /proc/net/route."""
    found = []
    for line in text.splitlines()[1 : _MOST + 1]:
        match line.split():
            case [interface, destination, gateway, flags, _, _, metric, mask, mtu, *_]:
                to, via, net = map(_ipv4, (destination, gateway, mask))
                bits = hexadecimal(flags)
                if to is None or net is None or bits is None or not bits & _UP:
                    continue
                length = int(net).bit_count()
                found.append(
                    known(
                        destination=f"{to}/{length}",
                        gateway=str(via) if via and int(via) else None,
                        interface=short(interface),
                        metric=natural(metric),
                        mtu_bytes=natural(mtu) or None,
                    )
                )
    return found


def ipv6_routes(text: str) -> list[Facts]:
    """Read /proc/net/ipv6_route, without those of the loopback and without multicast."""
    found = []
    for line in text.splitlines()[:_MOST]:
        match line.split():
            case [packed, prefix, _, _, next_hop, metric, _, _, flags, interface]:
                to, via, length = _ipv6(packed), _ipv6(next_hop), hexadecimal(prefix)
                bits = hexadecimal(flags)
                if to is None or length is None or length > 128 or bits is None:
                    continue
                if interface == "lo" or to.is_multicast or not bits & _UP or bits & _REJECT:
                    continue
                found.append(
                    known(
                        destination=f"{to}/{length}",
                        gateway=str(via) if via and int(via) else None,
                        interface=short(interface),
                        metric=hexadecimal(metric),
                    )
                )
    return found


def resolver(text: str) -> Facts:
    """Read resolv.conf(5); nameservers and search domains keep their order."""
    servers: list[str] = []
    search: list[str] = []
    options: list[str] = []
    for line in text.splitlines()[:_MOST]:
        match line.split():
            case ["nameserver", server, *_]:
                servers += filter(None, [short(server)])
            case ["search" | "domain", *domains]:
                search = [each for domain in domains if (each := short(domain))]
            case ["options", *given]:
                options += given
    return known(nameservers=servers, search=search[:_MOST], options=words(" ".join(options)))


def _ipv4(text: str) -> IPv4Address | None:
    """Read an address as the kernel writes it: hexadecimal, in the order of its memory."""
    number = hexadecimal(text) if len(text) == 8 else None
    return None if number is None else IPv4Address(number.to_bytes(4, "little"))


def _ipv6(text: str) -> IPv6Address | None:
    number = hexadecimal(text) if len(text) == 32 else None
    return None if number is None else IPv6Address(number)
