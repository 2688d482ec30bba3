"""What can happen to a Job from outside while its adapter runs."""

from __future__ import annotations

import os
import signal

from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER
from tests.blackbox.scenarios.run import Run, state

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def delete_pod(run: Run) -> None:
    """Somebody deletes the Pod."""
    pod = run.wait_reported()
    run.controlplane.request("DELETE", run.pod_path(pod["metadata"]["name"]))


def evict(run: Run) -> None:
    """Somebody drains the node: an eviction through the API."""
    name = run.wait_reported()["metadata"]["name"]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": run.namespace},
    }
    run.controlplane.request("POST", f"{run.pod_path(name)}/eviction", eviction)


def suspend_and_resume(run: Run) -> None:
    """Somebody suspends the Job and resumes it when its Pod has gone."""
    run.wait_reported()
    run.controlplane.request("PATCH", run.path, {"spec": {"suspend": True}}, MERGE)
    run.wait(lambda: run.pods()[-1][-1].gone, "the Pod of the suspended Job is gone")
    run.controlplane.request("PATCH", run.path, {"spec": {"suspend": False}}, MERGE)
    run.wait(lambda: len(run.pods()) == 2, "a second Pod")


def delete_job(run: Run) -> None:
    """Somebody deletes the Job; the controller deletes its Pod afterwards."""
    run.wait_reported()
    run.delete()


def delete_job_in_foreground(run: Run) -> None:
    """Somebody deletes the Job, which stays until its Pod has gone."""
    run.wait_reported()
    run.delete(policy="Foreground")


def kill_reporter(run: Run, pod: str, signum: signal.Signals = signal.SIGKILL) -> None:
    """Send the reporter's process a signal; LookupError where it does not run."""
    os.kill(run.node.container_pid(run.namespace, pod, REPORTER), signum)


def wait_adapter_ended(run: Run) -> None:
    """Wait until the API shows the adapter's end."""
    run.wait(lambda: "terminated" in state(run.pod(), ADAPTER), "the adapter's end")
