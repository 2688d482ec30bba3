"""What a node leaves on a Linux host and how each of it goes away; only things by exact name."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
KILL_SECONDS = 10.0
# Ten times the default, in control groups of version 1 and 2.
CPU_SHARE = {"cpu.shares": "10240", "cpu.weight": "1000"}


def make_cgroup(name: str) -> None:
    """Make the group under which the kubelet puts its Pods, in each hierarchy of version 1 or 2."""
    if (CGROUPS / "cgroup.controllers").exists():
        wanted = {"cpu", "cpuset", "memory", "pids"}
        there = wanted & set((CGROUPS / "cgroup.controllers").read_text().split())
        control = " ".join(f"+{controller}" for controller in sorted(there))
        (CGROUPS / "cgroup.subtree_control").write_text(control)
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        # All Pods together would get as much of the processors as one busy process of the host:
        # a container that starts beside a few of those would take many seconds.
        for file, share in CPU_SHARE.items():
            if (hierarchy / name / file).exists():
                (hierarchy / name / file).write_text(share)


def processes(cgroup: str) -> set[int]:
    """The process ids in the group and below."""
    pids: set[int] = set()
    for group in _groups(cgroup):
        # A group may go while we read.
        with suppress(OSError):
            pids.update(map(int, (group / "cgroup.procs").read_text().split()))
    return pids


def kill_cgroup(name: str) -> None:
    """Kill every process in the group and below and wait for their end."""
    end = time.monotonic() + KILL_SECONDS
    while time.monotonic() < end:
        if not (pids := processes(name)):
            return
        _kill(pids)


def remove_cgroup(name: str) -> None:
    """Remove the group with all groups below; the kernel needs a moment after the last process."""
    end = time.monotonic() + KILL_SECONDS
    while (groups := _groups(name)) and time.monotonic() < end:
        for group in groups:
            with suppress(OSError):
                group.rmdir()
        time.sleep(0.02)


def kill_shims(socket: Path) -> None:
    """Kill the shims whose arguments name the containerd at `socket`."""
    pids = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"containerd-shim" in words[0] and os.fsencode(socket) in words:
                pids.add(int(process.name))
    _kill(pids)


def remove_shim_sockets(state: Path) -> None:
    """Remove the sockets of killed shims; they lie in a fixed place of the host."""
    for address in state.glob("containerd/io.containerd.runtime.v2.task/*/*/address"):
        Path(address.read_text().removeprefix("unix://")).unlink(missing_ok=True)


def mounts_below(*folders: Path) -> list[str]:
    """Mount points below the folders, the innermost and newest first."""
    points = [
        line.split()[4].encode().decode("unicode_escape")
        for line in Path("/proc/self/mountinfo").read_text().splitlines()
    ]
    return [p for p in reversed(points) if any(Path(p).is_relative_to(f) for f in folders)]


def unmount_below(*folders: Path) -> None:
    """Unmount all below the folders; what is still in use goes when its last user ends."""
    for point in mounts_below(*folders):
        subprocess.run(["umount", "--lazy", point], check=True)


def delete_link(name: str) -> None:
    """Delete a network interface if it is there."""
    if Path("/sys/class/net", name).exists():
        subprocess.run(["ip", "link", "delete", name], check=True)


def remove_log_links(pod_logs: Path) -> None:
    """Remove the links the kubelet makes in a fixed place of the host for its containers' logs."""
    for link in Path("/var/log/containers").glob("*.log"):
        if link.is_symlink() and link.readlink().is_relative_to(pod_logs):
            link.unlink()


def _hierarchies() -> list[Path]:
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return sorted(place for place in CGROUPS.iterdir() if place.is_dir() and not place.is_symlink())


def _groups(name: str) -> list[Path]:
    """All groups below, the innermost first."""
    found = []
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            found.append(Path(folder))
    return found


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + KILL_SECONDS
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < end:
        time.sleep(0.02)
