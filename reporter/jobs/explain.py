"""`status-ctl explain`: reads what became of a Job, and shows what `jobs` makes of it."""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reporter.cli import output as show
from reporter.cli.cluster import TIMEOUT, asking, cluster_arguments, job_name, open_cluster
from reporter.cli.exits import GOOD, CannotTell
from reporter.cli.table import paint, wants_colour
from reporter.common.objects import Object, View, section
from reporter.common.text import clean
from reporter.errors import InvalidRequest, KubeError, NotFound
from reporter.jobs.check_job import Look, findings, findings_of_runs, last_runs
from reporter.jobs.finding import Finding, Weight
from reporter.jobs.job import JobView, Outcome, newest_pod, pods_selector
from reporter.jobs.setting import find_setup
from reporter.verdict.facts import Container, Running, Terminated, Waiting
from reporter.verdict.pod import find_adapter, read_container

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
MOST_EVENTS = 500
_END_OF_LOG = {"tailLines": "100"}  # with limitBytes it would be the beginning of its end
_MOST_OF_LOG = 65536  # bytes
_NO_LOG = "unable to retrieve container logs"  # as the kubelet answers for one that is gone
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


@dataclass(frozen=True, slots=True)
class _Explained:
    """A Job or a CronJob, as `sort` says, and what is to be known of it."""

    sort: str
    named: Object
    findings: list[Finding]

    def put(self, options: argparse.Namespace) -> None:
        """Write it for people."""
        view = View(self.named)
        colours = _WEIGHTS if wants_colour(sys.stdout, refused=options.no_color) else {}
        name = f"{view.namespace}/{view.name}"
        lines = [clean(f"{self.sort} {name}", 512), ""]
        for each in self.findings:
            weight = paint(f"{each.weight + ':':<9}", colours.get(each.weight, ""))
            lines.append(weight + clean(each.what, 4096))
            if options.output == "wide" or each.weight is not Weight.INFO:
                lines += [f"{_INDENT}- {clean(line, 1024)}" for line in each.evidence]
            if each.todo:
                lines.append(f"{_INDENT}What to do: {clean(each.todo, 1024)}")
        show.put(lines)

    def document(self) -> dict[str, Any]:
        """Return it for JSON and YAML."""
        view = View(self.named)
        return {
            "api_version": API_VERSION,
            "kind": "Explanation" if self.sort == "Job" else f"{self.sort}Explanation",
            self.sort.lower(): {"namespace": view.namespace, "name": view.name, "uid": view.uid},
            "findings": [
                {
                    "code": each.code,
                    "weight": str(each.weight),
                    "what": each.what,
                    "todo": each.todo,
                    "evidence": list(each.evidence),
                }
                for each in self.findings
            ],
        }


def run(options: argparse.Namespace) -> int:
    """Read, explain, and return the exit code."""
    sort, _, rest = options.job.rpartition("/")
    cron = sort in _CRON_JOBS
    name = job_name(rest if cron else options.job, options)
    api, namespace = open_cluster(options)
    assert namespace is not None
    with closing(api):
        parts = list((_cron_job if cron else _job)(api, namespace, name))
    match options.output:
        case "name":
            show.put_names(finding.code for finding in parts[0].findings)
        case "json" | "yaml" as form:
            document = parts[0].document()
            if cron:
                document["last"] = parts[1].document() if parts[1:] else None
            show.put_data(form, document)
        case _:
            parts[0].put(options)
            for part in parts[1:]:
                show.put([""])
                part.put(options)
    return GOOD


def _job(api: "KubeApi", namespace: str, name: str) -> Iterator[_Explained]:
    with _asking_for(f"Job {name!r}", namespace):
        job = api.get("Job", namespace, name, timeout=TIMEOUT)
    yield _Explained("Job", job, findings(_look(api, namespace, JobView(job))))


def _cron_job(api: "KubeApi", namespace: str, name: str) -> Iterator[_Explained]:
    """Yield the CronJob and, unless that is good, its newest run."""
    with _asking_for(f"CronJob {name!r}", namespace):
        cron_job = api.get("CronJob", namespace, name, timeout=TIMEOUT)
        runs = last_runs(cron_job, api.list_all("Job", namespace, timeout=TIMEOUT))
    yield _Explained("CronJob", cron_job, findings_of_runs(cron_job, runs))
    if runs and runs[0].outcome is not Outcome.GOOD:
        yield _Explained("Job", runs[0].object, findings(_look(api, namespace, runs[0])))


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


def _look(api: "KubeApi", namespace: str, job: JobView) -> Look:
    """Read what belongs to the Job. A refusal is reported and not fatal."""
    unread: dict[str, str] = {}
    pods, events, log = list[Object](), list[Object](), ""

    @contextmanager
    def reading(what: str) -> Iterator[None]:
        try:
            yield
        except KubeError as error:
            unread[what] = str(error)

    with reading("pods"):
        selector = pods_selector(job.object)
        pods += api.list_page("Pod", namespace, selector, limit=MOST_PODS, timeout=TIMEOUT).items
    newest = newest_pod(pods) or {}
    with reading("events"):
        for uid in filter(None, (job.uid, View(newest).uid)):
            selected = f"involvedObject.uid={uid}"
            events += api.list_page(
                "Event", namespace, field_selector=selected, limit=MOST_EVENTS, timeout=TIMEOUT
            ).items

    def log_of(container: str, query: Mapping[str, str] = _END_OF_LOG) -> str:
        found = b""
        for piece in api.read_log(namespace, View(newest).name, container, query, timeout=TIMEOUT):
            found = (found + piece)[-_MOST_OF_LOG:]
        return found.decode(errors="replace")

    if container := _to_hear(newest, job):
        with reading("reporter's log"):
            log = log_of(container)
    printed = ""
    if adapter := _adapter_to_hear(newest, job):
        # One that is run again has said nothing yet of what the verdict is about.
        again = adapter.last is not None and not isinstance(adapter.state, Terminated)
        ended = adapter.last if again else adapter.state
        printed = ended.message if isinstance(ended, Terminated) else ""
        # Where it has gone with its container, that one's status is what is left.
        with reading("adapter's log"), suppress(NotFound, InvalidRequest):
            found = log_of(adapter.name, _END_OF_LOG | ({"previous": "true"} if again else {}))
            printed = printed if found.startswith(_NO_LOG) else found
    return Look(job, pods, time.time(), events, log, unread, printed)


def _adapter_to_hear(pod: Object, job: JobView) -> Container | None:
    """Return the adapter's container where it has run and a verdict on it is no success."""
    setup, pod_name = find_setup(section(pod, "spec")), View(pod).name
    failed = any(each.failed or each.after for each in job.verdicts if each.pod in {"", pod_name})
    if setup is None or not failed:
        return None
    adapter = read_container(pod, find_adapter(pod, setup.names)[0])
    return adapter if adapter.last or not isinstance(adapter.state, Waiting) else None


def _to_hear(pod: Object, job: JobView) -> str:
    """Name the reporter's container where it has started and its log may say what the Job does not.

    That is why its last word is not there, or what became of its link to an aggregator.
    """
    setup, name = find_setup(section(pod, "spec")), View(pod).name
    done = any(each.final and each.pod == name for each in job.verdicts)
    if setup is None or (done and "AGGREGATOR_URL" not in setup.values):
        return ""
    started = isinstance(read_container(pod, setup.name).state, Running | Terminated)
    return setup.name if started else ""
