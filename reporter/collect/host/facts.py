"""The facts of a machine, section by section."""

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from reporter import __version__
from reporter.collect.host import clock, devices, mounts, network, programs, system
from reporter.collect.host.numbers import count, decimal, known, natural, short, truth, words
from reporter.collect.host.sources import Sources

Facts = dict[str, Any]

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


def facts(root: Path, node: str) -> Facts:
    """Return what is known of the machine whose files are below `root`. Never raises OSError."""
    sources = Sources(root)
    live = _is_this_machine(sources)
    mounted, of_containers = sources.parsed("proc/1/mounts", mounts.mounts, needed=True) or ([], 0)
    processor = sources.parsed("proc/cpuinfo", system.cpu, needed=True) or {}
    firmware = devices.firmware(sources)
    names = programs.processes(sources)
    found = {
        "api_version": "v1",
        "collected_at": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "collector": f"status-reporter {__version__}",
        **known(
            node=short(node),
            hostname=sources.parsed("etc/hostname", short),
            machine_id=sources.parsed("etc/machine-id", short),
            os=_os(sources),
            kernel=_kernel(sources, live=live),
            boot=_boot(sources),
            cpu=_cpu(sources, processor),
            memory=sources.parsed("proc/meminfo", system.memory, needed=True),
            swaps=sources.parsed("proc/swaps", system.swaps),
            disks=devices.disks(sources),
            file_systems=_file_systems(sources, live=live),
            mounts=mounted,
            container_mounts=of_containers or None,
            network=_network(sources),
            cgroup=_cgroup(sources, mounted),
            **programs.programs(sources, names),
            sysctls=_sysctls(sources, own_network=live and _own_network(root)),
            modules=sources.parsed("proc/modules", system.modules),
            security=_security(sources),
            load=sources.parsed("proc/loadavg", system.load),
            pressure=_pressure(sources),
            time=known(
                **_time(sources), **(clock.state() if live else {}), **programs.time_sources(names)
            ),
            firmware=firmware,
            virtualisation=system.virtualisation(
                firmware.get("system_vendor", ""),
                firmware.get("product_name", ""),
                processor.get("flags", []),
                sources.text("sys/hypervisor/type") or "",
            ),
            pci_devices=devices.pci(sources),
        ),
    }
    return {**found, **known(problems=sources.problems)}


def _is_this_machine(sources: Sources) -> bool:
    """Tell the running machine from a copy of its files, by the id of the boot."""
    try:
        ours = Path("/", _BOOT_ID).read_text()
    except OSError:
        return False
    return sources.text(_BOOT_ID) == ours


def _os(sources: Sources) -> Facts | None:
    for path in ("etc/os-release", "usr/lib/os-release"):
        if found := sources.parsed(path, system.os_release):
            return found
    sources.text("usr/lib/os-release", needed=True)
    return None


def _kernel(sources: Sources, *, live: bool) -> Facts:
    return known(
        release=sources.parsed("proc/sys/kernel/osrelease", short, needed=True),
        version=sources.parsed("proc/sys/kernel/version", short),
        architecture=sources.parsed("proc/sys/kernel/arch", short)
        or (os.uname().machine if live else None),
        command_line=sources.parsed("proc/cmdline", system.arguments),
        tainted=sources.parsed("proc/sys/kernel/tainted", natural),
        file_systems=sources.parsed("proc/filesystems", system.filesystems),
    )


def _boot(sources: Sources) -> Facts:
    at = sources.parsed("proc/stat", system.boot_time)
    up = sources.parsed("proc/uptime", lambda text: decimal(text.partition(" ")[0]))
    return known(
        id=sources.parsed(_BOOT_ID, short),
        at=None if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        uptime_seconds=up,
    )


def _cpu(sources: Sources, processor: Facts) -> Facts:
    home = "sys/devices/system"
    weak = f"{home}/cpu/vulnerabilities"
    found = {name: sources.parsed(f"{weak}/{name}", short) for name in sources.names(weak)}
    return known(
        **processor,
        online=sources.parsed(f"{home}/cpu/online", count),
        numa_nodes=sources.parsed(f"{home}/node/online", count),
        vulnerabilities={name: said for name, said in found.items() if said},
    )


