"""A run as it was asked for, in one value from the command line to the objects; and its names."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reporter.common.objects import Object, View, text
from reporter.run import names
from reporter.run.launch_file import Launch
from reporter.run.plan import Plan

OWN_NAMESPACE: Final = "status-reporter-{run}"
"""The namespace of a run that has one to itself."""
CREATED_BY: Final = "status-reporter.io/created-by-run"
"""Annotation of a namespace that was made for a run, and goes with it."""
CONTAINER: Final = "kube-sonobuoy"
"""The aggregator's container: by this name `sonobuoy retrieve` finds it."""
STATUS_PORT: Final = 8081
EVERY_RUN: Final = f"app.kubernetes.io/name=status-aggregator,{names.RUN_LABEL}"
"""The label selector of all aggregators that were launched for a run."""
CREATION: Final = "status-reporter.io/creation"
"""A random value in an annotation, by which a command recognises the objects that it has made."""
PLAN: Final = "ConfigMap"
"""Created first and deleted last: while it is there, nobody starts another run of that name."""
_NOT_NAMESPACED: Final = frozenset({"Namespace", "ClusterRole", "ClusterRoleBinding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTls:
    """What the status listener needs for access from outside, as PEM."""

    certificate: bytes
    private_key: bytes = field(repr=False)
    client_ca: bytes

    @property
    def files(self) -> dict[str, bytes]:
        """What is in its Secret."""
        return {"ca.crt": self.client_ca, "tls.crt": self.certificate, "tls.key": self.private_key}


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadTo:
    """Where the results are uploaded to: a presigned URL, which is a secret, and its host's CA."""

    url: str = field(repr=False)
    ca: bytes = b""

    @property
    def files(self) -> dict[str, bytes]:
        """What is in its Secret."""
        return {"url": self.url.encode(), "ca.crt": self.ca}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What is to run, where, and with what.

    `launch` has the image and its pull secrets, for the aggregator too. `named_nodes` were given by
    name: nobody has looked them up. `storage` is a quantity, nothing for an emptyDir. `exit` has
    the aggregator end with the verdict. `expose` makes a Service for access from outside and needs
    `status_tls`. `fixed_group` is off where the platform gives Pods their users and groups. `extra`
    are objects that a built-in plugin needs.
    """

    namespace: str
    plan: Plan
    launch: Launch
    named_nodes: Sequence[str] = ()
    storage: str | None = "10Gi"
    storage_class: str = ""
    upload: UploadTo | None = None
    exit: bool = False
    expose: Literal["", "nodeport", "loadbalancer"] = ""
    status_tls: StatusTls | None = None
    create_namespace: bool = False
    aggregator_service_account: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    fixed_group: bool = True
    extra: tuple[Mapping[str, Any], ...] = ()

    @property
    def run(self) -> str:
        """The run's name."""
        return self.plan.run

    @property
    def worker_address(self) -> str:
        """Where its workers find its aggregator."""
        return f"{self.run}.{self.namespace}.svc:8080"


def namespace_of(found: Object, namespace: str) -> str | None:
    """Return the namespace of an object of a run in `namespace`; None where it has none."""
    if text(found, "kind") in _NOT_NAMESPACED:
        return None
    return View(found).namespace or namespace


def display_name(found: Object, namespace: str = "") -> str:
    """Return kind and name as other commands print them, and where it is if that is elsewhere."""
    name, own = f"{text(found, 'kind').lower()}/{View(found).name}", View(found).namespace
    return f"{name} in namespace {own}" if own and namespace and own != namespace else name


def created_by(found: Object) -> str:
    """Return what the command has drawn at random that has made an object."""
    return text(View(found).annotations, CREATION)


def plugin_account(run: str) -> str:
    """Return the name of the account of plugins that name none, of its Role and RoleBinding."""
    return f"{run}-plugin"


def status_name(run: str) -> str:
    """Return the name of the Secret and the Service for access from outside."""
    return f"{run}-status"
