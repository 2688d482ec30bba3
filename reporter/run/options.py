"""What is to run, where and with what; and how its accounts and its ConfigMap's keys are named."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reporter.run.definition import Definition
from reporter.run.plan import Plan
from reporter.run.spec import Launch


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusTls:
    """What the status listener needs for access from outside, as PEM."""

    certificate: bytes
    private_key: bytes = field(repr=False)
    client_ca: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadTo:
    """Where the results are uploaded to: a presigned URL, which is a secret, and its host's CA."""

    url: str = field(repr=False)
    ca: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is to run, where, and with what.

    `launch` has the image and its pull secrets, for the aggregator too. `storage` is a quantity,
    nothing for an emptyDir. `upload` says where the results are uploaded to. `exit` makes a Job of
    the aggregator, which ends with the verdict. `expose` makes a Service for access from outside
    and needs `status_tls`. `fixed_group` is off where the platform gives Pods their users and
    groups. `extra` are objects that a built-in plugin needs.
    """

    namespace: str
    plan: Plan
    launch: Launch
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


def aggregator_account(run: str) -> str:
    """Return the name of the aggregator's own account, Role and RoleBinding."""
    return f"{run}-aggregator"


def plugin_account(run: str) -> str:
    """Return the name of the account of plugins that name none, of its Role and RoleBinding."""
    return f"{run}-plugin"


def status_name(run: str) -> str:
    """Return the name of the Secret and the Service for access from outside."""
    return f"{run}-status"


def upload_name(run: str) -> str:
    """Return the name of the Secret with the URL that the results are uploaded to."""
    return f"{run}-upload"


def config_keys(definitions: Iterable[Definition]) -> dict[str, dict[str, str]]:
    """Return the keys in the run's ConfigMap for the files of each plugin's configuration."""
    return {
        definition.name: {file: f"config.{i}.{j}" for j, file in enumerate(definition.config)}
        for i, definition in enumerate(definitions)
        if definition.config
    }
