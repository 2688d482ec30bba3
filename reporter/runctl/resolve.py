"""From the options of `run`, and what the cluster says, to the run that is asked for.

What is wrong with them is found before anything exists.
"""

import argparse
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from ssl import PROTOCOL_TLS_CLIENT, SSLContext, SSLError
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from reporter.cli.cluster import TIMEOUT, asking
from reporter.cli.exits import CannotTell, content, unreadable
from reporter.common.objects import items, text
from reporter.errors import Forbidden
from reporter.run.definition import Definition
from reporter.run.launch_file import Launch, longest
from reporter.run.names import is_run_name
from reporter.run.nodes import Selected, select
from reporter.run.plan import Plan, Plugin
from reporter.run.tar_upload import LONGEST_URL, expires_too_soon, read_destination
from reporter.runctl.spec import OWN_NAMESPACE, RunSpec, UploadTo, plugin_account

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_LETTERS: Final = 6
_NO_URL: Final = "https://invalid/"
_LARGEST_CA: Final = 512 * 1024
_GIVES_USERS: Final = "security.openshift.io"
_REASONS_SHOWN: Final = 3
_NO_RIGHT: Final = """\
the list of nodes is forbidden: {}
Name the nodes instead: --node NAME,..."""


def run_spec(
    options: argparse.Namespace,
    definitions: Sequence[Definition],
    upload: UploadTo | None,
    api: "KubeApi",
    *,
    every: bool,
) -> tuple[RunSpec, list[str]]:
    """Return the run without what makes it impossible, and that, a line each. Raises CannotTell.

    Unless these are `every` definition, options may name plugins that are not among them.
    """
    environment: dict[str, dict[str, str]] = {}
    known = [each.name for each in definitions]
    for written in options.plugin_env:
        try:
            plugin, name, value = variable(written, known)
        except ValueError as error:
            if not every:
                continue
            options.error(f"--plugin-env: {error}")
        environment.setdefault(plugin, {})[name] = value
    run = options.name or _random_name()
    with asking():
        version = api.server_version(timeout=TIMEOUT)
        nodes = _nodes(api, definitions, options)
        gives_users = _gives_users(api)
    wrong = [bad_name(run), *(without_node(each, nodes) for each in definitions)]
    definitions = tuple(each for each in definitions if not without_node(each, nodes))
    spec = RunSpec(
        namespace=options.namespace or OWN_NAMESPACE.format(run=run),
        plan=make_plan(run, definitions, nodes, options.plugin_timeout),
        launch=Launch(
            image=options.image,
            service_account=options.service_account or plugin_account(run),
            definitions=tuple(
                replace(each, cleanup=options.cleanup or each.cleanup) for each in definitions
            ),
            pull_secrets=tuple(options.image_pull_secret),
            kubernetes_version=version,
            max_nodes_at_once=options.max_nodes_at_once,
            environment=environment,
            config_keys=config_keys(definitions),
        ),
        # Unless these are all, any plugin may run on nodes.
        named_nodes=options.node if nodes or not every else (),
        storage=options.storage,
        storage_class=options.storage_class,
        upload=upload,
        exit=options.exit,
        create_namespace=not options.namespace or options.create_namespace,
        aggregator_service_account=options.aggregator_service_account,
        node_selector=dict(options.aggregator_node_selector),
        fixed_group=not gives_users,
    )
    return spec, [each for each in wrong if each]


def _nodes(
    api: "KubeApi", definitions: Sequence[Definition], options: argparse.Namespace
) -> dict[str, Selected]:
    """Return for each plugin of the driver Node where it runs. Raises CannotTell, KubeError.

    Nodes that are named are taken as they are, which needs no right to list nodes.
    """
    wanted = [each for each in definitions if each.driver == "Node"]
    if not wanted:
        return {}
    if options.node:
        return {each.name: Selected(options.node, ()) for each in wanted}
    try:
        nodes = list(api.list_all("Node", None, options.nodes, timeout=TIMEOUT))
    except Forbidden as error:
        raise CannotTell(_NO_RIGHT.format(error)) from None
    return {each.name: select(each, nodes) for each in wanted}


