"""The options of `status-ctl run`, and what they ask for."""

import argparse
import secrets
from collections.abc import Sequence
from string import ascii_lowercase
from typing import TYPE_CHECKING

from reporter.cli.cluster import TIMEOUT, asking
from reporter.cli.options import count, image_argument, length, size
from reporter.run.definition import Definition
from reporter.run.options import RunOptions
from reporter.run.plan import DEFAULT_TIMEOUT, LONGEST_TIMEOUT
from reporter.run.spec import MOST_NODES_AT_ONCE
from reporter.runctl import expose
from reporter.runctl import upload_options as upload
from reporter.runctl.definitions import definition_options
from reporter.runctl.request import Request, make_launch, make_plan, variable
from reporter.runctl.survey import choose_nodes

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

STORAGE = "10Gi"
NO_STORAGE = "none"
_LETTERS = 6


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that say what to run and with what."""
    what = parser.add_argument_group("what to run")
    definition_options(what)
    what.add_argument(
        "--name", metavar="RUN", help="the run's name (default: run- and 6 random letters)"
    )
    nodes = what.add_mutually_exclusive_group()
    nodes.add_argument(
        "--nodes",
        metavar="SELECTOR",
        default="",
        help="nodes for plugins of the driver Node, by their labels (default: all that match)",
    )
    nodes.add_argument(
        "--node",
        metavar="NAME,...",
        type=_node_names,
        default=(),
        help="nodes for plugins of the driver Node, by name; requires no permission to list nodes",
    )
    what.add_argument(
        "--max-nodes-at-once",
        metavar="NUMBER",
        type=count,
        default=MOST_NODES_AT_ONCE,
        help="maximum number of nodes a plugin runs on at the same time (default: %(default)s)",
    )
    what.add_argument(
        "--plugin-timeout",
        metavar="TIME",
        type=_plugin_timeout,
        default=DEFAULT_TIMEOUT,
        help="timeout of plugins that do not set their own (default: 6h)",
    )
    what.add_argument(
        "--plugin-env",
        metavar="PLUGIN.NAME=VALUE",
        action="append",
        default=[],
        help="set an environment variable in a plugin's containers; repeatable",
    )
    what.add_argument(
        "--cleanup",
        choices=("always", "success", "never"),
        help="when the Jobs of plugins are deleted (default: as set in each definition)",
    )
    how = parser.add_argument_group("how to run it")
    image_argument(how)
    how.add_argument(
        "--image-pull-secret",
        metavar="SECRET",
        action="append",
        default=[],
        help="a Secret of the namespace for pulling images; repeatable",
    )
    how.add_argument(
        "--service-account",
        metavar="NAME",
        default="",
        help="for plugins that set no service account (default: a new one with only "
        "the reporter's rights)",
    )
    how.add_argument(
        "--aggregator-service-account",
        metavar="NAME",
        default="",
        help="for the aggregator (default: a new one); it is granted the aggregator's rights",
    )
    how.add_argument(
        "--aggregator-node-selector",
        metavar="KEY=VALUE",
        type=_label,
        action="append",
        default=[],
        help="a label that the aggregator's node must have; repeatable",
    )
    how.add_argument(
        "--storage",
        metavar="SIZE",
        type=_storage,
        default=STORAGE,
        help="the size of the volume for the results, or `none`: they are lost when the "
        "aggregator's Pod is replaced (default: %(default)s)",
    )
    how.add_argument(
        "--storage-class",
        metavar="CLASS",
        default="",
        help="the volume's storage class (default: the cluster's)",
    )
    upload.arguments(how)
    expose.arguments(how)


def request(
    options: argparse.Namespace,
    definitions: Sequence[Definition],
    api: "KubeApi",
    *,
    every: bool = True,
) -> Request:
    """Return what is asked for, on which nodes. Raises CannotTell.

    Unless these are `every` definition, options may name plugins that are not among them.
    """
    environment: dict[str, dict[str, str]] = {}
    names = [each.name for each in definitions]
    for written in options.plugin_env:
        try:
            plugin, name, value = variable(written, names)
        except ValueError as error:
            if not every:
                continue
            options.error(f"--plugin-env: {error}")
        environment.setdefault(plugin, {})[name] = value
    with asking():
        version = api.server_version(timeout=TIMEOUT)
    return Request(
        run=options.name or _drawn(),
        definitions=tuple(definitions),
        image=options.image,
        timeout=options.plugin_timeout,
        nodes=choose_nodes(api, definitions, options.nodes, options.node),
        pull_secrets=tuple(options.image_pull_secret),
        service_account=options.service_account,
        kubernetes_version=version,
        cleanup=options.cleanup,
        max_nodes_at_once=options.max_nodes_at_once,
        environment=environment,
    )


def run_options(
    asked: Request, options: argparse.Namespace, namespace: str, *, own_namespace: bool
) -> RunOptions:
    """Return what the objects of the run are made from."""
    return RunOptions(
        namespace=namespace,
        plan=make_plan(asked),
        launch=make_launch(asked),
        storage=None if options.storage == NO_STORAGE else options.storage,
        storage_class=options.storage_class,
        create_namespace=own_namespace,
        aggregator_service_account=options.aggregator_service_account,
        node_selector=dict(options.aggregator_node_selector),
    )


def _drawn() -> str:
    return "run-" + "".join(secrets.choice(ascii_lowercase) for _ in range(_LETTERS))


def _plugin_timeout(written: str) -> int:
    seconds = length(written)
    if not 0 < seconds <= LONGEST_TIMEOUT:
        raise argparse.ArgumentTypeError(f"not a time between 1s and 366 days: {written!r}")
    return seconds


def _node_names(written: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(filter(None, written.split(","))))
    if not names:  # as of a variable that is not set; without the option all nodes are meant
        raise argparse.ArgumentTypeError(f"no node is named in {written!r}")
    return names


def _label(written: str) -> tuple[str, str]:
    key, equals, value = written.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"not a label KEY=VALUE: {written!r}")
    return key, value


def _storage(written: str) -> str:
    if written != NO_STORAGE:
        size(written)
    return written
