"""status-ctl against the real API server, with the administrator's kubeconfig."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests import verdicts
from tests.bed import binaries
from tests.bed.controlplane import ControlPlane
from tests.blackbox.ctl.cluster import plugin
from tests.blackbox.ctl.scripted import STATUS_CTL, Home

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.cluster

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


@pytest.fixture
def ctl(home: Home, controlplane: ControlPlane, namespace: str) -> Home:
    """A home whose kubeconfig leads to the control plane."""
    target = home.folder / ".kube" / "config"
    target.parent.mkdir()
    target.write_text(controlplane.kubeconfig.read_text())
    return home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def pod_spec(**more: object) -> dict[str, object]:
    container = {"name": "adapter", "image": "example/a:1", "securityContext": RESTRICTED}
    reporter = container | {
        "name": "status-reporter",
        "restartPolicy": "Always",
        "env": [{"name": "MAX_WAIT_TIME_SECONDS", "value": "120"}],
    }
    return {
        "restartPolicy": "Never",
        "initContainers": [reporter],
        "containers": [container],
    } | more


def make_job(controlplane: ControlPlane, namespace: str, name: str, **spec: object) -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {"spec": pod_spec(nodeSelector={"no": "such-node"})}} | spec,
    }
    controlplane.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", job)


def test_explain_and_jobs(ctl: Home, controlplane: ControlPlane, namespace: str) -> None:
    """A Job whose Pod no node takes, whose deadline is too short, and that has no condition."""
    make_job(controlplane, namespace, "stuck", activeDeadlineSeconds=60)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    controlplane.api.wait_for(pods, lambda found: found["items"])
    code, out, err = ctl.run("explain", "stuck", "-n", namespace)

    assert (0, "") == (code, err)
    assert "is pending: it cannot be scheduled" in out
    assert "may wait 2m0s, but the Job's activeDeadlineSeconds ends all work after 1m0s" in out
    for where in (["-n", namespace], ["-A"]):
        code, out, err = ctl.run("jobs", *where, "-o", "json")
        assert (0, "") == (code, err)
        assert (namespace, "stuck", None) in [
            (item["namespace"], item["name"], item["condition"])
            for item in json.loads(out)["items"]
        ]


def judge(controlplane: ControlPlane, namespace: str, name: str, report: verdicts.Report) -> None:
    """Write a final verdict on the Job, as its reporter would."""
    note = verdicts.note(report, f"{name}-pod")
    condition = {"type": "Available", "lastTransitionTime": "2030-01-01T12:00:30Z"} | {
        field: getattr(report, field) for field in ("status", "reason", "message")
    }
    body = {
        "metadata": {"annotations": {"status-reporter.io/Available": note}},
        "status": {"conditions": [condition]},
    }
    controlplane.kubectl(
        *("patch", "job", name, "-n", namespace, "--subresource=status"),
        *("--type=strategic", "--patch", json.dumps(body)),
    )


@pytest.mark.parametrize(("success", "code"), [(True, 0), (False, 1)])
def test_wait_for_a_job_that_does_not_exist_yet(
    ctl: Home, controlplane: ControlPlane, namespace: str, success: bool, code: int
) -> None:
    """Through its creation to its verdict, also where kubectl wait would hang."""
    report = verdicts.result(success, "Checked", "12 of 12")
    with ctl.started("wait", "job/late", "-n", namespace, "--timeout", "50s") as process:
        assert process.stderr is not None
        assert b"not found" in process.stderr.readline()
        make_job(controlplane, namespace, "late", backoffLimit=0)
        judge(controlplane, namespace, "late", report)
        out, err = process.communicate(timeout=60)

    said = f"job.batch/late  Available={report.status}  Checked: 12 of 12\n"
    assert (code, said, "") == (process.returncode, out.decode(), err.decode())


@pytest.mark.parametrize("success", [True, False])
def test_the_documented_kubectl_wait_ends_with_either_answer(
    controlplane: ControlPlane, namespace: str, tmp_path: Path, success: bool
) -> None:
    """As it stands in docs/add-to-jobs.md, with the Job's name put in."""
    make_job(controlplane, namespace, "checked")
    page = (Path(__file__).parents[3] / "docs" / "add-to-jobs.md").read_text()
    snippet = page.split("```sh\n")[1].split("```")[0].replace("JOB", "checked")
    kubectl = tmp_path / "kubectl"
    where = f"--kubeconfig {controlplane.kubeconfig} --namespace {namespace}"
    kubectl.write_text(f'#!/bin/sh\nexec {binaries.program("kubectl")} {where} "$@"\n')
    kubectl.chmod(0o755)
    with subprocess.Popen(
        ["sh", "-c", snippet],
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        judge(controlplane, namespace, "checked", verdicts.RUNNING)
        judge(controlplane, namespace, "checked", verdicts.result(success, "Done", "x"))
        out, _ = process.communicate(timeout=100)

    assert "job.batch/checked condition met\nDone\n" == out


def test_a_verdict_is_seen_by_jobs_watch(
    ctl: Home, controlplane: ControlPlane, namespace: str
) -> None:
    """A line when the Job is there, and one for its verdict."""
    with ctl.started("jobs", "--watch", "-n", namespace, "-o", "json") as process:
        assert process.stderr is not None
        assert process.stdout is not None
        assert b"no Jobs with a status reporter in namespace" in process.stderr.readline()
        make_job(controlplane, namespace, "seen")
        first = json.loads(process.stdout.readline())
        judge(controlplane, namespace, "seen", verdicts.TIMEOUT)
        second = json.loads(process.stdout.readline())
        process.send_signal(2)
        process.communicate(timeout=60)

    assert ("seen", None) == (first["name"], first["condition"])
    assert ("seen", "AdapterTimeout") == (second["name"], second["condition"]["reason"])


def test_explain_reads_the_events_of_a_job(ctl, controlplane, namespace) -> None:
    """A Pod that the security profile refuses: only an event of the Job says so."""
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "refused"},
        "spec": {"template": {"spec": pod_spec(hostNetwork=True)}},
    }
    controlplane.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", job)
    events = f"/api/v1/namespaces/{namespace}/events?fieldSelector=reason=FailedCreate"
    controlplane.api.wait_for(events, lambda found: found["items"])
    code, out, _ = ctl.run("explain", "refused", "-n", namespace)

    assert 0 == code
    assert "The Job cannot create its Pod (FailedCreate: " in out
    assert "PodSecurity" in out


