"""What the files of a machine say. Anything may have written them: a value, or nothing."""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any, Final

Facts = dict[str, Any]

LARGEST: Final = 2**63 - 1
BLANKED: Final = "(blanked)"
_MOST: Final = 1_024  # entries of a list
_MOST_WORDS: Final = 4_096
_TEXT: Final = 1_024  # characters of one value
_WHOLE = re.compile(r"-?[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,32})")
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def whole(text: str) -> int | None:
    """Read an integer of 64 bits."""
    text = text.strip()
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is not None and -LARGEST <= value <= LARGEST else None


def natural(text: str) -> int | None:
    """Read an integer of 64 bits that is not negative: a size, a number of something."""
    value = whole(text)
    return None if value is None or value < 0 else value


def decimal(text: str) -> float | None:
    """Read a decimal number."""
    text = text.strip()
    return float(text) if _DECIMAL.fullmatch(text) else None


def hexadecimal(text: str) -> int | None:
    """Read a hexadecimal number, with or without `0x`."""
    found = _HEX.fullmatch(text.strip())
    return int(found[1], 16) if found else None


def kibibytes(text: str) -> int | None:
    """Read a number of KiB as bytes."""
    value = natural(text)
    return None if value is None else min(value, 2**53) * 1024


def short(text: str) -> str | None:
    """Return one line of text, cut to 1,024 characters; nothing for an empty one."""
    return _UNSEEN.sub(" ", text).strip()[:_TEXT].rstrip() or None


def truth(text: str) -> bool | None:
    """Read a flag of the kernel: `Y`, `N`, `1`, `0`."""
    return {"y": True, "1": True, "n": False, "0": False}.get(text.strip().lower())


def words(text: str) -> list[str]:
    """Return words as short texts, sorted, each once."""
    return sorted({each for word in text.split() if (each := short(word))})


def count(ranges: str) -> int | None:
    """Return how many a list such as `0-3,8` names."""
    total = 0
    for part in ranges.strip().split(","):
        first, dash, last = part.partition("-")
        low = whole(first)
        high = whole(last) if dash else low
        if low is None or high is None or not 0 <= low <= high:
            return None
        total += high - low + 1
    return min(total, LARGEST)


def known(**facts: object) -> dict[str, object]:
    """Return the facts that are known: not None, and no empty list or object."""
    return {name: value for name, value in facts.items() if value not in (None, [], {})}


def _members(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


_ASSIGNMENT = re.compile(r"([A-Z][A-Z0-9_]*)=(.*)")
_OS: Final = {
    "ID": "id",
    "VERSION_ID": "version_id",
    "PRETTY_NAME": "pretty_name",
    "VARIANT_ID": "variant_id",
    "VERSION_CODENAME": "codename",
    "IMAGE_VERSION": "image_version",
    "BUILD_ID": "build_id",
}


def os_release(text: str) -> Facts:
    """Read os-release(5)."""
    found: Facts = {}
    for line in text.splitlines():
        if match := _ASSIGNMENT.fullmatch(line.strip()):
            name, value = match.groups()
            if len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]:
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            if name in _OS and (said := short(value)):
                found[_OS[name]] = said
            elif name == "ID_LIKE":
                found["id_like"] = words(value)
    return known(**found)


_SECRET = re.compile(
    r"passw|pass$|secret|token|credential|(^|[^a-z])(key|psk|auth)$", re.IGNORECASE
)
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_USER = re.compile(r"(//|^[\w.]+=iscsi:)[^/]*@")
_QUERY = re.compile(r"\?.*", re.DOTALL)


def arguments(line: str) -> list[str]:
    """Return the words of a command line; values of what may be a credential are blanked.

    So are users and queries of addresses. A word may name more than one thing:
    `systemd.setenv=NAME=VALUE`.
    """
    given = line.split("\0") if "\0" in line else _WORD.findall(line)
    found: list[str] = []
    blank_next = False
    for word in given[:_MOST_WORDS]:
        # Before it is cut short: what tells a password may stand behind it.
        said = short(_QUERY.sub(f"?{BLANKED}", _without_user(word)))
        if said is None:
            continue
        *names, _ = parts = said.split("=")
        secret = next((at for at, name in enumerate(names, 1) if _SECRET.search(name)), 0)
        if blank_next and not said.startswith("-"):
            said = BLANKED
        elif secret:
            said = "=".join([*parts[:secret], BLANKED])
        blank_next = not names and said.startswith("-") and bool(_SECRET.search(said))
        found.append(said)
    return found


def _without_user(address: str) -> str:
    """Blank what stands before an `@` in an address: it may be a user with a password."""
    return _USER.sub(rf"\1{BLANKED}@", address)


def cpu(text: str) -> Facts:
    """Read /proc/cpuinfo."""
    blocks = map(_members, re.split(r"\n\s*\n", text))
    processors = [block for block in blocks if "processor" in block]
    first = processors[0] if processors else {}
    placed = [each for each in processors if "physical id" in each]
    return known(
        logical=len(processors) or None,
        sockets=len({each["physical id"] for each in placed}) or None,
        cores=len({(each["physical id"], each.get("core id")) for each in placed}) or None,
        model=short(first.get("model name", "")),
        vendor=short(first.get("vendor_id", "") or first.get("CPU implementer", "")),
        microcode=short(first.get("microcode", "")),
        flags=words(first.get("flags", "") or first.get("Features", ""))[:_MOST_WORDS],
    )


_MEMORY: Final = {
    "MemTotal": "total_bytes",
    "MemFree": "free_bytes",
    "MemAvailable": "available_bytes",
    "SwapTotal": "swap_total_bytes",
    "SwapFree": "swap_free_bytes",
    "Hugepagesize": "huge_page_bytes",
    "HugePages_Total": "huge_pages",
    "HugePages_Free": "huge_pages_free",
}


