"""The gatherer `host`: what a machine is, as `facts.json` of the published schema `facts.v1`.

Pure Python: only files below `GATHER_HOST_ROOT` are read, nothing that lies there is executed, and
what cannot be known is left out.
"""

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from reporter import __version__
from reporter.collect.host import parsers
from reporter.collect.host.parsers import (
    LARGEST,
    Facts,
    count,
    decimal,
    known,
    natural,
    short,
    truth,
    words,
)
from reporter.collect.rooted import Sources
from reporter.common.objects import stamp

FILE: Final = "facts.json"
COMPLETE, PARTIAL = 0, 1
_SYSCTLS: Final = (
    "fs.file-max",
    "fs.inotify.max_user_instances",
    "fs.inotify.max_user_watches",
    "fs.nr_open",
    "kernel.keys.root_maxkeys",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.pid_max",
    "kernel.threads-max",
    "kernel.unprivileged_bpf_disabled",
    "kernel.yama.ptrace_scope",
    "vm.max_map_count",
    "vm.min_free_kbytes",
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "vm.swappiness",
)
_NETWORK_SYSCTLS: Final = (
    "net.bridge.bridge-nf-call-ip6tables",
    "net.bridge.bridge-nf-call-iptables",
    "net.core.somaxconn",
    "net.ipv4.conf.all.forwarding",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.netfilter.nf_conntrack_max",
)
_CGROUPS: Final = ("kubepods", "kubepods.slice", "system.slice", "runtime.slice")
_BOOT_ID: Final = "proc/sys/kernel/random/boot_id"
_RUNTIMES: Final = {
    "containerd": "containerd",
    "crio": "cri-o",
    "dockerd": "docker",
    "cri-dockerd": "cri-dockerd",
    "k3s-server": "k3s",
    "k3s-agent": "k3s",
}
_CLOCKS: Final = {
    "chronyd": "chrony",
    "ntpd": "ntpd",
    "ntpd-rs": "ntpd-rs",
    "systemd-timesyn": "systemd-timesyncd",
    "ptp4l": "ptp4l",
}
_CONFIGURATION: Final = (
    "etc/containerd/config.toml",
    "etc/crio/crio.conf",
    "etc/docker/daemon.json",
    "etc/kubernetes/kubelet.conf",
    "etc/kubernetes/kubelet/config.json",
    "etc/rancher/k3s/config.yaml",
)
_MOST_PROCESSES: Final = 32_768
_MOST_DEVICES: Final = 512  # of a kind
_SECTOR: Final = 512  # bytes, in which the kernel counts whatever the disk has
_FIRMWARE: Final = (
    "product_name",
    "product_version",
    "board_name",
    "bios_vendor",
    "bios_version",
    "bios_date",
)


def main(environ: Mapping[str, str]) -> int:
    """Write the facts; return 0 if they are complete, 1 if something could not be read."""
    root = Path(environ.get("GATHER_HOST_ROOT") or "/")
    found = facts(root, environ.get("NODE_NAME", ""))
    document = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1).encode()
    (Path(environ.get("GATHER_OUT") or ".") / FILE).write_bytes(document + b"\n")
    for problem in found.get("problems", ()):
        print(f"{problem['path']}: {problem['error']}", file=sys.stderr)
    return PARTIAL if found.get("problems") else COMPLETE


