"""What the launcher of a run is told beside the plan. It stays the same for the life of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from reporter.core.run.definition import Definition

MOST_NODES_AT_ONCE = 200


@dataclass(frozen=True)
class Launch:
    """What to start, and with what.

    `image` is ours, for the containers that are added to plugins; `service_account` that of
    plugins that name none. `write_conditions` says whether it may patch the status of Jobs.
    `environment` has variables by plugin, `config_keys` by plugin the key in the run's ConfigMap
    for each file of its configuration. `max_nodes_at_once` bounds the open entries of a plugin.
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

    @cached_property
    def _by_name(self) -> Mapping[str, Definition]:
        return {definition.name: definition for definition in self.definitions}

    def definition(self, plugin: str) -> Definition:
        """Return a plugin's definition. Raises KeyError."""
        return self._by_name[plugin]