def _file_systems(sources: Sources, *, live: bool) -> list[Facts]:
    """Return the space of those that can be seen; a copy of files is on a disk of its own."""
    found = []
    for path in ("etc", "var/log") if live else ():
        if (space := sources.space(path)) is not None:
            found.append(
                known(
                    path=f"/{path}",
                    size_bytes=space.f_blocks * space.f_frsize,
                    available_bytes=space.f_bavail * space.f_frsize,
                    inodes=space.f_files or None,
                    inodes_available=space.f_favail if space.f_files else None,
                )
            )
    return found


def _network(sources: Sources) -> Facts:
    at = "proc/1/net"
    interfaces = devices.interfaces(sources)
    names = {each.get("name") for each in interfaces}

    def own(each: Facts) -> bool:
        # What is left out with its interface leads into a Pod.
        return not names or each.get("interface") in names

    def those(path: str, parse: Callable[[str], list[Facts]]) -> list[Facts]:
        return list(filter(own, sources.parsed(path, parse) or ()))

    return known(
        interfaces=interfaces,
        ipv4_addresses=sources.parsed(f"{at}/fib_trie", network.ipv4_addresses, needed=True),
        ipv6_addresses=those(f"{at}/if_inet6", network.ipv6_addresses),
        ipv4_routes=those(f"{at}/route", network.ipv4_routes),
        ipv6_routes=those(f"{at}/ipv6_route", network.ipv6_routes),
        resolver=sources.parsed("etc/resolv.conf", network.resolver),
    )


def _cgroup(sources: Sources, mounted: list[Facts]) -> Facts:
    limits = {}
    for group in _CGROUPS:
        at = f"sys/fs/cgroup/{group}"
        limits[f"/{group}"] = known(
            cpu_max=sources.parsed(f"{at}/cpu.max", short),
            memory_max_bytes=sources.parsed(f"{at}/memory.max", natural),
            pids_max=sources.parsed(f"{at}/pids.max", natural),
        )
    return known(
        version=mounts.cgroup_version(mounted),
        controllers=sources.parsed("sys/fs/cgroup/cgroup.controllers", words),
        limits={group: each for group, each in limits.items() if each},
    )


def _sysctls(sources: Sources, *, own_network: bool) -> dict[str, str]:
    """Return those of the machine; the kernel shows everybody those of their own network."""
    found = {}
    for name in (*_SYSCTLS, *(_NETWORK_SYSCTLS if own_network else ())):
        path = f"proc/sys/{name.replace('.', '/')}"
        if (said := sources.parsed(path, short)) is not None:
            found[name] = " ".join(said.split())
    return found


def _own_network(root: Path) -> bool:
    """Return whether we are in the network of the machine's first process."""
    try:
        return (root / "proc/1/ns/net").samefile("/proc/self/ns/net")
    except OSError:
        return False


def _security(sources: Sources) -> Facts:
    at = "sys/kernel/security"
    return known(
        modules=sources.parsed(f"{at}/lsm", lambda text: words(text.replace(",", " "))),
        selinux_enforcing=sources.parsed("sys/fs/selinux/enforce", truth),
        apparmor_enabled=sources.parsed("sys/module/apparmor/parameters/enabled", truth),
        seccomp_actions=sources.parsed("proc/sys/kernel/seccomp/actions_avail", words),
        lockdown=sources.parsed(f"{at}/lockdown", short),
        fips_enabled=sources.parsed("proc/sys/crypto/fips_enabled", truth),
    )


def _pressure(sources: Sources) -> Facts:
    return known(
        **{
            kind: sources.parsed(f"proc/pressure/{kind}", system.pressure)
            for kind in ("cpu", "io", "memory")
        }
    )


def _time(sources: Sources) -> Facts:
    zone = sources.target("etc/localtime") or ""
    return known(
        zone=short(zone.partition("/zoneinfo/")[2]) or sources.parsed("etc/timezone", short),
        clock_source=sources.parsed(
            "sys/devices/system/clocksource/clocksource0/current_clocksource", short
        ),
    )
