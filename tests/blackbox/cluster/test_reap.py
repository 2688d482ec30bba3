"""status-ctl reap on the real cluster: every way in which a reporter can be lost, all at once.

One reaper runs beside them with the account of deploy/reaper, looks every second and waits for two;
others are the Pods of the CronJob and of the Deployment. What they decide in which situation is in
tests/unit/reap.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed.controlplane import ControlPlane
from tests.bed.hollow import HollowNodes
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE
from tests.blackbox.scenarios.jobs import REPORTER, container, make_job, writes
from tests.blackbox.scenarios.run import Run, Shown, condition, explained, state
from tests.blackbox.scenarios.stage import Stage

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[3]
TWICE = ("one", "two")
LABEL, MISSING = "reaped-by", "127.0.0.1:9/no-such-image:1"
ACCOUNT = "status-reaper"
USER = f"system:serviceaccount:{ACCOUNT}:{ACCOUNT}"
Object = dict[str, Any]


class Reaper:
    """A reaper that runs, and what it has said so far."""

    def __init__(self, controlplane: ControlPlane, namespace: str, folder: Path) -> None:
        target = folder / "kubeconfig"
        target.write_text(yaml.safe_dump(_with_token(controlplane)))
        words = ["-n", namespace, "-l", f"{LABEL}=watch", "--settle", "2s", "--interval", "1s"]
        words += ["-o", "json", "--kubeconfig", str(target)]
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "cmd/status-ctl.py"), "reap", "--watch", *words],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)},
            stdout=subprocess.PIPE,
        )
        self.said: list[Object] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said.append(json.loads(line))

    def stop(self) -> int:
        self._process.terminate()
        code = self._process.wait(30)
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


def _with_token(controlplane: ControlPlane) -> Object:
    """The administrator's kubeconfig with the reaper's token instead of the certificate."""
    config: Object = yaml.safe_load(controlplane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": controlplane.create_token(ACCOUNT, ACCOUNT)}
    return config


class Lost:
    """The Jobs of this module, by situation and number."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.runs: dict[str, Run] = {}

    def start(self, name: str, *, script: str = "sleep 300", by: str = "watch", **pod: Any) -> Run:
        run = self.stage.new_run(f"lost-{name}")
        job = make_job(self.stage.controlplane, "native", run.name, script, grace=2)
        job["metadata"].setdefault("labels", {})[LABEL] = by
        spec = job["spec"]["template"]["spec"]
        if image := pod.pop("image", ""):
            container(spec, REPORTER).update(image=image, imagePullPolicy="IfNotPresent")
        spec |= pod
        run.create(job)
        self.runs[name] = run
        return run

    def force_delete(self, name: str, by: str = "watch") -> None:
        run = self.start(name, by=by)
        run.wait_running()
        run.wait_reason("AdapterRunning")
        path = run.pod_path(run.pod()["metadata"]["name"])
        run.controlplane.request("DELETE", f"{path}?gracePeriodSeconds=0")

    def kill(self, name: str) -> None:
        """SIGKILL for every process of the Pod, its sandbox included."""
        run = self.start(name)
        run.wait_running()
        run.wait_reason("AdapterRunning")
        pod = run.pod()["metadata"]["name"]
        shim = _parent(run.node.container_pid(run.namespace, pod, "adapter"))
        processes = (int(each) for each in os.listdir("/proc") if each.isdigit())
        for pid in [each for each in processes if _parent(each) == shim]:
            os.kill(pid, signal.SIGKILL)

    def remove_node(self, name: str, nodes: HollowNodes) -> None:
        """The Node object goes, while its Pod is said to run."""
        nodes.add(f"gone-{name}")
        run = self.start(name, nodeName=f"gone-{name}")
        run.wait(lambda: "running" in state(run.pod(), REPORTER), "the Pod is said to run")
        nodes.remove(f"gone-{name}")


