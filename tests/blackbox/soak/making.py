"""The objects of a drawn Job, and the Job itself once it is in the cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from tests.bed.api import ApiError
from tests.blackbox.scenarios.actions import MERGE
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, Object, container, make_job
from tests.blackbox.scenarios.run import Run
from tests.blackbox.scenarios.stage import Stage
from tests.blackbox.soak.clock import give_clock
from tests.blackbox.soak.draw import GRACE, RESULT, Plan
from tests.blackbox.soak.faults import Faults

ROOT = Path(__file__).resolve().parents[3]
PRODUCT_ENV = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}
STATUS_CTL = [sys.executable, str(ROOT / "cmd/status-ctl.py")]
LABEL = "soak"
SCHEDULED_SECONDS = 180.0
OLD_SECONDS = 3.0
"""So much older than its Pod a result is of somebody else whatever the stamps' precision."""
MISSING_IMAGE = "127.0.0.1:9/no-such-image:1"


class Made:
    """What was created for one plan; `run` is its Job."""

    def __init__(self, stage: Stage, faults: Faults, plan: Plan) -> None:
        self._plan, self._faults, self._stage = plan, faults, stage
        self._controlplane = stage.controlplane
        self._namespace = stage.namespace(plan.role)
        self._volume = stage.node.folder / "claims" / plan.name
        self._kept: list[str] = []  # what has to be deleted
        if plan.volume != "emptyDir":
            self._claim()
        job = self._job()
        if plan.by == "person":
            self.run = self._run(plan.name)
            faults.asking(lambda: self.run.create(job))
        else:
            self.run = self._run(self._by_cron(job))

    def delete(self) -> None:
        """Delete everything, whatever is there of it."""
        self._faults.asking(self.run.delete)
        for path in self._kept:
            with suppress(ApiError):
                self._ask("DELETE", path)
        shutil.rmtree(self._volume, ignore_errors=True)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        kind = MERGE if method == "PATCH" else "application/json"
        return self._faults.asking(lambda: self._controlplane.request(method, path, body, kind))

    def _create(self, collection: str, body: Object) -> str:
        path = f"{collection}/{body['metadata']['name']}"
        self._kept.append(path)
        self._ask("POST", collection, body)
        return path

    def _run(self, name: str) -> Run:
        run = self._stage.new_run(name, self._plan.role)
        run.form = self._plan.form
        return run

    def _job(self) -> Object:
        plan = self._plan
        job = make_job(
            self._controlplane,
            plan.form,
            plan.name,
            plan.script,
            settings=plan.settings,
            grace=GRACE,
        )
        job["metadata"].setdefault("labels", {})[LABEL] = "job"
        spec, pod = job["spec"], job["spec"]["template"]["spec"]
        spec |= {"backoffLimit": plan.backoff, "suspend": plan.suspended > 0}
        spec["podReplacementPolicy"] = plan.replaced
        if plan.deadline:
            spec["activeDeadlineSeconds"] = plan.deadline
        pod |= {"restartPolicy": plan.policy, "shareProcessNamespace": plan.signalled}
        adapter = container(pod, ADAPTER)
        adapter["resources"] = {"limits": {"memory": "32Mi"}}
        match plan.trouble:
            case "image":
                adapter |= {"image": MISSING_IMAGE, "imagePullPolicy": "Always"}
            case "config":
                adapter["envFrom"] = [{"configMapRef": {"name": "no-such-map"}}]
            case "command":
                adapter["command"] = ["/no/such/program"]
        if plan.volume != "emptyDir":
            claim = {"name": "results", "persistentVolumeClaim": {"claimName": plan.name}}
            pod["volumes"] = [claim, *(v for v in pod["volumes"] if v["name"] != "results")]
        if plan.made == "injected":
            return _injected(plan, job)
        if plan.number % 3 == 0:
            self._faults.asking(lambda: give_clock(self._controlplane, self._namespace, job))
        return job

    def _claim(self) -> None:
        """A volume that outlives the Pods."""
        self._volume.mkdir(parents=True)
        self._volume.chmod(0o777)
        if self._plan.volume == "claim with an old result":
            old = self._volume / Path(RESULT).name
            old.write_text('{"status": "success", "reason": "Old"}')
            old.chmod(0o666)
            time.sleep(OLD_SECONDS)
        name = {"name": self._plan.name}
        size = {"storage": "1Mi"}
        spec = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = {"hostPath": {"path": str(self._volume)}, "capacity": size}
        claims = f"/api/v1/namespaces/{self._namespace}/persistentvolumeclaims"
        wanted = {"volumeName": self._plan.name, "resources": {"requests": size}}
        self._create("/api/v1/persistentvolumes", {"metadata": name, "spec": spec | volume})
        self._create(claims, {"metadata": name, "spec": spec | wanted})

    def _by_cron(self, job: Object) -> str:
        """Create a CronJob and have it make one Job; return the Job's name."""
        plan, jobs = self._plan, f"/apis/batch/v1/namespaces/{self._namespace}/jobs"
        template = {"metadata": {"labels": job["metadata"]["labels"]}, "spec": job["spec"]}
        by_hand = plan.by == "cron by hand"
        spec = {"schedule": "* * * * *", "suspend": by_hand, "jobTemplate": template}
        # Two at once would write to one claim.
        spec["concurrencyPolicy"] = "Forbid"
        body = {"metadata": {"name": plan.name}, "spec": spec}
        path = self._create(jobs.replace("/jobs", "/cronjobs"), body)
        if by_hand:
            words = ("create", "job", f"{plan.name}-1", "--from", f"cronjob/{plan.name}")
            self._faults.asking(lambda: self._controlplane.kubectl(*words, "-n", self._namespace))
            return f"{plan.name}-1"
        end = time.monotonic() + SCHEDULED_SECONDS
        while time.monotonic() < end:
            for found in self._ask("GET", jobs)["items"]:
                name: str = found["metadata"]["name"]
                if name.startswith(f"{plan.name}-"):
                    self._ask("PATCH", path, {"spec": {"suspend": True}})
                    return name
            time.sleep(1)
        raise TimeoutError(f"no Job of the CronJob {plan.name}")


def _injected(plan: Plan, job: Object) -> Object:
    """The Job as a person writes it, and what `status-ctl inject` makes of it."""
    pod = job["spec"]["template"]["spec"]
    adapter, reporter = container(pod, ADAPTER), container(pod, REPORTER)
    pod["containers"] = [adapter]
    pod.pop("initContainers", None)
    pod["volumes"] = [each for each in pod["volumes"] if "persistentVolumeClaim" in each]
    if not pod["volumes"]:
        del adapter["volumeMounts"]
    del job["metadata"]["labels"]["status-reporter.io/inject"]
    command = [*STATUS_CTL, "inject", "-f", "-", "--own-token-only", "--form", plan.form]
    command += ["--image", reporter["image"]]
    for each in reporter["env"]:
        if "value" in each and each["name"] != "REPORTER_FORM":
            command += ["--env", f"{each['name']}={each['value']}"]
    done = subprocess.run(
        command, env=PRODUCT_ENV, input=json.dumps(job), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"inject: {done.stderr}")
    made: Object = yaml.safe_load(done.stdout)
    return made
