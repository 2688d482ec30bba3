"""`status-ctl lint`: what of Jobs with a reporter would go wrong, from their manifests."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, open_cluster
from reporter.cli.exits import FAILED, GOOD, reading_input
from reporter.cli.output import tell
from reporter.cli.table import paint, wants_colour
from reporter.common.objects import Object, section, text
from reporter.inject.command import variables
from reporter.inject.files import add_files
from reporter.inject.rights import EVENTS, NEEDED, WATCH, Right
from reporter.lint.case import Finding, Severity, World
from reporter.lint.jobs import Job, read_jobs
from reporter.lint.reports import as_data, as_sarif, lines
from reporter.lint.rights import Account, Rights
from reporter.lint.rules import RULES, UNREADABLE, findings

if TYPE_CHECKING:
    from reporter.lint.manifest import File

DESCRIPTION = """\
Checks the manifests of Jobs, CronJobs and JobSets that have a status reporter or the label
status-reporter.io/inject, and prints each problem with file, line, field and what to do. Other
objects are skipped, except RBAC objects and ServiceAccounts, which define the permissions of
the reporter. docs/lint.md lists the rules.

exit codes:
  0    no errors (there may be warnings)
  1    there is an error; with --strict also a warning, or no Job with a reporter
  2    usage error, or a file cannot be read
  4    cannot tell: with --cluster, not reachable or forbidden
  130  Ctrl-C"""

FORMS = ("text", "json", "sarif")
_COLOURS = {Severity.ERROR: "31", Severity.WARNING: "33"}
_WANTED = (*NEEDED, WATCH, EVENTS)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_files(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 1 for warnings too, and if no Job has a reporter",
    )
    parser.add_argument(
        "--ignore",
        metavar="RULE",
        action="append",
        default=[],
        choices=[rule.id for rule in RULES],
        help="do not apply this rule; repeatable",
    )
    parser.add_argument(
        "--cluster",
        action="store_true",
        help="look up the rights of the service accounts in the cluster",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=FORMS,
        default="text",
        help="output format (default: %(default)s)",
    )
    show.colour_argument(parser)
    cluster_arguments(parser, everywhere=False)


def run(options: argparse.Namespace) -> int:
    """Read, check, say what was found, and return the exit code."""
    # PyYAML, which the completion of this command must not wait for.
    from reporter.lint.manifest import load_manifests

    with reading_input():
        files = list(load_manifests(options.files))
    found, checked = _lint(files, options)
    _put(found, checked, options)
    errors = sum(each.rule.severity is Severity.ERROR for each in found)
    if options.output == "text" or not checked:
        tell(_summary(sum(bool(job.reporters) for _, job in checked), errors, len(found) - errors))
    return FAILED if errors or (options.strict and (found or not checked)) else GOOD


def _lint(
    files: "Sequence[File]", options: argparse.Namespace
) -> tuple[list[Finding], list[tuple[str, Job]]]:
    from reporter.sidecar.settings import Settings

    objects: dict[str, list[Object]] = {}
    for file in files:
        for each in file.manifests:
            objects.setdefault(text(each.value, "kind"), []).append(each.value)
    jobs = [
        [
            (manifest, job)
            for manifest in file.manifests
            for job in read_jobs(manifest.value, manifest.place, options.namespace or "")
        ]
        for file in files
    ]
    everyone = [job for each in jobs for _, job in each]
    denied = dict(_denied(everyone, options)) if options.cluster else {}
    world = World(Settings.complaints, Rights(objects), denied, variables())
    found, checked = list[Finding](), list[tuple[str, Job]]()
    for file, own in zip(files, jobs, strict=True):
        if UNREADABLE.id not in options.ignore:
            found += [
                Finding(UNREADABLE, mistake.place, f"{mistake}.", "", file.shown, mistake.line)
                for mistake in file.mistakes
            ]
        for manifest, job in own:
            checked.append((file.shown, job))
            found += [
                replace(
                    each,
                    file=file.shown,
                    line=manifest.line(each.place),
                    field=manifest.field(each.place),
                    object=job.title,
                )
                for each in findings(job, world, options.ignore)
            ]
    return found, checked


def _denied(
    jobs: Sequence[Job], options: argparse.Namespace
) -> Iterator[tuple[tuple[Account, str], frozenset[Right]]]:
    """Ask the cluster which permissions the accounts lack. Raises CannotTell."""
    api, namespace = open_cluster(options)
    assert namespace is not None
    asked = {(Account(job.namespace, job.account), job.name) for job in jobs if job.reporters}
    with closing(api), asking():
        for account, job in sorted(asked):
            where = account.namespace or namespace
            lacking = []
            for right in _WANTED:
                body = _review(right, where, account.name, job)
                made = api.create("LocalSubjectAccessReview", where, body, timeout=TIMEOUT)
                if section(made, "status").get("allowed") is not True:
                    lacking.append(right)
            yield (account, job), frozenset(lacking)


def _review(right: Right, namespace: str, account: str, job: str) -> Object:
    resource, _, part = right.resource.partition("/")
    attributes = {
        "namespace": namespace,
        "group": right.group,
        "resource": resource,
        "subresource": part,
        "verb": right.verb,
        "name": job if part else "",
    }
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "LocalSubjectAccessReview",
        "metadata": {"namespace": namespace},
        "spec": {
            "user": f"system:serviceaccount:{namespace}:{account}",
            "groups": [*groups, "system:authenticated"],
            "resourceAttributes": {key: value for key, value in attributes.items() if value},
        },
    }


def _put(
    found: Sequence[Finding],
    checked: Sequence[tuple[str, Job]],
    options: argparse.Namespace,
) -> None:
    match options.output:
        case "json":
            show.put_data("json", as_data(found, checked))
        case "sarif":
            show.put_data("json", as_sarif(found))
        case _:
            colour = wants_colour(sys.stdout, refused=options.no_color)
            for each in found:
                word = str(each.rule.severity)
                painted = paint(word, _COLOURS[each.rule.severity] if colour else "")
                first, *rest = lines(each)
                show.put([first.replace(f" {word}: ", f" {painted}: ", 1), *rest])


def _summary(jobs: int, errors: int, warnings: int) -> str:
    counted = f"{_counted(errors, 'error')}, {_counted(warnings, 'warning')}"
    if not jobs:
        return f"no Jobs with a status reporter found; {counted}"
    return f"{_counted(jobs, 'Job')} with a status reporter: {counted}"


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
