"""What the launcher of a run is told beside the plan. It stays the same for the life of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from reporter.run.definition import Definition, definition_document

MOST_NODES_AT_ONCE = 200


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


def launch_document(launch: Launch) -> dict[str, Any]:
    """Write it as `run.launch_file` reads it.

    Without the files of a configuration that have a key in the ConfigMap: both together would take
    twice their room of the 1 MiB that it has.
    """
    return {
        "image": launch.image,
        "serviceAccountName": launch.service_account,
        "imagePullSecrets": list(launch.pull_secrets),
        "kubernetesVersion": launch.kubernetes_version,
        "writeConditions": launch.write_conditions,
        "maxNodesAtOnce": launch.max_nodes_at_once,
        "environment": {plugin: dict(pairs) for plugin, pairs in launch.environment.items()},
        "configKeys": {plugin: dict(keys) for plugin, keys in launch.config_keys.items()},
        **({"snapshot": launch.snapshot} if launch.snapshot else {}),
        "plugins": [
            definition_document(
                replace(each, config={}) if each.name in launch.config_keys else each
            )
            for each in launch.definitions
        ],
    }
