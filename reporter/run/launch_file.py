"""What the launcher of a run is told beside the plan. It stays the same for the life of the run.

It is `launch.json` in the run's ConfigMap, written by `status-ctl run` and read by the aggregator.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from reporter.errors import SettingsError
from reporter.run.definition import (
    Definition,
    Place,
    definition_document,
    doubled,
    misfits,
    read_definition,
)
from reporter.run.plan import LONGEST_TIMEOUT, Plan

MAX_BYTES: Final = 1024 * 1024  # what an object of the API server can hold
MOST_NODES_AT_ONCE: Final = 200
_MEMBERS: Final = {
    "image": "image",
    "serviceAccountName": "service_account",
    "kubernetesVersion": "kubernetes_version",
    "writeConditions": "write_conditions",
    "maxNodesAtOnce": "max_nodes_at_once",
    "environment": "environment",
    "configKeys": "config_keys",
    "snapshot": "snapshot",
}
"""Members of the document, and the fields that have the same value."""


@dataclass(frozen=True)
class Launch:
    """What to start, and with what.

    `image` is ours, for the containers that are added to plugins; `service_account` that of
    plugins that name none. `write_conditions` says whether it may patch the status of Jobs.
    `environment` has variables by plugin, `config_keys` by plugin the key in the run's ConfigMap
    for each file of its configuration. `max_nodes_at_once` bounds the open entries of a plugin.
    `snapshot` is the plugin whose result lies at the top of the tarball, if one does.
    """

    image: str
    service_account: str
    definitions: tuple[Definition, ...]
    pull_secrets: tuple[str, ...] = ()
    kubernetes_version: str = ""
    write_conditions: bool = True
    max_nodes_at_once: int = MOST_NODES_AT_ONCE
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    config_keys: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    snapshot: str = ""

    @cached_property
    def _by_name(self) -> Mapping[str, Definition]:
        return {definition.name: definition for definition in self.definitions}

    def definition(self, plugin: str) -> Definition:
        """Return a plugin's definition. Raises KeyError."""
        return self._by_name[plugin]


@dataclass(frozen=True, slots=True)
class RunLocation:
    """Where a run is. `owner` is the ownerReference of its ConfigMap: with it goes what it owns."""

    run: str
    namespace: str
    owner: Mapping[str, Any] | None
    aggregator_url: str


def encode_launch(launch: Launch) -> str:
    """Write it as `read_launch` reads it, readable and changeable for people before it is applied.

    Without the files of a configuration that have a key in the ConfigMap: both together would take
    twice their room of the 1 MiB that it has.
    """
    document = {member: getattr(launch, field) for member, field in _MEMBERS.items()}
    document |= {
        "imagePullSecrets": list(launch.pull_secrets),
        "plugins": [
            definition_document(
                replace(each, config={}) if each.name in launch.config_keys else each
            )
            for each in launch.definitions
        ],
    }
    if not launch.snapshot:
        del document["snapshot"]
    return json.dumps(document, indent=1, ensure_ascii=False)


def read_launch(data: bytes) -> Launch:
    """Read it, unknown fields are an error.

    Raises SettingsError with every problem, one line each.
    """
    from reporter.common import objects, schema  # takes long to load, and most commands read none

    def refuse(problems: Iterable[tuple[Place, str]]) -> None:
        lines = [f"{objects.field(path)}: {text}" if path else text for path, text in problems]
        if lines:
            raise SettingsError(lines)

    if len(data) > MAX_BYTES:
        raise SettingsError([f"larger than {MAX_BYTES} bytes"])
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SettingsError([f"not JSON: {error}"]) from None
    refuse(schema.violations("launch.v1", document, schema.MOST_PROBLEMS))
    found = document["plugins"]
    refuse(
        (("plugins", at, *path), text)
        for at, each in enumerate(found)
        for path, text in schema.violations("plugin.v1", each, schema.MOST_PROBLEMS)
    )
    definitions = tuple(map(read_definition, found))
    problems: list[tuple[Place, str]] = [
        (("plugins", at, *path), text)
        for at, definition in enumerate(definitions)
        for path, text in misfits(definition)
    ]
    names = [definition.name for definition in definitions]
    problems += [
        (("plugins", at), f"{names[at]!r} appears more than once") for at in doubled(names)
    ]
    refuse(problems)
    given = {field: document[member] for member, field in _MEMBERS.items() if member in document}
    secrets = tuple(document.get("imagePullSecrets", ()))
    return Launch(definitions=definitions, pull_secrets=secrets, **given)


def longest(plan: Plan, launch: Launch | None) -> float:
    """Return the seconds until the last plugin is through, if each takes all the time it has.

    Plugins of one order run side by side, orders one after the other; of a plugin that is launched
    only so many nodes at once.
    """
    groups: dict[int, float] = {}
    for plugin in plan.plugins:
        start, waves = 0, 1
        if launch is not None:
            start = launch.definition(plugin.name).start_timeout_seconds
            waves = math.ceil(len(plugin.keys) / launch.max_nodes_at_once)
        seconds = waves * (start + plan.timeout_of(plugin.name))
        groups[plugin.order] = max(groups.get(plugin.order, 0.0), seconds)
    return min(sum(groups.values()), float(LONGEST_TIMEOUT))
