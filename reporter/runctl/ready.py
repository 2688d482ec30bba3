"""Waiting until a run's aggregator is ready, and saying in words why it is not."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from reporter.cli.cluster import TIMEOUT, words
from reporter.cli.exits import USAGE
from reporter.cli.output import tell
from reporter.common.objects import Object, View, items, number, section, text
from reporter.errors import Forbidden, KubeError
from reporter.jobs.check_pod import PodView, check_pod
from reporter.jobs.finding import Finding, Weight
from reporter.jobs.reporter_log import complaints
from reporter.run.names import selector
from reporter.run.pod_status import newest_first
from reporter.runctl.cluster_run import exists
from reporter.runctl.follow import Deadline
from reporter.runctl.spec import CONTAINER, EVERY_RUN, RunSpec

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

PATIENCE = 120.0
_PAUSE = 1.0  # seconds between two looks, at most
_SETTLED = 5.0  # seconds after which a Pod that cannot be scheduled is worth a word
_MOST_EVENTS = 500
_UNPULLED = 45.0
"""Seconds after which an image that cannot be pulled is not waited for any longer.

The kubelet tries it again after 10 s and after 20 s more, and shows the failure until the image is
here: a registry that was away for a moment does no harm.
"""
_AT_ONCE = frozenset({"image-trouble", "config-trouble", "crash-loop", "start-trouble"})
_CLAIM = (
    "The volume claim {} is pending: name a storage class with --storage-class, or run with "
    "--storage none."
)
_IMAGE = (
    "The image is {}: to use another one, delete the run and start it again with --image or "
    "STATUS_CTL_IMAGE."
)


def wait_ready(
    api: "KubeApi",
    spec: RunSpec,
    deadline: Deadline,
    *,
    say: Callable[[str], None] = tell,
    wall: Callable[[], float] = time.time,
) -> list[str]:
    """Return nothing once the run's aggregator is ready, else why not when the time is over.

    That is earlier where an image cannot be pulled.

    Obstacles are reported as soon as they are known, each line once. Raises Forbidden without
    permission to read the Pod: then waiting is useless.
    """
    told, seen = set[str](), False
    unpulled: float | None = None  # since when
    while True:
        late = deadline.over()
        settled = late or deadline.elapsed >= _SETTLED
        try:
            pod = _pod(api, spec)
            if pod is not None and (end := _end(pod, exits=spec.exit)) is not None:
                return end
            if pod is None and seen and not exists(api, "Job", spec.namespace, spec.run):
                return ["the run was deleted meanwhile"]
            seen = seen or pod is not None
            findings = list(_in_the_way(api, spec, pod, wall()))
            if not any(finding.code == "image-trouble" for finding in findings):
                unpulled = None
            elif unpulled is None:
                unpulled = deadline.elapsed
            found = [
                line
                for finding in findings
                if settled or finding.code in _AT_ONCE
                for line in _lines(finding, pod)
            ]
            if settled and pod is not None:
                found += _claim(api, spec)
            if unpulled is not None and deadline.elapsed >= unpulled + _UNPULLED:
                return found
        except Forbidden:
            raise
        except KubeError as error:
            found = [words(error)]
        if late:
            return found or [f"the Pod {spec.run}-* has not become ready"]
        for line in found:
            if line not in told:
                told.add(line)
                say(line)
        deadline.sleep(_PAUSE)


def _pod(api: "KubeApi", spec: RunSpec) -> Object | None:
    own = f"{selector(spec.run)},{EVERY_RUN}"
    pods = newest_first(list(api.list_all("Pod", spec.namespace, own, timeout=TIMEOUT)))
    return pods[0] if pods else None


def _own(found: Object, kind: str) -> Object:
    """Return what there is under `kind` of the aggregator's container."""
    return next((each for each in items(found, kind) if text(each, "name") == CONTAINER), {})


def _ended(pod: Object, state: str) -> Object:
    return section(_own(section(pod, "status"), "containerStatuses"), state, "terminated")


def _end(pod: Object, *, exits: bool) -> list[str] | None:
    """Return nothing of an aggregator that is ready, why one has ended, and None to wait on.

    One that `exits` may have ended with its verdict before anybody saw it ready.
    """
    ended = _ended(pod, "state")
    code, said = number(ended, "exitCode"), list(complaints(text(ended, "message")))[-1:]
    if code == USAGE and (said or exits):  # for good: its settings are wrong, as the URL may be
        return said or ["its settings are not valid"]
    ready = bool(View(pod).condition("Ready", status="True"))
    verdict = exits and code in {0, 1}
    return [] if not View(pod).deleting and (ready or verdict) else None


def _in_the_way(api: "KubeApi", spec: RunSpec, pod: Object | None, now: float) -> Iterator[Finding]:
    if pod is None:
        maker = f"involvedObject.kind=Job,involvedObject.name={spec.run}"
        for event in _events(api, spec.namespace, maker):
            if text(event, "reason") == "FailedCreate":
                yield Finding("refused", Weight.PROBLEM, text(event, "message"))
        return
    uid = View(pod).uid
    events = _events(api, spec.namespace, f"involvedObject.uid={uid}")
    for finding in check_pod(PodView(pod, now, events)):
        if finding.weight is not Weight.INFO:
            yield finding


def _events(api: "KubeApi", namespace: str, selected: str) -> list[dict[str, Any]]:
    try:
        return api.list_page(
            "Event", namespace, field_selector=selected, limit=_MOST_EVENTS, timeout=TIMEOUT
        ).items
    except Forbidden:
        return []  # the Pod says enough


def _lines(finding: Finding, pod: Object | None) -> list[str]:
    """Return what to tell; of an aggregator that ends again and again, its own last complaint."""
    said = [finding.what, *finding.evidence, finding.todo]
    if pod is not None and finding.code == "crash-loop":
        for own in complaints(text(_ended(pod, "lastState"), "message"))[-1:]:
            said[0] = f"The aggregator keeps failing: {own}"
    if pod is not None and finding.code == "image-trouble" and finding.about == CONTAINER:
        image = text(_own(section(pod, "spec"), "containers"), "image")
        said.append(_IMAGE.format(image))
    return [line for line in said if line]


def _claim(api: "KubeApi", spec: RunSpec) -> list[str]:
    try:
        claim = api.get("PersistentVolumeClaim", spec.namespace, spec.run, timeout=TIMEOUT)
    except KubeError:
        return []
    pending = text(section(claim, "status"), "phase") == "Pending"
    return [_CLAIM.format(spec.run)] if pending else []
