"""The run plan: which results a run expects, from whom, and for how long.

The document's rules live here; where it is read from and what came of it do not.
"""

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from reporter.errors import ReporterError

GLOBAL = "global"
DEFAULT_TIMEOUT = 21_600
LONGEST_REASON = 256  # characters
LONGEST_TIMEOUT = 366 * 86_400  # certificates are valid for as long, and a date must exist for it

ResultFormat = Literal["raw", "adapter", "junit", "e2e", "gojson", "manual"]
_FORMATS = get_args(ResultFormat)

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


class PlanError(ReporterError):
    """A plan that breaks its rules: one line per problem in `problems`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Key(NamedTuple):
    """One expected result: a plugin on a node; `global` is the node of a cluster-wide one."""

    plugin: str
    node: str

    def __str__(self) -> str:
        return f"{self.plugin}/{self.node}"


class Skipped(NamedTuple):
    """A node on which a plugin does not run, and why."""

    node: str
    reason: str


@dataclass(frozen=True)
class Plugin:
    """A producer of results. No nodes: it runs once for the whole cluster.

    `order` is its launch group, `heartbeats` says that its workers are known to send them,
    `identity` whether its workers share one client certificate or each node has its own. `skipped`
    is for people: nothing is expected of those nodes. `result_format` is that of its reports,
    `result_files` are the names of those that count, empty for all that fit the format.
    """

    name: str
    nodes: tuple[str, ...] = ()
    order: int = 0
    heartbeats: bool = False
    identity: Literal["plugin", "node"] = "plugin"
    timeout_seconds: int | None = None
    skipped: tuple[Skipped, ...] = ()
    result_format: ResultFormat = "raw"
    result_files: tuple[str, ...] = ()

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Its expected results, by node."""
        return tuple(Key(self.name, node) for node in sorted(self.nodes or (GLOBAL,)))


@dataclass(frozen=True)
class Plan:
    """Everything a run expects, fixed for its life. `timeout_seconds` is each plugin's default."""

    run: str
    plugins: tuple[Plugin, ...]
    timeout_seconds: int = DEFAULT_TIMEOUT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """All expected results: plugins as the plan lists them, then by node."""
        return tuple(key for plugin in self.plugins for key in plugin.keys)

    @cached_property
    def _by_name(self) -> dict[str, Plugin]:
        return {plugin.name: plugin for plugin in self.plugins}

    def plugin(self, name: str) -> Plugin | None:
        """Return the plugin of that name, if the plan has it."""
        return self._by_name.get(name)

    def timeout_of(self, plugin: str) -> int:
        """Return the seconds a plugin has from its launch."""
        found = self.plugin(plugin)
        own = found.timeout_seconds if found is not None else None
        return self.timeout_seconds if own is None else own