def facts(root: Path, node: str) -> Facts:
    """Return what is known of the machine whose files are below `root`. Never raises OSError."""
    sources = Sources(root)
    read = sources.parsed
    live = _is_this_machine(sources)
    mounted, of_containers = read("proc/1/mounts", parsers.mounts, needed=True) or ([], 0)
    processor = read("proc/cpuinfo", parsers.cpu, needed=True) or {}
    firmware = _firmware(sources)
    processes = _processes(sources)
    found = {
        "api_version": "v1",
        "collected_at": stamp(time.time()),
        "collector": f"status-reporter {__version__}",
        **known(
            node=short(node),
            hostname=read("etc/hostname", short),
            machine_id=read("etc/machine-id", short),
            os=_os(sources),
            kernel=_kernel(sources, live=live),
            boot=_boot(sources),
            cpu=_cpu(sources, processor),
            memory=read("proc/meminfo", parsers.memory, needed=True),
            swaps=read("proc/swaps", parsers.swaps),
            disks=_disks(sources),
            file_systems=_file_systems(sources) if live else None,
            mounts=mounted,
            container_mounts=of_containers or None,
            network=_network(sources),
            cgroup=_cgroup(sources, mounted),
            kubelet=_kubelet(sources, processes.get("kubelet")),
            container_runtimes=_names(_RUNTIMES, processes),
            configuration_files=[f"/{each}" for each in _CONFIGURATION if sources.exists(each)],
            sysctls=_sysctls(sources, own_network=live and _own_network(root)),
            modules=read("proc/modules", parsers.modules),
            security=_security(sources),
            load=read("proc/loadavg", parsers.load),
            pressure=known(
                **{
                    kind: read(f"proc/pressure/{kind}", parsers.pressure)
                    for kind in ("cpu", "io", "memory")
                }
            ),
            time=known(
                zone=_zone(sources),
                clock_source=read(
                    "sys/devices/system/clocksource/clocksource0/current_clocksource", short
                ),
                **(_clock() if live else {}),
                sources=_names(_CLOCKS, processes),
            ),
            firmware=firmware,
            virtualisation=parsers.virtualisation(
                firmware,
                processor.get("flags", []),
                read("sys/hypervisor/type", str) or "",
            ),
            pci_devices=_pci(sources),
        ),
    }
    return {**found, **known(problems=sources.problems)}


def _is_this_machine(sources: Sources) -> bool:
    """Tell the running machine from a copy of its files, by the id of the boot."""
    try:
        ours = Path("/", _BOOT_ID).read_text()
    except OSError:
        return False
    return sources.parsed(_BOOT_ID, str) == ours


def _processes(sources: Sources) -> dict[str, str]:
    """Return the process ids by name, of several of a name the lowest."""
    found: dict[str, str] = {}
    ids = sorted((each for each in sources.names("proc") if each.isdigit()), key=int)
    for each in ids[:_MOST_PROCESSES]:
        try:
            name = sources.files.read(f"proc/{each}/comm", 64).decode(errors="replace").strip()
        except OSError:
            continue  # it has ended meanwhile
        found.setdefault(name, each)
    return found


def _names(programs: Mapping[str, str], processes: Mapping[str, str]) -> list[str]:
    return sorted({name for process, name in programs.items() if process in processes})


def _os(sources: Sources) -> Facts | None:
    for path in ("etc/os-release", "usr/lib/os-release"):
        if found := sources.parsed(path, parsers.os_release):
            return found
    return sources.parsed("usr/lib/os-release", parsers.os_release, needed=True)


def _kernel(sources: Sources, *, live: bool) -> Facts:
    read, at = sources.parsed, "proc/sys/kernel"
    return known(
        release=read(f"{at}/osrelease", short, needed=True),
        version=read(f"{at}/version", short),
        architecture=read(f"{at}/arch", short) or (os.uname().machine if live else None),
        command_line=read("proc/cmdline", parsers.arguments),
        tainted=read(f"{at}/tainted", natural),
        file_systems=read("proc/filesystems", parsers.filesystems),
    )


def _boot(sources: Sources) -> Facts:
    at = sources.parsed("proc/stat", parsers.boot_time)
    return known(
        id=sources.parsed(_BOOT_ID, short),
        at=None if at is None else stamp(at),
        uptime_seconds=sources.parsed("proc/uptime", lambda text: decimal(text.partition(" ")[0])),
    )


def _cpu(sources: Sources, processor: Facts) -> Facts:
    home = "sys/devices/system"
    weak = f"{home}/cpu/vulnerabilities"
    return known(
        **processor,
        online=sources.parsed(f"{home}/cpu/online", count),
        numa_nodes=sources.parsed(f"{home}/node/online", count),
        vulnerabilities=known(
            **{name: sources.parsed(f"{weak}/{name}", short) for name in sources.names(weak)}
        ),
    )


