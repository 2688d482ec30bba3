"""What a run starts for a plugin: a definition as values, its rules, and its images.

Where it is read from is not known here. `run.definition_file` makes these from YAML.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reporter.common import label_selector
from reporter.common.objects import Object, items, text
from reporter.run.plan import CertificateFor, ResultFormat, is_name

Place = tuple[str | int, ...]
"""Where a value stands in its document: member names and list positions."""

Driver = Literal["Job", "Node"]
Contract = Literal["result-file", "done-file", "link"]
Cleanup = Literal["always", "success", "never"]

API_VERSION: Final = "status-reporter.io/v1"
START_TIMEOUT: Final = 600  # seconds from the launch to the start of the container
RESERVED: Final = ("status-reporter", "status-worker")
"""Containers that are added to a plugin's Pod."""
RESERVED_VOLUMES: Final = (
    "status-reporter-certificates",
    "status-reporter-token",
    "status-reporter-config",
)
"""Volumes that are added to a plugin's Pod."""
KUBERNETES_VERSION: Final = "$SONOBUOY_K8S_VERSION"
PROGRESS_PORT: Final = "SONOBUOY_PROGRESS_PORT"
PRODUCT: Final = "$STATUS_REPORTER_IMAGE"
"""Stands for the status reporter's own image."""

_MEMBERS: Final = {
    "driver": "driver",
    "contract": "contract",
    "order": "order",
    "timeoutSeconds": "timeout_seconds",
    "startTimeoutSeconds": "start_timeout_seconds",
    "resultFormat": "result_format",
    "heartbeats": "heartbeats",
    "cleanup": "cleanup",
    "identity": "identity",
}
"""Members of our shape's `spec`, and the fields that have the same value."""


@dataclass(frozen=True, slots=True)
class NodeSelection:
    """Which nodes a plugin runs on: a label selector, empty for all."""

    selector: str = ""
    include_not_ready: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """What to start for a plugin. `template` is a Pod template, `config` becomes files.

    Times are seconds; without `timeout_seconds` the run's default holds. `remarks` say what differs
    from what the author may expect.
    """

    name: str
    driver: Driver
    contract: Contract
    template: Object
    order: int = 0
    timeout_seconds: int | None = None
    start_timeout_seconds: int = START_TIMEOUT
    result_format: ResultFormat = "raw"
    result_files: tuple[str, ...] = ()
    heartbeats: bool = True
    nodes: NodeSelection = NodeSelection()
    cleanup: Cleanup = "always"
    identity: CertificateFor = "plugin"
    config: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def images(self, product: str, kubernetes_version: str = "") -> set[str]:
        """Return the images of its Pods; `product` is the one that is added beside a plugin.

        A version replaces `$SONOBUOY_K8S_VERSION`, which stays as it is without one.
        """
        spec = self.template.get("spec", {})
        used = {
            full_image(text(container, "image"), product, kubernetes_version)
            for kind in ("initContainers", "containers")
            for container in items(spec, kind)
        }
        return used if self.contract == "link" else {*used, product}


def full_image(written: str, product: str, kubernetes_version: str) -> str:
    """Return an image of a definition with the run's own values; a version may be empty."""
    if kubernetes_version:
        written = written.replace(KUBERNETES_VERSION, kubernetes_version)
    return written.replace(PRODUCT, product)


def misfits(definition: Definition) -> Iterator[tuple[Place, str]]:
    """Say what is wrong with it beyond its shape: where, and what."""
    if not is_name(definition.name):
        yield (
            ("metadata", "name"),
            "must consist of letters, digits, '.', '_' and '-', at most 63, with a letter or "
            "digit at both ends",
        )
    if definition.driver == "Job" and definition.nodes != NodeSelection():
        yield ("spec", "nodes"), "is only for the driver Node"
    if definition.driver == "Job" and definition.identity == "node":
        yield ("spec", "identity"), "can be node only for the driver Node"
    try:
        label_selector.parse(definition.nodes.selector)
    except ValueError as error:
        yield ("spec", "nodes", "selector"), str(error)
    if definition.contract == "result-file" and definition.result_format != "adapter":
        yield ("spec", "resultFormat"), "must be adapter for the contract result-file"
    spec = definition.template.get("spec", {})
    names = [
        (("spec", "template", "spec", kind, at, "name"), text(container, "name"))
        for kind in ("initContainers", "containers")
        for at, container in enumerate(items(spec, kind))
    ]
    for at, (where, name) in enumerate(names):
        if name in RESERVED:
            yield where, f"{name!r} is reserved for the container that is added"
        elif name in [other for _, other in names[:at]]:
            yield where, f"another container is named {name!r}"
    for at, volume in enumerate(items(spec, "volumes")):
        if text(volume, "name") in RESERVED_VOLUMES:
            where = ("spec", "template", "spec", "volumes", at, "name")
            yield where, f"{volume['name']!r} is reserved for the volume that is added"
    if spec.get("restartPolicy", "Never") != "Never":
        yield ("spec", "template", "spec", "restartPolicy"), "must be Never"


def definition_document(definition: Definition) -> dict[str, Any]:
    """Write a definition in our shape, whatever shape it was read from; remarks are left out."""
    spec = {member: getattr(definition, field) for member, field in _MEMBERS.items()}
    spec |= {
        "resultFiles": list(definition.result_files),
        "config": dict(definition.config),
        "template": definition.template,
    }
    if definition.nodes != NodeSelection():
        selector, not_ready = definition.nodes.selector, definition.nodes.include_not_ready
        spec["nodes"] = {"selector": selector, "includeNotReady": not_ready}
    return {
        "apiVersion": API_VERSION,
        "kind": "Plugin",
        "metadata": {"name": definition.name},
        "spec": {member: value for member, value in spec.items() if value is not None},
    }


def read_definition(document: Mapping[str, Any]) -> Definition:
    """Return what a document in our shape defines. It must fit the schema `plugin.v1`."""
    spec = document["spec"]
    contract, nodes = spec["contract"], spec.get("nodes", {})
    given = {
        "result_format": "adapter" if contract == "result-file" else "raw",
        "heartbeats": contract != "link",
        "config": spec.get("config", {}),
        **{field: spec[member] for member, field in _MEMBERS.items() if member in spec},
    }
    return Definition(
        document["metadata"]["name"],
        template=spec["template"],
        nodes=NodeSelection(nodes.get("selector", ""), nodes.get("includeNotReady", False)),
        result_files=tuple(spec.get("resultFiles", ())),
        **given,
    )


def doubled(names: Sequence[str]) -> Iterator[int]:
    """Tell which of the names have come before."""
    return (at for at, name in enumerate(names) if name in names[:at])
