"""`status-ctl inject`: the reporter into the Jobs of manifests, everything else byte for byte."""

import argparse
import posixpath
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from reporter.cli.exits import FAILED, GOOD, reading_input
from reporter.cli.options import image_argument
from reporter.cli.output import tell
from reporter.common import label_selector
from reporter.common.defaults import RESULTS_PATH, is_service_link, service_link_ignored
from reporter.common.objects import quantity
from reporter.errors import SettingsError
from reporter.inject.container import Wishes
from reporter.inject.files import add_files, joined, sources
from reporter.inject.transform import SAME_ACCOUNT
from reporter.jobs.setting import LABEL
from reporter.verdict.facts import Form

if TYPE_CHECKING:
    from reporter.inject.stream import Made

DESCRIPTION = f"""\
Adds the reporter to the Jobs in manifests and writes the result to standard output: Jobs,
CronJobs, JobSets and lists of them. Everything else is left unchanged, byte for byte, including
comments and order. A report of the changes goes to standard error.

The Pods keep their ServiceAccount and its token mounts; the reporter gets a token of that
account, which needs the rights that --with-rbac adds. Injecting again with the same options
changes nothing, with other options it updates the reporter; `status-ctl uninject` removes it.

The label {LABEL} on a Job sets its form (native, classic) or excludes it
(disabled). Any other value is an error.

  kubectl kustomize . | status-ctl inject -f - | kubectl apply -f -

exit codes:
  0    done; with --check: nothing would change
  1    a Job cannot have a reporter (it is left unchanged); with --check: something would
       change
  2    usage error, or a file cannot be read"""
WHO_MAY: Final = (
    "to create the Role you need the rights that it grants; the ClusterRole admin lacks two of "
    "them: see docs/add-to-jobs.md"
)
_OWN_VARIABLES: Final = frozenset(
    {
        "REPORTER_FORM",
        "JOB_NAME",
        "JOB_NAMESPACE",
        "POD_NAME",
        "ADAPTER_CONTAINER_NAME",
        "REPORTER_CONTAINER_NAME",
        "RESULTS_PATH",
    }
)
"""Variables that follow from the Pod and from other options."""


