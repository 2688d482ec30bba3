"""The options of `status-ctl run`."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, get_args

from reporter.cli import output as show
from reporter.cli.cluster import cluster_arguments
from reporter.cli.options import count, image_argument, length, port, size
from reporter.common.manifest import manifest
from reporter.run.launch_file import MOST_NODES_AT_ONCE
from reporter.run.plan import DEFAULT_TIMEOUT, LONGEST_TIMEOUT, CertificateFor
from reporter.runctl.definitions import definition_options
from reporter.runctl.follow import delivery_option

_STDIN: Final = "-"
_NOT_IN_RUNS: Final = (
    *("EXPORT_CERTS", "EXPORT_SECRETS", "WORKER_CA"),
    *("LISTEN", "SONOBUOY_ADVERTISE_IP", "STATUS_LISTEN"),
)
"""Settings of the aggregator that are neither in its manifest nor of any use in a run."""
_LEAST_MEMORY: Final = 128 * 2**20


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
        "--progress-port",
        metavar="PORT",
        type=port,
        default=0,
        help="port to which plugins post progress, unless their definition or --plugin-env sets "
        "SONOBUOY_PROGRESS_PORT (default: 8099; with hostNetwork another for each plugin and run)",
    )
    what.add_argument(
        "--cleanup",
        choices=("always", "success", "never"),
        help="when the Jobs of plugins are deleted (default: as set in each definition)",
    )
    what.add_argument(
        "--identity",
        choices=get_args(CertificateFor),
        help="for plugins of the driver Node: one client certificate for each plugin, or one for "
        "each node (default: as set in each definition)",
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
        "--aggregator-env",
        metavar="NAME=VALUE",
        type=_setting,
        action="append",
        default=[],
        help="a setting of the aggregator, such as STATUS_VALUES=strict; repeatable",
    )
    how.add_argument(
        "--aggregator-memory",
        metavar="SIZE",
        type=_memory,
        help="the aggregator's memory request and limit (default: 128Mi and 384Mi)",
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
        "--fail-fast",
        action="store_true",
        help="stop waiting at the first failure, even if it may still change, and at a problem "
        "with an image, a configuration or the connection to the aggregator that lasts 60s; the "
        "run continues",
    )
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
        "--fail-fast requires --wait": options.fail_fast and not options.wait,
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
    wrong = options.aggregator_env and list(_wrong_settings(dict(options.aggregator_env)))
    if wrong:
        options.error("\n".join(f"--aggregator-env: {each}" for each in wrong))
    if options.upload_url_file == _STDIN and _STDIN in (options.files or ()):
        options.error("only one of -f and --upload-url-file can read standard input")


def _wrong_settings(given: Mapping[str, str]) -> Iterator[str]:
    """Say which are no settings of a run's aggregator, or have values that it would refuse."""
    from reporter.common.schema import nearest  # both take long to load
    from reporter.run.settings import Settings

    (pod,) = manifest("reporter.runctl", "aggregator-pod.yaml")
    in_pod = pod["spec"]["containers"][0]["env"]
    fixed = {*_NOT_IN_RUNS, *(each["name"] for each in in_pod)}
    known = {each.name for each in Settings.described()} - fixed
    for name in sorted(given.keys() - known):
        near = nearest(name.upper(), known)
        if name in fixed:
            yield f"{name} is set by the run"
        else:
            yield f"{name} is unknown" + (f"; did you mean {near}?" if near else "")
    rest = dict.fromkeys(("PLAN", "STATE", "OUTPUT"), "set")
    rest |= {name: given[name] for name in given.keys() & known}
    yield from (each.text for each in Settings.complaints(rest))


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


def _setting(written: str) -> tuple[str, str]:
    name, equals, value = written.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"not NAME=VALUE: {written!r}")
    return name, value


def _memory(written: str) -> str:
    if size(written) < _LEAST_MEMORY:
        raise argparse.ArgumentTypeError(f"less than 128Mi: {written!r}")
    return written


def _storage(written: str) -> str | None:
    if written == "none":
        return None
    size(written)
    return written
