"""One scenario's Job, from its creation to its end, and what became of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.bed.api import ApiError
from tests.bed.node import Node
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, Object, container, make_job
from tests.blackbox.scenarios.recorder import Recorder, Seen
from tests.blackbox.scenarios.scenario import Scenario

ANNOTATION = "status-reporter.io/Available"
FIELDS = {"type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime"}


@dataclass(frozen=True)
class Shown:
    """Our condition together with our annotation, as one version of the Job had them."""

    at: float
    condition: dict[str, str]
    note: dict[str, Any]

    @property
    def reason(self) -> str:
        return self.condition["reason"]

    @property
    def final(self) -> bool:
        return bool(self.note.get("final"))

    def __str__(self) -> str:
        said = " ".join(self.condition.get(key, "-") for key in ("status", "reason", "message"))
        kind = "final" if self.final else "revisable"
        pod = self.note.get("attempt", {}).get("pod", "?")
        return f"{self.at:.3f} {self.note.get('rule', '?')} {kind} by {pod}: {said}"


class Run:
    """A Job in the making; everything it tells is as new as the watch."""

    def __init__(self, node: Node, recorder: Recorder, namespace: str, name: str) -> None:
        self.node, self.recorder = node, recorder
        self.controlplane = node.controlplane
        self.namespace, self.name = namespace, name
        self.form = ""

    @property
    def path(self) -> str:
        """Where the Job is in the API."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{self.name}"

    def pod_path(self, name: str) -> str:
        """Where one of its Pods is."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"

    def start(self, scenario: Scenario, form: str) -> None:
        """Create the scenario's Job in one form."""
        self.form = form
        job = make_job(
            self.controlplane,
            form,
            self.name,
            scenario.script,
            settings=scenario.settings,
            grace=scenario.grace,
        )
        pod = job["spec"]["template"]["spec"]
        container(pod, ADAPTER).update(scenario.container)
        pod |= scenario.pod
        job["spec"] |= scenario.job
        if scenario.change:
            scenario.change(job, form)
        self.create(job)

    def create(self, job: Object) -> None:
        """Create a Job that was made by hand."""
        self.controlplane.request("POST", self.path.rpartition("/")[0], job)

    def versions(self) -> list[Seen]:
        """The Job's versions so far."""
        return self.recorder.job(self.namespace, self.name)

    def pods(self) -> list[list[Seen]]:
        """The versions of each of its Pods, the oldest Pod first."""
        return list(self.recorder.pods(self.namespace, self.name).values())

    def pod(self) -> Object:
        """The newest version of the newest Pod, empty before there is one."""
        pods = self.pods()
        return pods[-1][-1].object if pods else {}

    def history(self) -> list[Shown]:
        """Our condition and annotation, whenever one of them changed."""
        shown: list[Shown] = []
        for seen in self.versions():
            found = condition(seen.object, "Available")
            note = json.loads(seen.object["metadata"].get("annotations", {}).get(ANNOTATION, "{}"))
            if found and (not shown or (shown[-1].condition, shown[-1].note) != (found, note)):
                shown.append(Shown(seen.at, found, note))
        return shown

    def log(self) -> list[dict[str, Any]]:
        """The lines of all reporters of this Job, decoded, by Pod and in order."""
        lines = [line for pod in self.pods() for line in self.output(pod[-1].object, REPORTER)]
        return [json.loads(line) if line.startswith("{") else {"raw": line} for line in lines]

    def output(self, pod: Object, name: str) -> list[str]:
        """What a container wrote, in all its runs."""
        return [line.split(" ", 3)[3] for line in self.recorder.log(pod, name)]

    def wait(self, ready: Callable[[], Any], what: str, seconds: float = 60) -> Any:
        """Wait for news that make `ready` true."""
        return self.recorder.wait(ready, seconds, f"{self.name}: {what}")

    def wait_running(self, name: str = ADAPTER) -> Object:
        """Wait until a container of the newest Pod runs; return the Pod."""
        self.wait(lambda: "running" in state(self.pod(), name), f"container {name} runs")
        return self.pod()

    def wait_reported(self) -> Object:
        """Wait until the adapter runs and the condition is there; return the Pod."""
        pod = self.wait_running()
        self.wait(self.history, "a condition")
        return pod

    def wait_reason(self, reason: str, seconds: float = 90) -> Shown:
        """Wait until the condition has had this reason."""
        found: Shown = self.wait(
            lambda: next((s for s in self.history() if s.reason == reason), None),
            f"reason {reason}",
            seconds,
        )
        return found

    def wait_ended(self, seconds: float) -> None:
        """Wait until the Job has come to its end and each of its Pods too."""
        self.wait(self.ended, "Job and Pods have ended", seconds)

    def delete(self, *, policy: str = "Background") -> None:
        """Delete the Job, if it is still there."""
        body = {"propagationPolicy": policy}
        with suppress(ApiError):
            self.controlplane.request("DELETE", self.path, body)

    def ended(self) -> bool:
        """Whether the Job has come to its end, or is gone, and each of its Pods too."""
        versions, pods = self.versions(), self.pods()
        if not versions or not all(_pod_ended(pod[-1]) for pod in pods):
            return False
        job = versions[-1]
        kinds = ("Complete", "Failed")
        if job.gone or any(condition(job.object, kind).get("status") == "True" for kind in kinds):
            return True
        # A controller that was cut off may have counted the last failure and looks no more.
        status = job.object.get("status", {})
        left = status.get("active", 0) + status.get("terminating", 0)
        return not left and status.get("failed", 0) > job.object["spec"]["backoffLimit"]

    def report(self) -> str:
        """All there is to know about it, for a person."""
        pods = [pod[-1] for pod in self.pods()]
        parts = [f"== {self.namespace}/{self.name}", "-- our condition"]
        parts += [str(shown) for shown in self.history()]
        if versions := self.versions():
            parts += [
                "-- the Job's conditions" + (" (gone)" if versions[-1].gone else ""),
                *(
                    f"{c['type']}={c['status']} {c.get('reason')}: {c.get('message')}"
                    for c in versions[-1].object.get("status", {}).get("conditions", [])
                ),
            ]
        for pod in pods:
            name = pod.object["metadata"]["name"]
            status = {k: v for k, v in pod.object["status"].items() if k != "podIPs"}
            parts += [f"-- Pod {name}{' (gone)' if pod.gone else ''}", json.dumps(status)]
            for each in (REPORTER, ADAPTER):
                parts += [f"-- output of {name}/{each}", *self.recorder.log(pod.object, each)]
        return "\n".join(parts)