def _gives_users(api: "KubeApi") -> bool:
    """Return whether the cluster gives Pods their users and groups, as OpenShift does.

    Its default constraints refuse fixed ones that are not of the namespace's range. No without
    permission to ask. Raises KubeError.
    """
    try:
        found = api.document("/apis", timeout=TIMEOUT)
    except Forbidden:
        return False
    return any(text(each, "name") == _GIVES_USERS for each in items(found, "groups"))


def read_upload(options: argparse.Namespace) -> tuple[UploadTo | None, list[str]]:
    """Read what was given, nothing where there is no upload, and say what is wrong with it.

    That has nothing of the URL; one that is wrong is replaced by one that nobody is to use.
    """
    if not options.upload_url_file:
        return None, []
    problems = []
    url, ca = _NO_URL, b""
    try:
        written = content(options.upload_url_file, LONGEST_URL + 2).strip().decode("latin-1")
        read_destination(written)
        url = written
    except OSError as error:
        problems.append(unreadable(error))
    except ValueError as error:
        problems.append(str(error))
    try:
        ca = content(options.upload_ca, _LARGEST_CA) if options.upload_ca else b""
        if ca:
            SSLContext(PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=ca.decode("ascii"))
    except (SSLError, ValueError):
        problems.append(f"{options.upload_ca}: not a certificate in PEM")
    except OSError as error:
        problems.append(unreadable(error))
    return UploadTo(url=url, ca=ca), problems


def ends_too_soon(spec: RunSpec) -> list[str]:
    """Say that the URL ends before the run may, as far as is known here."""
    if spec.upload is None:
        return []
    now = time.time()
    until = now + longest(spec.plan, spec.launch)
    found = expires_too_soon(read_destination(spec.upload.url), now, until)
    return [f"{found}; use a URL that is valid longer, or --plugin-timeout"] if found else []


def _random_name() -> str:
    return "run-" + "".join(secrets.choice(ascii_lowercase) for _ in range(_LETTERS))


def config_keys(definitions: Iterable[Definition]) -> dict[str, dict[str, str]]:
    """Return the keys in the run's ConfigMap for the files of each plugin's configuration."""
    return {
        definition.name: {file: f"config.{i}.{j}" for j, file in enumerate(definition.config)}
        for i, definition in enumerate(definitions)
        if definition.config
    }


def make_plan(
    run: str, definitions: Iterable[Definition], nodes: Mapping[str, Selected], timeout: int
) -> Plan:
    """Return the plan: an entry for each plugin, or for each of its nodes.

    `timeout` in seconds is for plugins that name none.
    """
    nowhere = Selected((), ())
    plugins = tuple(
        Plugin(
            each.name,
            nodes=nodes.get(each.name, nowhere).chosen,
            order=each.order,
            heartbeats=each.heartbeats,
            timeout_seconds=each.timeout_seconds,
            skipped=nodes.get(each.name, nowhere).skipped,
            result_format=each.result_format,
            result_files=each.result_files,
        )
        for each in definitions
    )
    return Plan(run, plugins, timeout)


def without_node(definition: Definition, nodes: Mapping[str, Selected]) -> str:
    """Say why a plugin has no node to run on; nothing if it has one or needs none."""
    if definition.driver != "Node" or (selected := nodes[definition.name]).chosen:
        return ""
    said = [f"{each.node}: {each.reason}" for each in selected.skipped[:_REASONS_SHOWN]]
    more = len(selected.skipped) - len(said)
    if more > 0:
        said.append(f"{more} more")
    why = f" ({'; '.join(said)})" if said else ""
    return f"plugin {definition.name}: no node to run on{why}"


def bad_name(run: str) -> str:
    """Say why no run can have that name; nothing if it can."""
    if is_run_name(run):
        return ""
    return (
        f"{run!r} is not a valid run name: use at most 40 lowercase letters, digits "
        "and '-', begin with a letter, and end with a letter or digit"
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
