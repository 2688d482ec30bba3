"""The options of `status-ctl run`, and the run that they ask for.

What is wrong with them is found before anything exists.
"""

import argparse
import secrets
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from ssl import PROTOCOL_TLS_CLIENT, SSLContext, SSLError
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments
from reporter.cli.exits import CannotTell, content, unreadable
from reporter.cli.options import count, image_argument, length, size
from reporter.common.objects import items, text
from reporter.errors import Forbidden
from reporter.run.definition import Definition
from reporter.run.nodes import Selected, select
from reporter.run.plan import DEFAULT_TIMEOUT, LONGEST_TIMEOUT
from reporter.run.spec import MOST_NODES_AT_ONCE, Launch, longest
from reporter.run.tar_upload import LONGEST_URL, expires_too_soon, read_destination
from reporter.runctl.definitions import definition_options
from reporter.runctl.follow import delivery_option
from reporter.runctl.spec import (
    OWN_NAMESPACE,
    RunSpec,
    UploadTo,
    bad_name,
    config_keys,
    make_plan,
    plugin_account,
    variable,
    without_node,
)

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_STORAGE: Final = "10Gi"
_NO_STORAGE: Final = "none"
_LETTERS: Final = 6
_STDIN: Final = "-"
_NO_URL: Final = "https://invalid/"
_LARGEST_CA: Final = 512 * 1024
_GIVES_USERS: Final = "security.openshift.io"
_NO_RIGHT: Final = """\
the list of nodes is forbidden: {}
Name the nodes instead: --node NAME,..."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare all of them."""
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
        default=_STORAGE,
        help="the size of the volume for the results, or `none`: they are lost when the "
        "aggregator's Pod is replaced (default: %(default)s)",
    )
    how.add_argument(
        "--storage-class",
        metavar="CLASS",
        default="",
        help="the volume's storage class (default: the cluster's)",
    )
    how.add_argument(
        "--upload-url-file",
        metavar="FILE",
        default="",
        help="a file with a presigned https URL, or - for standard input: the results are uploaded "
        "there by PUT before the run is over; the URL is kept in a Secret and never shown",
    )
    how.add_argument(
        "--upload-ca",
        metavar="FILE",
        default="",
        help="the CA of that URL's host (PEM), instead of the certificate authorities of the image",
    )
    how.add_argument(
        "--exit",
        action="store_true",
        help="end the aggregator's Job when the results are uploaded: exit code 0 if the run has "
        "passed, 1 if not; requires --upload-url-file",
    )
    how.add_argument(
        "--expose",
        choices=("nodeport", "loadbalancer"),
        default="",
        help="make the status reachable from outside the cluster, by a Service of that type, with "
        "TLS and a client certificate; writes the connection file",
    )
    how.add_argument(
        "--connection",
        metavar="FILE",
        type=Path,
        help="where --expose writes the connection file (default: your state directory)",
    )
    parser.add_argument("--wait", action="store_true", help="wait until the run is over")
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=length,
        help="timeout of --wait, from the start of the run, as 90s, 30m or 6h (default: until "
        "the end)",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be created (YAML unless -o says otherwise), and create nothing",
    )
    delivery_option(parser)
    show.arguments(parser)
    cluster_arguments(parser, everywhere=False, default="a new one, status-reporter-RUN")
    parser.add_argument(
        "--create-namespace", action="store_true", help="create the namespace given with -n"
    )


def check(options: argparse.Namespace) -> None:
    """End with a usage error where the options contradict each other."""
    required = {
        "--create-namespace requires -n": options.create_namespace and not options.namespace,
        "--timeout requires --wait": options.timeout is not None and not options.wait,
        "--connection requires --expose": options.connection and not options.expose,
        "--upload-ca requires --upload-url-file": options.upload_ca and not options.upload_url_file,
        "--exit cannot be used with --expose": options.exit and options.expose,
    }
    for said, wrong in required.items():
        if wrong:
            options.error(said)
    if options.exit and not options.upload_url_file:
        options.error(
            "--exit requires --upload-url-file: the results cannot be downloaded from an "
            "aggregator that has ended"
        )
    if options.upload_url_file == _STDIN and _STDIN in (options.files or ()):
        options.error("only one of -f and --upload-url-file can read standard input")


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
        storage=None if options.storage == _NO_STORAGE else options.storage,
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
    if written != _NO_STORAGE:
        size(written)
    return written