def condition(job: Object, kind: str) -> dict[str, str]:
    """A condition of a Job, empty where it has none of that type."""
    found = job.get("status", {}).get("conditions", [])
    return next((c for c in found if c["type"] == kind), {})


def state(pod: Object, name: str) -> dict[str, Any]:
    """A container's state in a version of a Pod."""
    return dict(container_status(pod, name).get("state", {}))


def container_status(pod: Object, name: str) -> dict[str, Any]:
    """All that a version of a Pod says of a container."""
    status = pod.get("status", {})
    shown = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
    return next((entry for entry in shown if entry["name"] == name), {})


def _pod_ended(seen: Seen) -> bool:
    return seen.gone or seen.object["status"].get("phase") in {"Succeeded", "Failed"}


def play(run: Run, scenario: Scenario, form: str) -> None:
    """Run the scenario to its end; TimeoutError where something never comes."""
    end = time.monotonic() + scenario.seconds
    try:
        run.start(scenario, form)
        if scenario.act:
            scenario.act(run)
        if not scenario.ends:
            run.wait_reason(scenario.expected.reason, end - time.monotonic())
            run.delete()
            run.wait(lambda: run.versions()[-1].gone, "the Job is deleted")
        run.wait_ended(end - time.monotonic())
    finally:
        run.delete()


def check(run: Run, scenario: Scenario) -> None:
    """Assert that the Job has shown what the scenario expects, and nothing wrong on the way."""
    if scenario.judge:
        scenario.judge(run)
        return
    expected, history = scenario.expected, run.history()
    last = history[-1]
    stands = (last.note["rule"], last.condition["status"], last.reason, last.final)
    assert (expected.row, expected.status, expected.reason, expected.final) == stands
    assert re.fullmatch(expected.message, last.condition["message"]), last.condition["message"]
    assert all(set(shown.condition) == FIELDS for shown in history)
    before = {shown.reason for shown in history if not shown.final} - {expected.reason}
    assert before <= expected.before

    finals: list[tuple[str, str, dict[str, str]]] = []
    for shown in history:
        said = shown.note["rule"], shown.note["attempt"]["pod"], shown.condition
        if shown.final and said not in finals:
            finals.append(said)
    assert expected.all_finals == tuple(row for row, *_ in finals)
    canonical = [line["rule"] for line in run.log() if line.get("message") == "Verdict"]
    assert any(canonical == [*expected.all_finals] * times for times in scenario.lines)
    if not scenario.errors:
        assert [] == [
            line for line in run.log() if "raw" in line or line["level"] in {"error", "critical"}
        ]
    if scenario.ends:
        by_row = 0 if run.form == "native" or expected.row in {"R", "S"} else 1
        code = by_row if expected.exit_code is None or run.form == "native" else expected.exit_code
        assert code == reporter_end(run).get("exitCode")
    if scenario.check:
        scenario.check(run)


def reporter_end(run: Run) -> dict[str, Any]:
    """How the reporter of the newest Pod ended, as far as the API showed it."""
    for seen in reversed(run.pods()[-1]):
        if ended := state(seen.object, REPORTER).get("terminated"):
            return dict(ended)
    return {}


@contextmanager
def explained(*runs: Run) -> Iterator[None]:
    """Print all there is to know about the runs when something in here fails."""
    try:
        yield
    except BaseException:
        for run in runs:
            print(run.report())
        raise


def touch(node: Node, pod: Object, volume: str, name: str) -> None:
    """Make an empty file in a Pod's emptyDir from outside, also while the API server is away."""
    volumes = node.places.kubelet / "pods" / pod["metadata"]["uid"] / "volumes"
    (volumes / "kubernetes.io~empty-dir" / volume / name).touch()
