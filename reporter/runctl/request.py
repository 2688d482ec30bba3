"""What a person asks `status-ctl run` for: the plan, and what the launcher is told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from reporter.run.definition import Cleanup, Definition
from reporter.run.names import is_run_name
from reporter.run.nodes import Selected
from reporter.run.options import config_keys, plugin_account
from reporter.run.plan import Plan, Plugin
from reporter.run.spec import MOST_NODES_AT_ONCE, Launch

_REASONS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Request:
    """A run as it was asked for.

    `nodes` has, for each plugin of the driver Node, where it runs. `timeout` in seconds is for
    plugins that name none. `service_account` is empty for the run's own, `cleanup` for what each
    definition says. `environment` has variables by plugin, `snapshot` is as in `Launch`.
    """

    run: str
    definitions: tuple[Definition, ...]
    image: str
    timeout: int
    nodes: Mapping[str, Selected] = field(default_factory=dict)
    pull_secrets: tuple[str, ...] = ()
    service_account: str = ""
    kubernetes_version: str = ""
    cleanup: Cleanup | None = None
    max_nodes_at_once: int = MOST_NODES_AT_ONCE
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    write_conditions: bool = True
    snapshot: str = ""


def make_plan(request: Request) -> Plan:
    """Return the plan: an entry for each plugin, or for each of its nodes."""
    return Plan(
        request.run,
        tuple(_plugin(request, each) for each in request.definitions),
        request.timeout,
    )


def make_launch(request: Request) -> Launch:
    """Return what the launcher is told."""
    cleanup = request.cleanup
    return Launch(
        image=request.image,
        service_account=request.service_account or plugin_account(request.run),
        definitions=tuple(
            each if cleanup is None else replace(each, cleanup=cleanup)
            for each in request.definitions
        ),
        pull_secrets=request.pull_secrets,
        kubernetes_version=request.kubernetes_version,
        write_conditions=request.write_conditions,
        max_nodes_at_once=request.max_nodes_at_once,
        environment=request.environment,
        config_keys=config_keys(request.definitions),
        snapshot=request.snapshot,
    )


def unmet(request: Request) -> list[str]:
    """Say what makes this run impossible, one line each."""
    found = []
    if not is_run_name(request.run):
        found.append(
            f"{request.run!r} is not a valid run name: use at most 40 lowercase letters, digits "
            "and '-', begin with a letter, and end with a letter or digit"
        )
    return [*found, *filter(None, (_placeless(request, each) for each in request.definitions))]


def placed(request: Request) -> Request:
    """Return the request without the plugins that have no place, of which `unmet` tells."""
    return replace(
        request,
        definitions=tuple(each for each in request.definitions if not _placeless(request, each)),
    )


def variable(written: str, plugins: Sequence[str]) -> tuple[str, str, str]:
    """Split `PLUGIN.NAME=VALUE`; names of plugins may have dots. Raises ValueError with words."""
    left, equals, value = written.partition("=")
    if not equals:
        raise ValueError(f"not PLUGIN.NAME=VALUE: {written!r}")
    fitting = [name for name in plugins if left.startswith(f"{name}.") and left != f"{name}."]
    if not fitting:
        raise ValueError(f"no plugin of this run fits {left!r}")
    plugin = max(fitting, key=len)
    return plugin, left[len(plugin) + 1 :], value


def _plugin(request: Request, definition: Definition) -> Plugin:
    where = request.nodes.get(definition.name)
    return Plugin(
        definition.name,
        nodes=() if where is None else where.chosen,
        order=definition.order,
        heartbeats=definition.heartbeats,
        timeout_seconds=definition.timeout_seconds,
        skipped=() if where is None else where.skipped,
        result_format=definition.result_format,
        result_files=definition.result_files,
    )


def _placeless(request: Request, definition: Definition) -> str:
    """Say why a plugin cannot run on its nodes; nothing if it can."""
    if definition.driver != "Node":
        return ""
    selected = request.nodes[definition.name]
    if not selected.chosen:
        return f"plugin {definition.name}: no node to run on{_why(selected)}"
    return ""


def _why(selected: Selected) -> str:
    """Say why the first nodes were left out."""
    said = [f"{each.node}: {each.reason}" for each in selected.skipped[:_REASONS_SHOWN]]
    more = len(selected.skipped) - len(said)
    if more > 0:
        said.append(f"{more} more")
    return f" ({'; '.join(said)})" if said else ""