def _file_systems(sources: Sources) -> list[Facts]:
    """Return the space of those that can be seen; a copy of files is on a disk of its own."""
    return [
        known(
            path=f"/{path}",
            size_bytes=space.f_blocks * space.f_frsize,
            available_bytes=space.f_bavail * space.f_frsize,
            inodes=space.f_files or None,
            inodes_available=space.f_favail if space.f_files else None,
        )
        for path in ("etc", "var/log")
        if (space := sources.space(path)) is not None
    ]


def _network(sources: Sources) -> Facts:
    at = "proc/1/net"
    interfaces = _interfaces(sources)
    names = {each.get("name") for each in interfaces}

    def own(path: str, parse: Callable[[str], list[Facts]]) -> list[Facts]:
        # What is left out with its interface leads into a Pod.
        found = sources.parsed(path, parse) or []
        return [each for each in found if not names or each.get("interface") in names]

    return known(
        interfaces=interfaces,
        ipv4_addresses=sources.parsed(f"{at}/fib_trie", parsers.ipv4_addresses, needed=True),
        ipv6_addresses=own(f"{at}/if_inet6", parsers.ipv6_addresses),
        ipv4_routes=own(f"{at}/route", parsers.ipv4_routes),
        ipv6_routes=own(f"{at}/ipv6_route", parsers.ipv6_routes),
        resolver=sources.parsed("etc/resolv.conf", parsers.resolver),
    )


def _cgroup(sources: Sources, mounted: list[Facts]) -> Facts:
    read, home = sources.parsed, "sys/fs/cgroup"
    limits = {
        f"/{group}": known(
            cpu_max=read(f"{home}/{group}/cpu.max", short),
            memory_max_bytes=read(f"{home}/{group}/memory.max", natural),
            pids_max=read(f"{home}/{group}/pids.max", natural),
        )
        for group in _CGROUPS
    }
    return known(
        version=parsers.cgroup_version(mounted),
        controllers=read(f"{home}/cgroup.controllers", words),
        limits=known(**limits),
    )


def _kubelet(sources: Sources, process: str | None) -> Facts | None:
    """There are no versions but those that a command line has: nothing is executed."""
    if process is None:
        return None
    flags = sources.parsed(f"proc/{process}/cmdline", parsers.arguments) or []
    return {"running": True, **known(flags=flags[1:])}


def _sysctls(sources: Sources, *, own_network: bool) -> Facts:
    """Return those of the machine; the kernel shows everybody those of their own network."""
    found = {}
    for name in (*_SYSCTLS, *(_NETWORK_SYSCTLS if own_network else ())):
        if said := sources.parsed(f"proc/sys/{name.replace('.', '/')}", short):
            found[name] = " ".join(said.split())
    return found


def _own_network(root: Path) -> bool:
    """Return whether we are in the network of the machine's first process."""
    try:
        return (root / "proc/1/ns/net").samefile("/proc/self/ns/net")
    except OSError:
        return False


def _security(sources: Sources) -> Facts:
    read, at = sources.parsed, "sys/kernel/security"
    return known(
        modules=read(f"{at}/lsm", lambda text: words(text.replace(",", " "))),
        selinux_enforcing=read("sys/fs/selinux/enforce", truth),
        apparmor_enabled=read("sys/module/apparmor/parameters/enabled", truth),
        seccomp_actions=read("proc/sys/kernel/seccomp/actions_avail", words),
        lockdown=read(f"{at}/lockdown", short),
        fips_enabled=read("proc/sys/crypto/fips_enabled", truth),
    )


def _zone(sources: Sources) -> str | None:
    zone = sources.target("etc/localtime") or ""
    return short(zone.partition("/zoneinfo/")[2]) or sources.parsed("etc/timezone", short)


