"""The operating system's files: release, kernel, processors, memory, modules, load."""

import re
from collections.abc import Iterator
from typing import Any, Final

from reporter.collect.host.numbers import decimal, known, natural, short, whole, words

Facts = dict[str, Any]

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
_SECRET = re.compile(
    r"passw|pass$|secret|token|credential|(^|[^a-z])(key|psk|auth)$", re.IGNORECASE
)
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_USER = re.compile(r"(//|^[\w.]+=iscsi:)[^/]*@")
_QUERY = re.compile(r"\?.*", re.DOTALL)
BLANKED: Final = "(blanked)"
_MOST: Final = 4_096  # entries of a list


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


def arguments(line: str) -> list[str]:
    """Return the words of a command line; values of what may be a credential are blanked.

    So are users and queries of addresses. A word may name more than one thing:
    `systemd.setenv=NAME=VALUE`.
    """
    given = line.split("\0") if "\0" in line else _WORD.findall(line)
    found: list[str] = []
    blank_next = False
    for word in given[:_MOST]:
        # Before it is cut short: what tells a password may stand behind it.
        said = short(_QUERY.sub(f"?{BLANKED}", without_user(word)))
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


def without_user(address: str) -> str:
    """Blank what stands before an `@` in an address: it may be a user with a password."""
    return _USER.sub(rf"\1{BLANKED}@", address)


def cpu(text: str) -> Facts:
    """Read /proc/cpuinfo."""
    logical, sockets, cores = 0, set(), set()
    first: dict[str, str] = {}
    for block in _blocks(text):
        if "processor" not in block:
            continue
        logical += 1
        first = first or block
        if "physical id" in block:
            sockets.add(block["physical id"])
            cores.add((block["physical id"], block.get("core id", "")))
    return known(
        logical=logical or None,
        sockets=len(sockets) or None,
        cores=len(cores) or None,
        model=short(first.get("model name", "")),
        vendor=short(first.get("vendor_id", "") or first.get("CPU implementer", "")),
        microcode=short(first.get("microcode", "")),
        flags=words(first.get("flags", "") or first.get("Features", ""))[:_MOST],
    )


def _blocks(text: str) -> Iterator[dict[str, str]]:
    block: dict[str, str] = {}
    for line in (*text.splitlines(), ""):
        name, colon, value = line.partition(":")
        if colon:
            block[name.strip()] = value.strip()
        elif block and not name.strip():
            yield block
            block = {}


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
    found: Facts = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        number, *unit = value.split() or [""]
        amount = natural(number)
        if name in _MEMORY and amount is not None:
            found[_MEMORY[name]] = min(amount, 2**53) * 1024 if unit == ["kB"] else amount
    return found


def swaps(text: str) -> list[Facts]:
    """Read /proc/swaps."""
    found = []
    for line in text.splitlines()[1 : _MOST + 1]:
        match line.split():
            case [path, kind, size, _, *rest]:
                kib = natural(size)
                found.append(
                    known(
                        path=short(path),
                        type=short(kind),
                        size_bytes=None if kib is None else min(kib, 2**53) * 1024,
                        priority=whole(rest[0]) if rest else None,
                    )
                )
    return found


def modules(text: str) -> list[str]:
    """Read /proc/modules: the names, sorted."""
    names = {short(line.split()[0]) for line in text.splitlines() if line.split()}
    return sorted(each for each in names if each)[:_MOST]


def filesystems(text: str) -> list[str]:
    """Read /proc/filesystems: the types that the kernel can mount now, sorted."""
    return words(" ".join(line.split()[-1] for line in text.splitlines() if line.split()))[:_MOST]


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
    one, five, fifteen, *_ = [*map(decimal, text.split()[:3]), None, None, None]
    return known(load1=one, load5=five, load15=fifteen)


def boot_time(text: str) -> int | None:
    """Read the boot time, in Unix seconds, out of /proc/stat."""
    found = re.search(r"^btime ([0-9]{1,12})$", text, re.MULTILINE)
    return int(found[1]) if found else None


def virtualisation(vendor: str, product: str, flags: list[str], hypervisor: str) -> str | None:
    """Name the platform that the firmware, the hypervisor or the processor says; else nothing."""
    told = f"{vendor} {product}".lower()
    for word, name in _PLATFORMS.items():
        if word in told:
            return name
    return short(hypervisor) or ("unknown hypervisor" if "hypervisor" in flags else None)


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
