"""Which Pod Security level the Pods of definitions need, and for what.

The Pod Security Standards of Kubernetes 1.34: `restricted` unless something needs `baseline` or
`privileged`. The containers that are added to a plugin's Pod are restricted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal

from reporter.common.objects import Object, View, items, section, text
from reporter.run.definition import Definition

Level = Literal["restricted", "baseline", "privileged"]

_RANKS: Final[dict[Level, int]] = {"restricted": 0, "baseline": 1, "privileged": 2}
_CAPABILITIES: Final = {
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
}
_SYSCTLS: Final = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.ping_group_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
}
_SELINUX: Final = {
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
}
_VOLUMES: Final = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"


def pod_security(definitions: Sequence[Definition]) -> tuple[Level, tuple[str, ...]]:
    """Return the level that they need together, and for each that needs more why it does."""
    level: Level = "restricted"
    reasons = []
    for definition in definitions:
        own, why = needed(definition.template)
        if own != "restricted":
            reasons.append(f"{definition.name} needs {own}: {', '.join(why)}")
        level = max(level, own, key=_RANKS.__getitem__)
    return level, tuple(reasons)


def needed(template: Object) -> tuple[Level, tuple[str, ...]]:
    """Return the level that a Pod template needs, and the fields that need it, each once."""
    spec = section(template, "spec")
    containers = [*items(spec, "initContainers"), *items(spec, "containers")]
    not_baseline = list(dict.fromkeys(_needs_privileged(template, spec, containers)))
    if not_baseline:
        return "privileged", tuple(not_baseline)
    not_restricted = list(dict.fromkeys(_needs_baseline(spec, containers)))
    return ("baseline", tuple(not_restricted)) if not_restricted else ("restricted", ())


def _needs_privileged(
    template: Object, spec: Object, containers: Sequence[Object]
) -> Iterator[str]:
    yield from (name for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name))
    if any("hostPath" in volume for volume in items(spec, "volumes")):
        yield "hostPath"
    annotations = View(template).annotations
    if any(
        name.startswith(_APPARMOR) and not _apparmor(str(value))
        for name, value in annotations.items()
    ):
        yield "appArmorProfile"
    sysctls = items(section(spec, "securityContext"), "sysctls")
    if any(text(sysctl, "name") not in _SYSCTLS for sysctl in sysctls):
        yield "sysctls"
    for holder in (spec, *containers):
        yield from _context(section(holder, "securityContext"))
    for container in containers:
        if any(port.get("hostPort") for port in items(container, "ports")):
            yield "hostPort"
        yield from _hosts(container)


def _context(context: Object) -> Iterator[str]:
    if context.get("privileged"):
        yield "privileged"
    if section(context, "windowsOptions").get("hostProcess"):
        yield "hostProcess"
    if not set(_capabilities(context, "add")) <= _CAPABILITIES:
        yield "capabilities"
    if section(context, "seccompProfile").get("type") == "Unconfined":
        yield "seccompProfile"
    if section(context, "appArmorProfile").get("type") == "Unconfined":
        yield "appArmorProfile"
    selinux = section(context, "seLinuxOptions")
    if text(selinux, "type") not in _SELINUX or selinux.get("user") or selinux.get("role"):
        yield "seLinuxOptions"
    if context.get("procMount", "Default") != "Default":
        yield "procMount"


def _hosts(container: Object) -> Iterator[str]:
    lifecycle = section(container, "lifecycle")
    handlers = [
        *(section(container, name) for name in ("livenessProbe", "readinessProbe", "startupProbe")),
        *(section(lifecycle, name) for name in ("postStart", "preStop")),
    ]
    if any(
        section(handler, kind).get("host")
        for handler in handlers
        for kind in ("httpGet", "tcpSocket")
    ):
        yield "host of a probe or hook"


def _needs_baseline(spec: Object, containers: Iterable[Object]) -> Iterator[str]:
    whole = section(spec, "securityContext")
    if any(not _VOLUMES & volume.keys() for volume in items(spec, "volumes")):
        yield "volumes"
    if whole.get("runAsUser") == 0:
        yield "runAsUser"
    for container in containers:
        context = section(container, "securityContext")
        if context.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        dropped, added = (set(_capabilities(context, way)) for way in ("drop", "add"))
        if "ALL" not in dropped or not added <= {"NET_BIND_SERVICE"}:
            yield "capabilities"
        if context.get("runAsNonRoot", whole.get("runAsNonRoot")) is not True:
            yield "runAsNonRoot"
        if context.get("runAsUser") == 0:
            yield "runAsUser"
        profile = section(context, "seccompProfile") or section(whole, "seccompProfile")
        if not profile:
            yield "seccompProfile"


def _capabilities(context: Object, way: str) -> list[str]:
    found = section(context, "capabilities").get(way)
    return [str(name) for name in found] if isinstance(found, list) else []


def _apparmor(profile: str) -> bool:
    return profile in {"", "runtime/default"} or profile.startswith("localhost/")