def _parent(pid: int) -> int:
    """The parent of a process; 0 for one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def apply_reaper(controlplane: ControlPlane, folder: str, kind: str, *options: str) -> None:
    """What is shipped, but for the image, the way to the API server and these options."""
    found = list(yaml.safe_load_all(controlplane.kubectl("kustomize", str(ROOT / folder))))
    (made,) = (each for each in found if each["kind"] == kind)
    spec = made["spec"]
    if kind == "CronJob":
        spec["suspend"] = True  # it is started by hand
        spec = spec["jobTemplate"]["spec"]
    pod = spec["template"]["spec"]
    pod["nodeName"] = Node.name
    (own,) = pod["containers"]
    own |= {"image": PRODUCT_IMAGE, "imagePullPolicy": "Never"}
    own["command"] += ["--settle", "2s", *options]
    own["env"] = controlplane.service_env()
    controlplane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(found))


@pytest.fixture(scope="module")
def reaper(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reaper]:
    """The reaper at work."""
    controlplane = stage.controlplane
    apply_reaper(controlplane, "deploy/reaper/cronjob", "CronJob", "-l", f"{LABEL}=cronjob")
    pace = ("--interval", "1s")
    apply_reaper(controlplane, "deploy/reaper", "Deployment", "-l", f"{LABEL}=deployment", *pace)
    running = Reaper(controlplane, stage.namespace(), tmp_path_factory.mktemp("reaper"))
    try:
        yield running
    finally:
        assert 0 == running.stop()
        controlplane.request("DELETE", f"/api/v1/namespaces/{ACCOUNT}")
        for kind in ("clusterroles", "clusterrolebindings"):
            path = f"/apis/rbac.authorization.k8s.io/v1/{kind}/{ACCOUNT}"
            controlplane.request("DELETE", path)


@pytest.fixture(scope="module")
def lost(stage: Stage, reaper: Reaper) -> Iterator[Lost]:
    """All of them, in trouble by now."""
    jobs = Lost(stage)
    with HollowNodes(stage.controlplane) as nodes, ThreadPoolExecutor(8) as pool:
        began = [pool.submit(jobs.remove_node, f"node-{n}", nodes) for n in TWICE]
        began.append(pool.submit(jobs.start, "living"))
        script, account = f"sleep 2; {writes()}", "default"  # which has no rights
        began.append(pool.submit(jobs.start, "mute", script=script, serviceAccountName=account))
        for form in ("cronjob", "deployment"):
            began.append(pool.submit(jobs.force_delete, form, by=form))
        for n in TWICE:
            began.append(pool.submit(jobs.force_delete, f"deleted-{n}"))
            began.append(pool.submit(jobs.kill, f"killed-{n}"))
            script = f"sleep 2; {writes()}"
            began.append(pool.submit(jobs.start, f"never-{n}", script=script, image=MISSING))
        for each in began:
            each.result()
        yield jobs
        for run in jobs.runs.values():
            run.delete()


def last(run: Run) -> Shown:
    """The newest word on the Job."""
    shown = run.history()
    assert shown, run.report()
    return shown[-1]


def final(run: Run, seconds: float = 60) -> Shown:
    """Wait for the last word."""
    run.wait(lambda: (found := run.history()) and found[-1].final, "a final verdict", seconds)
    return last(run)


@pytest.mark.parametrize("number", TWICE)
def test_reporter_that_never_started(lost: Lost, number: str) -> None:
    """Its cause is on the Job; and once it starts after all, its word replaces that."""
    run = lost.runs[f"never-{number}"]
    with explained(run):
        shown = run.wait_reason("AdapterInterrupted")

        assert not shown.final
        assert shown.condition["message"].startswith(
            "Reporter did not start (its image cannot be pulled) before a verdict was known;"
        )
        assert "ImagePull" in shown.note["evidence"]["reaper"]["reporter"]["reason"]
        path = run.pod_path(run.pod()["metadata"]["name"])
        change = {"spec": {"initContainers": [{"name": REPORTER, "image": PRODUCT_IMAGE}]}}
        kind = "application/strategic-merge-patch+json"
        run.controlplane.request("PATCH", path, change, kind)
        done = final(run, 90)

        assert ("True", "Checked") == (done.condition["status"], done.reason)
        assert "reaper" not in done.note["evidence"]


@pytest.mark.parametrize("number", TWICE)
@pytest.mark.parametrize("way", ["deleted", "killed"])
def test_force_deletion_and_sigkill(lost: Lost, way: str, number: str) -> None:
    """The reaper's word is final once the Job has ended."""
    run = lost.runs[f"{way}-{number}"]
    with explained(run):
        shown = final(run)

        assert ("N", "Unknown", "AdapterInterrupted") == (
            shown.note["rule"],
            shown.condition["status"],
            shown.reason,
        )
        if way == "killed":
            said = "Reporter ended before a verdict was known; adapter container ended with exit "
            assert said + "code 137" == shown.condition["message"]


