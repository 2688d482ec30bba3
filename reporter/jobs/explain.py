"""`status-ctl explain`: reads what became of a Job, and shows what `jobs` makes of it."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, job_name, open_cluster
from reporter.cli.exits import GOOD, CannotTell
from reporter.cli.table import paint, wants_colour
from reporter.common.objects import items, section, text
from reporter.common.text import clean
from reporter.errors import KubeError, NotFound
from reporter.jobs.cron_job import findings_of_runs, last_runs
from reporter.jobs.finding import Finding, Object, Objects, Weight
from reporter.jobs.job import findings, newest_pod, standing
from reporter.jobs.outcome import JobOutcome, outcome
from reporter.jobs.setting import find_setup

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DESCRIPTION = """\
Reads a Job, its Pods and their events with your own permissions, and explains what happened and
what to do. For cronjob/NAME it lists the last runs and explains the newest one unless it passed.

exit codes:
  0    the Job could be read, whatever its outcome
  2    usage error
  4    cannot tell: not reachable, forbidden, no such Job or CronJob
  130  Ctrl-C"""

API_VERSION = "v1"
MOST_PODS = 50
_CRON_JOBS = ("cronjob", "cronjobs", "cj", "cronjob.batch", "cronjobs.batch")
_WEIGHTS = {Weight.PROBLEM: "31", Weight.WARNING: "33", Weight.INFO: "32"}
_INDENT = " " * 9


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "job", metavar="JOB", help="the Job's name, also as job/NAME, or cronjob/NAME"
    )
    show.arguments(parser)
    cluster_arguments(parser, everywhere=False)


def run(options: argparse.Namespace) -> int:
    """Read, explain, and return the exit code."""
    sort, _, rest = options.job.rpartition("/")
    if sort in _CRON_JOBS:
        return _explain_cron_job(job_name(rest, options), options)
    name = job_name(options.job, options)
    api, namespace = open_cluster(options)
    assert namespace is not None
    with _asking_for(f"Job {name!r}", namespace):
        job = api.view_job(namespace, name, timeout=TIMEOUT)
    objects = _read(api, namespace, job)
    _put(objects, findings(objects), options)
    api.close()
    return GOOD


def _explain_cron_job(name: str, options: argparse.Namespace) -> int:
    api, namespace = open_cluster(options)
    assert namespace is not None
    with _asking_for(f"CronJob {name!r}", namespace):
        cron_job = api.get("CronJob", namespace, name, timeout=TIMEOUT)
        runs = last_runs(cron_job, api.list_jobs(namespace, timeout=TIMEOUT))
    found = findings_of_runs(cron_job, runs)
    wanted = bool(runs) and outcome(runs[0]) is not JobOutcome.GOOD
    newest = _read(api, namespace, runs[0]) if wanted else None
    api.close()
    last = None if newest is None else _document(newest, findings(newest))
    match options.output:
        case "name":
            show.put_names(finding.code for finding in found)
        case "json" | "yaml":
            metadata = section(cron_job, "metadata")
            document = {
                "api_version": API_VERSION,
                "kind": "CronJobExplanation",
                "cronjob": {key: text(metadata, key) for key in ("namespace", "name", "uid")},
                "findings": [_data(each) for each in found],
                "last": last,
            }
            show.put_data(options.output, document)
        case _:
            _put_text(f"CronJob {namespace}/{name}", found, options)
            if newest is not None:
                show.put([""])
                _put(newest, findings(newest), options)
    return GOOD


@contextmanager
def _asking_for(what: str, namespace: str) -> Iterator[None]:
    with asking():
        try:
            yield
        except NotFound:
            raise CannotTell(
                f"no {what} in namespace {namespace!r}: it was deleted or is in another "
                "namespace (-n)"
            ) from None


def _read(api: "KubeApi", namespace: str, job: Object) -> Objects:
    """Read what belongs to the Job. A refusal is reported and not fatal."""
    unread: dict[str, str] = {}
    pods, events, logs = list[dict[str, Any]](), list[dict[str, Any]](), dict[str, str]()
    labels = section(job, "spec", "selector", "matchLabels")
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    try:
        pods = api.list_pods(namespace, selector, limit=MOST_PODS, timeout=TIMEOUT)
    except KubeError as error:
        unread["pods"] = str(error)
    newest = newest_pod(pods) or {}
    try:
        for found in (job, newest):
            if uid := text(section(found, "metadata"), "uid"):
                selected = f"involvedObject.uid={uid}"
                events += api.list_events(namespace, selected, timeout=TIMEOUT)
    except KubeError as error:
        unread["events"] = str(error)
    container = _to_hear(newest, job)
    pod = text(section(newest, "metadata"), "name")
    if container:
        try:
            log = api.read_log(namespace, pod, container, timeout=TIMEOUT)
        except KubeError as error:
            unread["reporter's log"] = str(error)
        else:
            logs[pod] = log.decode(errors="replace")
    return Objects(job, pods, time.time(), events, logs, unread)


def _to_hear(pod: Object, job: Object) -> str:
    """Name the reporter's container where it has started and its log may say what the Job does not.

    That is why its last word is not there, or what became of its link to an aggregator.
    """
    setup = find_setup(section(pod, "spec"))
    if setup is None:
        return ""
    name = text(section(pod, "metadata"), "name")
    done = any(each.final and each.pod == name for each in standing(job))
    if done and "AGGREGATOR_URL" not in setup.values:
        return ""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in items(section(pod, "status"), kind):
            state = section(container, "state")
            if text(container, "name") == setup.name and (
                "running" in state or "terminated" in state
            ):
                return setup.name
    return ""


def _put(objects: Objects, found: list[Finding], options: argparse.Namespace) -> None:
    metadata = section(objects.job, "metadata")
    match options.output:
        case "name":
            show.put_names(finding.code for finding in found)
        case "json" | "yaml":
            show.put_data(options.output, _document(objects, found))
        case _:
            name = f"{text(metadata, 'namespace')}/{text(metadata, 'name')}"
            _put_text(f"Job {name}", found, options)


def _put_text(title: str, found: list[Finding], options: argparse.Namespace) -> None:
    colour = wants_colour(sys.stdout, refused=options.no_color)
    lines = [clean(title, 512), ""]
    for finding in found:
        lines += _lines(finding, colour=colour, wide=options.output == "wide")
    show.put(lines)


def _lines(finding: Finding, *, colour: bool, wide: bool) -> list[str]:
    weight = f"{finding.weight + ':':<9}"
    lines = [paint(weight, _WEIGHTS[finding.weight] if colour else "") + clean(finding.what, 4096)]
    if wide or finding.weight is not Weight.INFO:
        lines += [f"{_INDENT}- {clean(line, 1024)}" for line in finding.evidence]
    if finding.todo:
        lines.append(f"{_INDENT}What to do: {clean(finding.todo, 1024)}")
    return lines


def _document(objects: Objects, found: list[Finding]) -> dict[str, Any]:
    metadata = section(objects.job, "metadata")
    return {
        "api_version": API_VERSION,
        "kind": "Explanation",
        "job": {key: text(metadata, key) for key in ("namespace", "name", "uid")},
        "findings": [_data(each) for each in found],
    }


def _data(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "weight": str(finding.weight),
        "what": finding.what,
        "todo": finding.todo,
        "evidence": list(finding.evidence),
    }