def file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which manifests, and which Jobs in them."""
    add_files(parser)
    parser.add_argument(
        "-l",
        "--selector",
        metavar="SELECTOR",
        default="",
        help=f"only Jobs with these labels, for example {LABEL}",
    )


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    file_arguments(parser)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write no manifests; exit with 1 if something would change",
    )
    parser.add_argument(
        "--form",
        choices=[form.value for form in Form],
        default=Form.NATIVE.value,
        help="native sidecar (Kubernetes 1.29 or newer) or classic second container (default: "
        "%(default)s)",
    )
    image_argument(parser)
    parser.add_argument(
        "--adapter",
        metavar="NAME",
        default="",
        help="the container that writes the result (default: the only one, or the one that the "
        "reporter detects)",
    )
    parser.add_argument(
        "--results-path",
        metavar="PATH",
        default=RESULTS_PATH,
        help="the adapter's result file (default: %(default)s); a volume is added if there is none",
    )
    parser.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="a setting of the reporter; repeatable",
    )
    parser.add_argument(
        "--cpu-limit",
        metavar="QUANTITY",
        default="",
        help="the reporter's CPU limit, for a quota on limits.cpu; its requests become equal to "
        "its limits, so a Guaranteed Pod stays Guaranteed (default: no limit)",
    )
    parser.add_argument(
        "--own-token-only",
        action="store_true",
        help="set automountServiceAccountToken: false if the Pod does not set it, so that only "
        "the reporter has a token of the account",
    )
    parser.add_argument(
        "--aggregator",
        metavar="SERVICE",
        default="",
        help="forward results to this status-aggregator, with the certificate in the Secret "
        "SERVICE-PLUGIN",
    )
    parser.add_argument(
        "--with-rbac",
        action="store_true",
        help="add the Role and a RoleBinding for each account of a Job with a reporter, before "
        "the Job; for Helm hooks as hooks with a lower weight",
    )


def run(options: argparse.Namespace) -> int:
    """Transform the manifests and return the exit code."""
    # It reads YAML, which the completion of this command must not wait for.
    from reporter.inject.stream import injected, without_token

    wishes = _wishes(options)
    chosen = selector(options)

    def transform(streams: Sequence[str]) -> "list[Made]":
        known = replace(wishes, without_token=frozenset(without_token(streams)))
        return [injected(each, known, chosen, with_rights=options.with_rbac) for each in streams]

    return pass_on(options, transform, check=options.check)


def selector(options: argparse.Namespace) -> Callable[[Mapping[str, str]], bool]:
    """Read the option that selects Jobs."""
    try:
        wanted = label_selector.parse(options.selector)
    except ValueError as error:
        options.error(f"--selector: {error}")
    return lambda labels: all(each.matches(labels) for each in wanted)


def pass_on(
    options: argparse.Namespace,
    transform: "Callable[[Sequence[str]], list[Made]]",
    *,
    check: bool = False,
) -> int:
    """Read what is named, write what becomes of it, and report on standard error."""
    with reading_input():
        found = list(sources(options.files))
    made = transform([source.text for source in found])
    pairs = [*zip(found, made, strict=True)]
    for source, each in pairs:
        _report(source.shown, each)
    if any(SAME_ACCOUNT in said.notes for each in made for said in each.said):
        tell(SAME_ACCOUNT)
    if not any(each.said for each in made):
        tell("no Jobs found")
    if not check:
        sys.stdout.buffer.write(joined([each.text for each in made]).encode())
        sys.stdout.buffer.flush()
        if any(each.with_rights for each in made):
            tell(WHO_MAY)
    changed = any(each.text != source.text for source, each in pairs)
    failed = any(each.failed for each in made)
    return FAILED if failed or (check and changed) else GOOD


def _report(source: str, made: "Made") -> None:
    for said in made.said:
        place = f"{source}: line {said.line}: " if source else ""
        notes = (f"  {note}" for note in said.notes if note != SAME_ACCOUNT)
        tell("\n".join((f"{place}{said.shown}: {said.what}", *notes)))


def _wishes(options: argparse.Namespace) -> Wishes:
    path = options.results_path
    if not path.startswith("/") or posixpath.dirname(posixpath.normpath(path)) == "/":
        options.error("--results-path: must be the absolute path of a file in a directory")
    if options.aggregator and not re.fullmatch(r"[a-z0-9][-a-z0-9.]*", options.aggregator):
        options.error("--aggregator: must be the name of a Service")
    if options.cpu_limit and not (quantity(options.cpu_limit) or 0) > 0:
        options.error("--cpu-limit: must be a quantity above 0, such as 500m")
    return Wishes(
        image=options.image,
        form=Form(options.form),
        adapter=options.adapter,
        results_path=posixpath.normpath(path),
        environment=_environment(options),
        aggregator=options.aggregator,
        cpu_limit=options.cpu_limit,
        own_token_only=options.own_token_only,
    )


def variables() -> frozenset[str]:
    """Return the names of all variables that the reporter reads, its link's among them."""
    from reporter.link.config import NAMES
    from reporter.sidecar.settings import Settings

    return NAMES | {name.upper() for name in Settings.model_fields}


def _environment(options: argparse.Namespace) -> dict[str, str]:
    """Read --env by the rules of the settings: what they would refuse is wrong usage."""
    given = {}
    for each in options.env:
        name, sign, value = each.partition("=")
        if not sign or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            options.error(f"--env {each}: must be NAME=VALUE")
        if name in _OWN_VARIABLES:
            options.error(f"--env {name}: set by inject itself")
        given[name] = value
    if not given:
        return given
    from reporter.sidecar.settings import Settings

    named = {"JOB_NAME": "job", "JOB_NAMESPACE": "namespace", "POD_NAME": "pod"}
    try:
        problems = Settings.read({**given, **named}).warnings
    except SettingsError as error:
        problems = tuple(str(error).splitlines())
    if problems:
        options.error(f"--env: {'; '.join(problems)}")
    for name in sorted(given.keys() - variables()):
        tell(f"--env {name}: not a setting of the reporter; it gets the variable anyway")
    for name in [name for name, value in given.items() if is_service_link(name, value)]:
        tell(f"--env {service_link_ignored(name, given.pop(name))}")
    return given