def test_reporter_that_may_not_write(lost: Lost) -> None:
    """Its termination message, which its restricted Pod can write, has its verdict."""
    run = lost.runs["mute"]
    with explained(run):
        shown = final(run)

        assert ("N", "Unknown") == (shown.note["rule"], shown.condition["status"])
        said = (
            "Reporter ended; the verdict was True Checked: All is well; writing it was forbidden: "
        )
        assert shown.condition["message"].startswith(said)


def test_cronjob(lost: Lost) -> None:
    """The shipped Pod runs under the restricted profile and does the same."""
    run = lost.runs["cronjob"]
    controlplane = run.controlplane
    run.wait(lambda: condition(run.versions()[-1].object, "Failed"), "the Job has failed")
    controlplane.kubectl(
        *("create", "job", "by-hand", "--from", f"cronjob/{ACCOUNT}", "-n", ACCOUNT)
    )
    path = f"/apis/batch/v1/namespaces/{ACCOUNT}/jobs/by-hand"
    controlplane.api.wait_for(path, lambda job: job["status"].get("succeeded") == 1)

    assert "AdapterInterrupted" == final(run).reason


def test_deployment(lost: Lost) -> None:
    """Its Pod does the same, and goes on: its probe finds it well."""
    run = lost.runs["deployment"]
    with explained(run):
        assert "AdapterInterrupted" == final(run).reason
    path = f"/api/v1/namespaces/{ACCOUNT}/pods?labelSelector=pod-template-hash"

    def ready(found: Any) -> bool:
        statuses = [pod["status"].get("containerStatuses", ()) for pod in found["items"]]
        return any(each["ready"] for shown in statuses for each in shown)

    # Its first look may be over before the first probe; and the Pod that was deleted may have
    # written its last word itself, before the Deployment has one.
    (pod,) = run.controlplane.api.wait_for(path, ready)["items"]
    (shown,) = pod["status"]["containerStatuses"]
    assert 0 == shown["restartCount"]


def test_deployment_is_accepted(reaper: Reaper, stage: Stage) -> None:
    """It is valid to the letter, and restricted, too."""
    apply = ("apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors")
    answer = stage.controlplane.kubectl(*apply, "-k", str(ROOT / "deploy/reaper"))

    assert "deployment.apps/status-reaper " in answer


@pytest.mark.parametrize("number", TWICE)
def test_deleted_node(lost: Lost, number: str) -> None:
    """The garbage collector removes its Pods a minute later; then there is a last word."""
    run = lost.runs[f"node-{number}"]
    with explained(run):
        shown = final(run, 120)

        assert "Unknown" == shown.condition["status"]
        assert shown.reason in {"AdapterInterrupted", "AdapterEvicted"}


def test_living_reporter(lost: Lost, reaper: Reaper) -> None:
    """All the while it keeps its word: the reaper has said nothing of it."""
    run = lost.runs["living"]

    # It says what it has written, so perhaps after we have seen it. A Pod that was deleted may
    # have written its last word itself.
    silent = ("living", "cronjob", "deployment", "deleted")
    others = {each.name for key, each in lost.runs.items() if not key.startswith(silent)}
    run.wait(lambda: others <= {each["name"] for each in reaper.said}, "its word on the others")

    assert {"AdapterRunning"} == {each.reason for each in run.history()}
    assert run.name not in {each["name"] for each in reaper.said}


def test_the_account_may_do_what_it_does(lost: Lost) -> None:
    """No request of either reaper was refused for want of a right."""
    asked = [each for each in lost.stage.controlplane.audit_events() if _is_ours(each)]

    assert asked
    assert [] == [each for each in asked if each["responseStatus"]["code"] in {401, 403}]


def _is_ours(event: Object) -> bool:
    return event["user"]["username"] == USER and event["stage"] == "ResponseComplete"
