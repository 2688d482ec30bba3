"""Programs that matter to a node, by its processes: the kubelet, the runtime, who keeps the time.

Nothing is executed, so there are no versions but those that a command line has.
"""

from typing import Any, Final

from reporter.collect.host.numbers import known
from reporter.collect.host.sources import Sources
from reporter.collect.host.system import arguments

Facts = dict[str, Any]

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
_MOST: Final = 32_768  # processes that are looked at


def programs(sources: Sources, names: dict[str, str]) -> Facts:
    """Return the members `kubelet`, `container_runtimes` and `configuration_files`.

    `names` are process ids by name.
    """
    kubelet = names.get("kubelet")
    flags = sources.parsed(f"proc/{kubelet}/cmdline", arguments) if kubelet else None
    return known(
        kubelet=None if kubelet is None else {"running": True, **known(flags=(flags or [])[1:])},
        container_runtimes=sorted({_RUNTIMES[each] for each in names if each in _RUNTIMES}),
        configuration_files=[f"/{each}" for each in _CONFIGURATION if sources.exists(each)],
    )


def time_sources(names: dict[str, str]) -> Facts:
    """Return which programs keep the clock."""
    return known(sources=sorted({_CLOCKS[each] for each in names if each in _CLOCKS}))


def processes(sources: Sources) -> dict[str, str]:
    """Return the process ids by name, of several of a name the lowest."""
    found: dict[str, str] = {}
    ids = sorted((each for each in sources.names("proc") if each.isdigit()), key=int)
    for each in ids[:_MOST]:
        try:
            name = sources.below.read(f"proc/{each}/comm", 64).decode(errors="replace").strip()
        except OSError:
            continue  # it has ended meanwhile
        found.setdefault(name, each)
    return found