def parse_plan(document: object) -> Plan:
    """Read a plan from decoded JSON; unknown fields are ignored, `null` is absent.

    Raises `PlanError` with every problem at once: a bad or doubled name or node makes a key that
    collides with another or that no worker can ever meet.
    """
    if not isinstance(document, dict):
        raise PlanError(["plan: not a JSON object"])
    read = _Reader()
    run = read.name(document, "run", "run")
    timeout = read.timeout(document, "timeout_seconds")
    plugins = [
        read.plugin(item, f"plugins[{at}]") for at, item in enumerate(read.plugins(document))
    ]
    read.doubled("plugins", [plugin.name for plugin in plugins if plugin.name])
    if read.problems:
        raise PlanError(read.problems)
    return Plan(run, tuple(plugins), DEFAULT_TIMEOUT if timeout is None else timeout)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Write a plan as `parse_plan` reads it."""
    return {
        "run": plan.run,
        "timeout_seconds": plan.timeout_seconds,
        "plugins": [_plugin_document(plugin) for plugin in plan.plugins],
    }


def differences(kept: Plan, given: Plan) -> list[str]:
    """Say in what a plan contradicts the one that its run began with.

    The order in which plugins and nodes are listed makes no difference, nor do skipped nodes.
    """
    found = []
    names = dict.fromkeys(plugin.name for plan in (kept, given) for plugin in plan.plugins)
    for name in names:
        old, new = kept.plugin(name), given.plugin(name)
        if old is None or new is None:
            found.append(f"{name} is {'new' if old is None else 'missing'}")
            continue
        for field in ("order", "heartbeats", "identity", "result_format", "result_files"):
            was, now = getattr(old, field), getattr(new, field)
            if was != now:
                found.append(f"{name}: {field} was {json.dumps(was)}, not {json.dumps(now)}")
        limits = kept.timeout_of(name), given.timeout_of(name)
        if limits[0] != limits[1]:
            found.append(f"{name}: timeout_seconds was {limits[0]}, not {limits[1]}")
        had, has = set(old.keys), set(new.keys)
        found += [f"{key} is missing" for key in old.keys if key not in has]
        found += [f"{key} is new" for key in new.keys if key not in had]
    return found


def _plugin_document(plugin: Plugin) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": plugin.name,
        "order": plugin.order,
        "heartbeats": plugin.heartbeats,
        "identity": plugin.identity,
        "result_format": plugin.result_format,
    }
    if plugin.result_files:
        document["result_files"] = list(plugin.result_files)
    if plugin.nodes:
        document["nodes"] = list(plugin.nodes)
    if plugin.timeout_seconds is not None:
        document["timeout_seconds"] = plugin.timeout_seconds
    if plugin.skipped:
        document["skipped"] = [skipped._asdict() for skipped in plugin.skipped]
    return document


class _Reader:
    """Reads fields and collects what is wrong with them; a bad field reads as its empty value."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def plugins(self, document: dict[str, Any]) -> list[object]:
        value = document.get("plugins")
        if isinstance(value, list):
            return value
        self.problems.append("plugins: not a list")
        return []

    def plugin(self, item: object, where: str) -> Plugin:
        if not isinstance(item, dict):
            self.problems.append(f"{where}: not an object")
            return Plugin("")
        name = self.name(item, "name", f"{where}.name")
        given = {field: value for field, value in item.items() if value is not None}
        identity = given.get("identity", "plugin")
        if identity not in ("plugin", "node"):
            self.problems.append(f'{where}.identity: neither "plugin" nor "node"')
        heartbeats = given.get("heartbeats", False)
        if not isinstance(heartbeats, bool):
            self.problems.append(f"{where}.heartbeats: not true or false")
        order = given.get("order", 0)
        if type(order) is not int:
            self.problems.append(f"{where}.order: not an integer")
        result_format = given.get("result_format", "raw")
        if result_format not in _FORMATS:
            self.problems.append(f"{where}.result_format: not one of {', '.join(_FORMATS)}")
        return Plugin(
            name,
            self.nodes(item.get("nodes"), f"{where}.nodes"),
            order,
            heartbeats,
            identity,
            self.timeout(item, "timeout_seconds", f"{where}."),
            self.skipped(item.get("skipped"), f"{where}.skipped"),
            result_format,
            self.files(item.get("result_files"), f"{where}.result_files"),
        )

    def files(self, value: object, where: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            self.problems.append(f"{where}: not a list of file names")
            return ()
        return tuple(value)

    def skipped(self, value: object, where: str) -> tuple[Skipped, ...]:
        if value is None:
            return ()
        if not isinstance(value, list):
            self.problems.append(f"{where}: not a list")
            return ()
        found = []
        for at, item in enumerate(value):
            said = item if isinstance(item, dict) else {}
            node, reason = said.get("node"), said.get("reason")
            if not isinstance(node, str) or not _NODE.fullmatch(node):
                self.problems.append(f"{where}[{at}].node: not a node name")
            elif not isinstance(reason, str) or not 0 < len(reason) <= LONGEST_REASON:
                self.problems.append(
                    f"{where}[{at}].reason: not a text of at most {LONGEST_REASON} characters"
                )
            else:
                found.append(Skipped(node, reason))
        return tuple(found)

    def nodes(self, value: object, where: str) -> tuple[str, ...]:
        if value is None:
            return ()
        if not isinstance(value, list) or not value:
            self.problems.append(f"{where}: not a list of names; leave it out for one global entry")
            return ()
        for at, node in enumerate(value):
            if not isinstance(node, str) or not _NODE.fullmatch(node):
                self.problems.append(f"{where}[{at}]: not a node name")
            elif node == GLOBAL:
                self.problems.append(f"{where}[{at}]: {GLOBAL} is reserved")
        self.doubled(where, [node for node in value if isinstance(node, str)])
        return tuple(value)

    def doubled(self, where: str, names: list[str]) -> None:
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        self.problems.extend(f"{where}: {name!r} appears more than once" for name in twice)

    def name(self, item: dict[str, Any], field: str, where: str) -> str:
        value = item.get(field)
        if isinstance(value, str) and _NAME.fullmatch(value):
            return value
        self.problems.append(
            f"{where}: not a name (letters, digits, '.', '_', '-', at most 63, "
            "a letter or digit at both ends)"
        )
        return ""

    def timeout(self, item: dict[str, Any], field: str, where: str = "") -> int | None:
        value = item.get(field)
        if value is None:
            return None
        if type(value) is not int or not 0 < value <= LONGEST_TIMEOUT:
            self.problems.append(f"{where}{field}: not whole seconds from 1 to {LONGEST_TIMEOUT}")
            return None
        return value
