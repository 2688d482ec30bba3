"""The options of `status-ctl run`."""

import argparse
from pathlib import Path
from typing import Final

from reporter.cli import output as show
from reporter.cli.cluster import cluster_arguments
from reporter.cli.options import count, image_argument, length, size
from reporter.run.launch_file import MOST_NODES_AT_ONCE
from reporter.run.plan import DEFAULT_TIMEOUT, LONGEST_TIMEOUT
from reporter.runctl.definitions import definition_options
from reporter.runctl.follow import delivery_option

_STDIN: Final = "-"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare all of them, with those that are declared where other commands share them."""
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
        default="10Gi",
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


def _storage(written: str) -> str | None:
    if written == "none":
        return None
    size(written)
    return written