def memory(text: str) -> Facts:
    """Read /proc/meminfo."""
    found = {}
    for name, value in _members(text).items():
        if name in _MEMORY:
            number, *unit = value.split() or [""]
            found[_MEMORY[name]] = kibibytes(number) if unit == ["kB"] else natural(number)
    return known(**found)


def swaps(text: str) -> list[Facts]:
    """Read /proc/swaps."""
    found = []
    for line in text.splitlines()[1 : _MOST + 1]:
        match line.split():
            case [path, kind, size, _, *rest]:
                found.append(
                    known(
                        path=short(path),
                        type=short(kind),
                        size_bytes=kibibytes(size),
                        priority=whole(rest[0]) if rest else None,
                    )
                )
    return found


def modules(text: str) -> list[str]:
    """Read /proc/modules: the names, sorted."""
    return _column(text, 0)


def filesystems(text: str) -> list[str]:
    """Read /proc/filesystems: the types that the kernel can mount now, sorted."""
    return _column(text, -1)


def _column(text: str, at: int) -> list[str]:
    rows = (line.split() for line in text.splitlines())
    return words(" ".join(row[at] for row in rows if row))[:_MOST_WORDS]


def pressure(text: str) -> Facts:
    """Read a file of /proc/pressure: shares of time in percent, totals in seconds."""
    found: Facts = {}
    for line in text.splitlines():
        kind, *pairs = line.split() or [""]
        if kind not in ("some", "full"):
            continue
        values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        total = decimal(values.get("total", ""))
        found[kind] = known(
            avg10_percent=decimal(values.get("avg10", "")),
            avg60_percent=decimal(values.get("avg60", "")),
            avg300_percent=decimal(values.get("avg300", "")),
            total_seconds=None if total is None else total / 1_000_000,
        )
    return known(**found)


def load(text: str) -> Facts:
    """Read /proc/loadavg."""
    return known(
        **dict(zip(("load1", "load5", "load15"), map(decimal, text.split()), strict=False))
    )


def boot_time(text: str) -> int | None:
    """Read the boot time, in Unix seconds, out of /proc/stat."""
    found = re.search(r"^btime ([0-9]{1,12})$", text, re.MULTILINE)
    return int(found[1]) if found else None


_PLATFORMS: Final = {
    "amazon ec2": "amazon-ec2",
    "google compute engine": "google-compute-engine",
    "openstack": "openstack",
    "vmware": "vmware",
    "virtualbox": "virtualbox",
    "innotek": "virtualbox",
    "microsoft corporation virtual machine": "hyper-v",
    "nutanix": "nutanix",
    "alibaba": "alibaba-cloud",
    "digitalocean": "digitalocean",
    "hetzner": "hetzner-cloud",
    "xen": "xen",
    "qemu": "qemu",
    "kvm": "kvm",
}


def virtualisation(firmware: Facts, flags: list[str], hypervisor: str) -> str | None:
    """Name the platform that the firmware, the hypervisor or the processor says; else nothing."""
    said = f"{firmware.get('system_vendor', '')} {firmware.get('product_name', '')}".lower()
    for word, name in _PLATFORMS.items():
        if word in said:
            return name
    return short(hypervisor) or ("unknown hypervisor" if "hypervisor" in flags else None)


_ESCAPED = re.compile(r"\\([0-3][0-7]{2})")
_SECRET_OPTION = re.compile(r"^(user(name)?|pass(word)?|secret|key|token|cred)")
_OF_CONTAINERS = re.compile(
    r"/kubelet/pods/|/kubelet/plugins/|/run/(?:containerd|crio|netns|docker)/|"
    r"/containers/storage/|/docker/overlay2/|/containerd/"
)


def mounts(text: str) -> tuple[list[Facts], int]:
    """Read /proc/mounts: the host's own mounts, and how many there are of Pods and containers."""
    found: list[Facts] = []
    others = 0
    for line in text.splitlines():
        match line.split(" "):
            case [device, path, kind, options, *_]:
                at = _unescaped(path)
                if _OF_CONTAINERS.search(at):
                    others += 1
                elif len(found) < _MOST:
                    found.append(
                        known(
                            path=short(at),
                            device=short(_without_user(_unescaped(device))),
                            type=short(kind),
                            options=_mount_options(options),
                        )
                    )
    return found, others


def _unescaped(text: str) -> str:
    """Undo the escapes: three octal digits, which stand for bytes."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)


def _mount_options(text: str) -> list[str]:
    said = []
    for option in text.split(",")[:_MOST]:
        name, equals, _ = option.partition("=")
        blank = equals and _SECRET_OPTION.match(name)
        said.append(short(f"{name}={BLANKED}" if blank else option))
    return [each for each in said if each]


def cgroup_version(found: list[Facts]) -> int | None:
    """Return 2 where the unified hierarchy stands at /sys/fs/cgroup, 1 where another does."""
    kinds = {each.get("path"): each.get("type") for each in found}
    if kinds.get("/sys/fs/cgroup") == "cgroup2":
        return 2
    return 1 if "cgroup" in kinds.values() else None


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
                found.append(
                    known(
                        destination=f"{to}/{int(net).bit_count()}",
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


def _ipv4(text: str) -> IPv4Address | None:
    """Read an address as the kernel writes it: hexadecimal, in the order of its memory."""
    number = hexadecimal(text) if len(text) == 8 else None
    return None if number is None else IPv4Address(number.to_bytes(4, "little"))


def _ipv6(text: str) -> IPv6Address | None:
    number = hexadecimal(text) if len(text) == 32 else None
    return None if number is None else IPv6Address(number)


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
