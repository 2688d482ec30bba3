"""Pod templates, each with one thing that Pod Security has a rule for: level and reasons."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

GOOD: Object = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def template(
    context: Object | None = None, *, annotations: Object | None = None, **pod: Any
) -> Object:
    """A template whose one container has a context; restricted unless something is given."""
    container = pod.pop("container", {})
    one = {"name": "main", "image": "busybox", "securityContext": {**GOOD, **(context or {})}}
    found: Object = {"spec": {"containers": [{**one, **container}], **pod}}
    return found | ({"metadata": {"annotations": annotations}} if annotations else {})


def without(*fields: str, **pod: Any) -> Object:
    """A restricted template whose container lacks fields of its context."""
    found = template(**pod)
    for field in fields:
        del found["spec"]["containers"][0]["securityContext"][field]
    return found


def _added(*names: str) -> Object:
    return template({"capabilities": {"drop": ["ALL"], "add": list(names)}})


INIT = {"name": "init", "image": "busybox"}
TEMPLATES: dict[str, tuple[Object, str, tuple[str, ...]]] = {
    "nothing special": (template(), "restricted", ()),
    "the Pod's context is the containers'": (
        without(
            "runAsNonRoot",
            "seccompProfile",
            securityContext={
                "runAsNonRoot": True,
                "seccompProfile": {"type": "Localhost", "localhostProfile": "p.json"},
            },
        ),
        "restricted",
        (),
    ),
    "a port below 1024": (_added("NET_BIND_SERVICE"), "restricted", ()),
    "volumes without the node": (
        template(
            volumes=[
                {"name": "a", "emptyDir": {}},
                {"name": "b", "configMap": {"name": "x"}},
                {"name": "c", "persistentVolumeClaim": {"claimName": "x"}},
                {"name": "d", "downwardAPI": {"items": []}},
                {"name": "e", "csi": {"driver": "x"}},
            ]
        ),
        "restricted",
        (),
    ),
    "a safe sysctl": (
        template(securityContext={"sysctls": [{"name": "net.ipv4.tcp_syncookies", "value": "1"}]}),
        "restricted",
        (),
    ),
    "a label of SELinux that containers have": (
        template({"seLinuxOptions": {"type": "container_init_t", "level": "s0:c1"}}),
        "restricted",
        (),
    ),
    "profiles that confine": (
        template(
            {"appArmorProfile": {"type": "RuntimeDefault"}},
            annotations={"container.apparmor.security.beta.kubernetes.io/main": "runtime/default"},
        ),
        "restricted",
        (),
    ),
    "no context": (
        without(*GOOD),
        "baseline",
        ("allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "seccompProfile"),
    ),
    "an init container without a context": (
        template(initContainers=[INIT]),
        "baseline",
        ("allowPrivilegeEscalation", "capabilities", "runAsNonRoot", "seccompProfile"),
    ),
    "root": (template({"runAsUser": 0}), "baseline", ("runAsUser",)),
    "root in the whole Pod": (
        template({"runAsUser": 1000}, securityContext={"runAsUser": 0}),
        "baseline",
        ("runAsUser",),
    ),
    "may be root": (template({"runAsNonRoot": False}), "baseline", ("runAsNonRoot",)),
    "a capability of the runtime's defaults": (_added("CHOWN"), "baseline", ("capabilities",)),
    "a volume from elsewhere": (
        template(volumes=[{"name": "a", "nfs": {"server": "x", "path": "/"}}]),
        "baseline",
        ("volumes",),
    ),
    "the node's network": (template(hostNetwork=True), "privileged", ("hostNetwork",)),
    "the node's processes": (
        template(hostPID=True, hostIPC=True),
        "privileged",
        ("hostPID", "hostIPC"),
    ),
    "a path of the node": (
        template(volumes=[{"name": "a", "hostPath": {"path": "/"}}]),
        "privileged",
        ("hostPath",),
    ),
    "privileged": (
        template({"privileged": True, "allowPrivilegeEscalation": True}),
        "privileged",
        ("privileged",),
    ),
    "a capability beyond": (_added("SYS_ADMIN"), "privileged", ("capabilities",)),
    "a port of the node": (
        template(container={"ports": [{"containerPort": 80, "hostPort": 8080}]}),
        "privileged",
        ("hostPort",),
    ),
    "a port of its own": (
        template(container={"ports": [{"containerPort": 80}]}),
        "restricted",
        (),
    ),
    "unconfined": (
        template(securityContext={"seccompProfile": {"type": "Unconfined"}}),
        "privileged",
        ("seccompProfile",),
    ),
    "unconfined by AppArmor": (
        template({"appArmorProfile": {"type": "Unconfined"}}),
        "privileged",
        ("appArmorProfile",),
    ),
    "unconfined by an annotation": (
        template(annotations={"container.apparmor.security.beta.kubernetes.io/main": "unconfined"}),
        "privileged",
        ("appArmorProfile",),
    ),
    "a type of SELinux": (
        template({"seLinuxOptions": {"type": "spc_t"}}),
        "privileged",
        ("seLinuxOptions",),
    ),
    "a role of SELinux": (
        template(securityContext={"seLinuxOptions": {"role": "r"}}),
        "privileged",
        ("seLinuxOptions",),
    ),
    "an unsafe sysctl": (
        template(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
        "privileged",
        ("sysctls",),
    ),
    "all of /proc": (
        template({"procMount": "Unmasked"}, hostUsers=False),
        "privileged",
        ("procMount",),
    ),
    "a probe of another host": (
        template(
            container={"livenessProbe": {"httpGet": {"host": "192.0.2.1", "path": "/", "port": 1}}}
        ),
        "privileged",
        ("host of a probe or hook",),
    ),
    "a hook to another host": (
        template(
            container={"lifecycle": {"preStop": {"httpGet": {"host": "a", "path": "/", "port": 1}}}}
        ),
        "privileged",
        ("host of a probe or hook",),
    ),
    "a process of a Windows host": (
        template(securityContext={"windowsOptions": {"hostProcess": True}}, hostNetwork=True),
        "privileged",
        ("hostNetwork", "hostProcess"),
    ),
}