def test_status_through_the_annotation(ctl, controlplane, namespace) -> None:
    """No Pod, a Pod that does not run; then one that does, with a failed run."""
    code, _, err = ctl.run("status", "-n", namespace)
    assert 4 == code
    assert f"no aggregator found in namespace '{namespace}'; " in err
    shown = {"plugins": [plugin("e2e", status="failed")], "status": "failed", "tar-info": {}}
    pods = f"/api/v1/namespaces/{namespace}/pods"
    metadata = {
        "name": "aggregator",
        "labels": {"sonobuoy-component": "aggregator"},
        "annotations": {"sonobuoy.hept.io/status": json.dumps(shown)},
    }
    # Bound to a node that is not there: nobody but the test writes its status.
    spec = pod_spec(nodeName="nowhere")
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    controlplane.request("POST", pods, body)
    code, _, err = ctl.run("status", "-n", namespace)
    assert 4 == code
    assert "the pod is Pending (pod not running)" in err
    controlplane.kubectl(
        *("patch", "pod", "aggregator", "-n", namespace, "--subresource=status"),
        *("--type=merge", "--patch", '{"status":{"phase":"Running"}}'),
    )
    assert (1, "e2e/global\n", "") == ctl.run("status", "-n", namespace, "-o", "name")
    assert (1, "e2e/global\n", "") == ctl.run("wait", "-n", namespace, "-o", "name")
    code, out, _ = ctl.run("watch", "-n", namespace)
    assert 1 == code
    assert "e2e" in out
    assert "failed" in out


def test_lint_asks_for_the_rights_of_the_jobs_account(
    ctl: Home, controlplane: ControlPlane, namespace: str
) -> None:
    """Without the shipped Role they lack; with it, for this Job alone or for all, they do not."""
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}}
    spec = pod_spec(serviceAccountName="status-reporter")
    (ctl.folder / "job.json").write_text(json.dumps(job | {"spec": {"template": {"spec": spec}}}))

    def lacking() -> set[str]:
        """The rules that say so."""
        words = ("lint", "-f", "job.json", "--cluster", "-n", namespace, "-o", "json")
        _, out, err = ctl.run(*words)
        assert "" == err
        found = {each["rule"] for each in json.loads(out)["findings"]}
        return {rule for rule in found if rule.endswith("-rights")}

    def told(expected: set[str]) -> None:
        """The API server hears of new rights a moment later."""
        end = time.monotonic() + 60
        while (found := lacking()) != expected:
            assert time.monotonic() < end, found

    told({"missing-rights", "missing-optional-rights"})
    shipped = (ROOT / "deploy" / "plain" / "rbac.yaml").read_text()
    objects = list(yaml.safe_load_all(shipped.replace("<namespace>", namespace)))
    (role,) = (each for each in objects if each["kind"] == "Role")
    (jobs,) = (rule for rule in role["rules"] if rule["resources"] == ["jobs/status"])
    for name, expected in (("another", {"missing-rights"}), ("job", set()), (None, set())):
        jobs.pop("resourceNames", None)
        jobs |= {"resourceNames": [name]} if name else {}
        controlplane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(objects))
        told(expected)


def test_as_a_plugin_of_kubectl(ctl, controlplane, namespace, tmp_path) -> None:
    """`kubectl job-verdict` finds the command by its file's name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "kubectl-job_verdict"
    words = " ".join(f"'{word}'" for word in (sys.executable, STATUS_CTL[1]))
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o755)
    make_job(controlplane, namespace, "stuck")
    kubectl = str(binaries.program("kubectl"))
    done = subprocess.run(
        [kubectl, "job-verdict", "jobs", "-n", namespace, "-o", "name"],
        env=ctl.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, "job.batch/stuck\n") == (done.returncode, done.stdout)


def test_completed_by_kubectl(tmp_path) -> None:
    """It asks the plugin's other name what a word may become, if there is the plugin."""
    launcher = ROOT / "cmd" / "status-ctl.py"
    lines = [f"#!{sys.executable}", "import sys", f"sys.path.insert(0, {str(ROOT)!r})"]
    for name in ("kubectl-job_verdict", "kubectl_complete-job_verdict"):
        script = tmp_path / name
        script.write_text("\n".join([*lines, launcher.read_text()]))
        script.chmod(0o755)
    done = subprocess.run(
        [str(binaries.program("kubectl")), "__complete", "job-verdict", "wait", "-o", "j"],
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, ["json", ":4"]) == (done.returncode, done.stdout.splitlines())
