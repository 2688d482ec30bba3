"""The run plan: which results a run expects, from whom, and for how long.

The document's rules live here; where it is read from and what came of it do not.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, get_args

from reporter.errors import ReporterError

GLOBAL = "global"
DEFAULT_TIMEOUT = 21_600
LONGEST_REASON = 256  # characters
LONGEST_TIMEOUT = 366 * 86_400  # certificates are valid for as long, and a date must exist for it

ResultFormat = Literal["raw", "adapter", "junit", "e2e", "gojson", "manual"]
_FORMATS = get_args(ResultFormat)
CertificateFor = Literal["plugin", "node"]

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
    identity: CertificateFor = "plugin"
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
    problems, plugins = list(_problems(document, _OF_PLAN)), document.get("plugins")
    if not isinstance(plugins, list):
        raise PlanError([*problems, "plugins: not a list"])
    for at, plugin in enumerate(plugins):
        if isinstance(plugin, dict):
            problems += _problems(plugin, _OF_PLUGIN, f"plugins[{at}].")
        else:
            problems.append(f"plugins[{at}]: not an object")
    names = [plugin.get("name") for plugin in plugins if isinstance(plugin, dict)]
    twice = _doubled(str(name) for name in names if is_name(name))
    problems += [f"plugins{problem}" for problem in twice]
    if problems:
        raise PlanError(problems)
    timeout = document.get("timeout_seconds") or DEFAULT_TIMEOUT
    return Plan(document["run"], tuple(map(_plugin, plugins)), timeout)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Write a plan as `parse_plan` reads it."""
    return {
        "run": plan.run,
        "timeout_seconds": plan.timeout_seconds,
        "plugins": [_plugin_document(plugin) for plugin in plan.plugins],
    }


def _plugin(found: dict[str, Any]) -> Plugin:
    given = {field: found[field] for field in _OF_PLUGIN if found.get(field) is not None}
    skipped = [Skipped(each["node"], each["reason"]) for each in given.get("skipped", ())]
    lists = {field: tuple(given.get(field, ())) for field in ("nodes", "result_files")}
    return Plugin(**{**given, **lists, "skipped": tuple(skipped)})


def _plugin_document(plugin: Plugin) -> dict[str, Any]:
    document: dict[str, Any] = {field: getattr(plugin, field) for field in _OF_PLUGIN}
    document["skipped"] = [skipped._asdict() for skipped in plugin.skipped]
    lists = {field: list(document[field]) for field in ("nodes", "result_files")}
    return {field: value for field, value in (document | lists).items() if value not in (None, [])}


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


# -- the rules -----------------------------------------------------------------------------------

Rule = Callable[[Any], Iterable[str]]
"""Says of a value what is wrong with it: where inside of it, if not all, and what."""


def _problems(found: dict[str, Any], rules: dict[str, Rule], where: str = "") -> Iterator[str]:
    for field, rule in rules.items():
        value = found.get(field)
        if value is not None or field in ("run", "name"):
            yield from (f"{where}{field}{problem}" for problem in rule(value))


def _must(good: Callable[[Any], bool], words: str) -> Rule:
    return lambda value: [] if good(value) else [f": {words}"]


def is_name(value: object) -> bool:
    """Say whether a run or a plugin can have that name."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_node(value: object) -> bool:
    return isinstance(value, str) and _NODE.fullmatch(value) is not None


def _doubled(names: Iterable[str]) -> list[str]:
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    return [f": {name!r} appears more than once" for name in twice]


def _nodes(value: Any) -> Iterator[str]:
    if not isinstance(value, list) or not value:
        yield ": not a list of names; leave it out for one global entry"
        return
    for at, node in enumerate(value):
        if not _is_node(node):
            yield f"[{at}]: not a node name"
        elif node == GLOBAL:
            yield f"[{at}]: {GLOBAL} is reserved"
    yield from _doubled(node for node in value if isinstance(node, str))


def _skipped(value: Any) -> Iterator[str]:
    if not isinstance(value, list):
        yield ": not a list"
        return
    for at, item in enumerate(value):
        entry = item if isinstance(item, dict) else {}
        reason = entry.get("reason")
        if not _is_node(entry.get("node")):
            yield f"[{at}].node: not a node name"
        elif not isinstance(reason, str) or not 0 < len(reason) <= LONGEST_REASON:
            yield f"[{at}].reason: not a text of at most {LONGEST_REASON} characters"


_name: Final = _must(
    is_name,
    "not a name (letters, digits, '.', '_', '-', at most 63, a letter or digit at both ends)",
)
_timeout: Final = _must(
    lambda value: type(value) is int and 0 < value <= LONGEST_TIMEOUT,
    f"not whole seconds from 1 to {LONGEST_TIMEOUT}",
)
_OF_PLAN: Final[dict[str, Rule]] = {"run": _name, "timeout_seconds": _timeout}
_OF_PLUGIN: Final[dict[str, Rule]] = {
    "name": _name,
    "identity": _must(lambda value: value in ("plugin", "node"), 'neither "plugin" nor "node"'),
    "heartbeats": _must(lambda value: isinstance(value, bool), "not true or false"),
    "order": _must(lambda value: type(value) is int, "not an integer"),
    "result_format": _must(lambda value: value in _FORMATS, f"not one of {', '.join(_FORMATS)}"),
    "nodes": _nodes,
    "timeout_seconds": _timeout,
    "skipped": _skipped,
    "result_files": _must(
        lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
        "not a list of file names",
    ),
}