def _disks(sources: Sources) -> list[Facts]:
    """Return the block devices that have a size."""
    read, found = sources.parsed, []
    for name in sources.names("sys/block")[:_MOST_DEVICES]:
        at = f"sys/block/{name}"
        if not (sectors := read(f"{at}/size", natural)):
            continue
        schedulers = read(f"{at}/queue/scheduler", str) or ""
        found.append(
            known(
                name=short(name),
                size_bytes=min(sectors * _SECTOR, LARGEST),
                model=read(f"{at}/device/model", short),
                vendor=read(f"{at}/device/vendor", short),
                rotational=read(f"{at}/queue/rotational", truth),
                removable=read(f"{at}/removable", truth),
                read_only=read(f"{at}/ro", truth),
                logical_block_bytes=read(f"{at}/queue/logical_block_size", natural),
                physical_block_bytes=read(f"{at}/queue/physical_block_size", natural),
                scheduler=short(schedulers.partition("[")[2].partition("]")[0]),
                partitions=[
                    known(
                        name=short(part),
                        size_bytes=(read(f"{at}/{part}/size", natural) or 0) * _SECTOR,
                    )
                    for part in sources.names(at)
                    if part.startswith(name) and sources.exists(f"{at}/{part}/partition")
                ],
            )
        )
    return found


def _interfaces(sources: Sources) -> list[Facts]:
    """Return the network interfaces of the host, without the ends of its containers' cables."""
    read = sources.parsed
    found: list[Facts] = []
    for name in sources.names("sys/class/net", needed=True):
        at = f"sys/class/net/{name}"
        place = sources.target(at)
        if place is None or len(found) == _MOST_DEVICES:
            continue
        virtual = "/devices/virtual/" in f"/{place}"
        own, peer = (read(f"{at}/{each}", natural) for each in ("ifindex", "iflink"))
        # The other end is in another network namespace: a number that says nothing here. A VLAN or
        # a tunnel has a type, and so more lines here.
        cable = f"INTERFACE={name}\nIFINDEX={own}\n"
        if virtual and own != peer and read(f"{at}/uevent", str) == cable:
            continue
        found.append(
            known(
                name=short(name),
                mac_address=read(f"{at}/address", short),
                state=read(f"{at}/operstate", short),
                mtu_bytes=read(f"{at}/mtu", natural),
                speed_mbit_per_second=read(f"{at}/speed", natural) or None,
                virtual=virtual,
                driver=_last(sources.target(f"{at}/device/driver")),
                master=_last(sources.target(f"{at}/master")),
            )
        )
    return found


def _pci(sources: Sources) -> list[Facts]:
    """Return the devices of the PCI bus, by the numbers of their makers."""
    home, kinds = "sys/bus/pci/devices", ("vendor", "device", "class")
    return [
        known(
            address=short(name),
            **{kind: sources.parsed(f"{home}/{name}/{kind}", short) for kind in kinds},
            driver=_last(sources.target(f"{home}/{name}/driver")),
        )
        for name in sources.names(home)[:_MOST_DEVICES]
    ]


def _firmware(sources: Sources) -> Facts:
    """Return what the firmware says about the machine, without serial numbers."""
    read, at = sources.parsed, "sys/class/dmi/id"
    return known(
        kind="uefi" if sources.exists("sys/firmware/efi") else None,
        system_vendor=read(f"{at}/sys_vendor", short),
        **{name: read(f"{at}/{name}", short) for name in _FIRMWARE},
    )


def _last(path: str | None) -> str | None:
    return None if path is None else short(path.rpartition("/")[2])


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2); the members behind are not read."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


_UNSYNCHRONISED: Final = 0x0040
_NANOSECONDS: Final = 0x2000
_CLOCK_ERROR: Final = 5


def _clock() -> Facts:
    """Return whether the kernel says that somebody keeps its clock right, and how well."""
    try:
        ask = ctypes.CDLL(None).adjtimex
    except (OSError, AttributeError):
        return {}
    timex = _Timex()
    said = ask(ctypes.byref(timex))
    if said < 0:
        return {}
    if said == _CLOCK_ERROR or timex.status & _UNSYNCHRONISED:
        # The other numbers are those of a clock that nobody keeps.
        return {"synchronised": False}
    return {
        "synchronised": True,
        "offset_seconds": timex.offset / (1e9 if timex.status & _NANOSECONDS else 1e6),
        "estimated_error_seconds": timex.esterror / 1e6,
        "maximum_error_seconds": timex.maxerror / 1e6,
    }


if __name__ == "__main__":
    sys.exit(main(os.environ))
