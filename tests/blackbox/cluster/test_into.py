"""examples/into: the reporter in what people have, on the cluster of `make cluster`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import binaries
from tests.bed.controlplane import ControlPlane
from tests.bed.product_image import PRODUCT_IMAGE

ROOT = Path(__file__).resolve().parents[3]
INTO = ROOT / "examples" / "into"
WRITTEN_IMAGE = "registry.example.org/team/status-reporter:0.1.0"
BOUND = 600.0

pytestmark = [pytest.mark.node, pytest.mark.timeout(900)]
PROGRAMS = ("helm",)


@dataclass(frozen=True)
class Shell:
    """A person's shell: kubectl, helm and status-ctl in the PATH, and a namespace."""

    folder: Path
    kubeconfig: Path

    def run(self, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; what it prints to both streams is kept."""
        return subprocess.run(
            command,
            cwd=self.folder,
            env={
                "HOME": str(self.folder),
                "KUBECONFIG": str(self.kubeconfig),
                "PATH": f"{self.folder}:{os.defpath}",
                "REPORTER_IMAGE": PRODUCT_IMAGE,
            },
            input=text,
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=False,
        )

    def good(self, *command: str, text: str | None = None) -> str:
        """Run a command that must succeed; return what it prints."""
        done = self.run(*command, text=text)
        assert 0 == done.returncode, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def verdict(self, job: str) -> Sequence[str]:
        """The status and reason on a Job."""
        found: dict[str, Any] = json.loads(self.good("kubectl", "get", "job", job, "-o", "json"))
        conditions = {each["type"]: each for each in found["status"]["conditions"]}
        return tuple(conditions["Available"][field] for field in ("status", "reason"))


@pytest.fixture
def shell(cluster: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell in a namespace of the test's own."""
    programs = {
        "kubectl": [str(binaries.program("kubectl"))],
        "helm": [str(binaries.program("helm"))],
        "status-ctl": [sys.executable, str(ROOT / "cmd" / "status-ctl.py")],
    }
    for name, words in programs.items():
        quoted = " ".join(f"'{word}'" for word in words)
        (tmp_path / name).write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
        (tmp_path / name).chmod(0o755)
    namespace = "into-" + re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_")).strip(
        "-"
    )
    cluster.kubectl("create", "namespace", namespace)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(cluster.kubeconfig.read_text())
    shell = Shell(tmp_path, kubeconfig)
    shell.good("kubectl", "config", "set-context", "--current", f"--namespace={namespace}")
    yield shell
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def inject(shell: Shell, text: str) -> str:
    """What the pages say: the reporter and its rights, by the command."""
    options = ("--image", PRODUCT_IMAGE, "--with-rbac")
    return shell.good("status-ctl", "inject", "-f", "-", *options, text=text)


def test_a_script(shell: Shell) -> None:
    """It ends as the check does, and explains a failure; the Pod keeps its account."""
    script = str(INTO / "check.sh")
    passed = shell.run(script, str(INTO / "job.yaml"), "validate")

    assert 0 == passed.returncode, passed.stdout + passed.stderr
    assert "job.batch/validate  Available=True  ChecksPassed" in passed.stdout
    account = ("-o", "jsonpath={.spec.template.spec.serviceAccountName}")
    assert "validator" == shell.good("kubectl", "get", "job", "validate", *account)

    broken = shell.folder / "broken.yaml"
    broken.write_text((INTO / "job.yaml").read_text().replace("/etc/hostname", "/nowhere"))
    failed = shell.run(script, str(broken), "validate")

    assert 1 == failed.returncode, failed.stdout + failed.stderr
    assert "Available=False  ChecksFailed: /nowhere cannot be read" in failed.stdout
    assert "the adapter" in failed.stdout.lower()


def test_a_check_that_ends_with_0_whatever_it_found(shell: Shell) -> None:
    """The reporter ends with 1 in its place, and the Job is Failed, as docs/add-to-jobs.md says."""
    given = (INTO / "job.yaml").read_text().replace("/etc/hostname", "/nowhere")
    options = ("--image", PRODUCT_IMAGE, "--with-rbac", "--form", "classic")
    policy = ("--env", "EXIT_POLICY=failure")
    made = shell.good(
        *("status-ctl", "inject", "-f", "-", *options, *policy),
        text=given.replace("exit 1", "exit 0"),
    )
    shell.good("kubectl", "apply", "-f", "-", text=made)
    shell.good("kubectl", "wait", "--for=condition=Failed", "job/validate", "--timeout=5m")

    assert ("False", "ChecksFailed") == shell.verdict("validate")
    pods = json.loads(shell.good("kubectl", "get", "pods", "-o", "json"))["items"]
    (pod,) = (pod for pod in pods if "validate" == pod["metadata"]["labels"]["job-name"])
    ended = {
        each["name"]: each["state"]["terminated"]["exitCode"]
        for each in pod["status"]["containerStatuses"]
    }
    assert {"status-reporter": 1, "validate": 0} == ended


def test_a_cron_job(shell: Shell) -> None:
    """The Jobs that it makes report, and are listed."""
    made = inject(shell, (INTO / "cronjob.yaml").read_text())
    shell.good("kubectl", "apply", "-f", "-", text=made)
    shell.good("kubectl", "create", "job", "tonight", "--from=cronjob/nightly")

    shell.good("status-ctl", "wait", "job/tonight", "--timeout", "5m")

    assert ("True", "ChecksPassed") == shell.verdict("tonight")
    assert "tonight" in shell.good("status-ctl", "jobs")


@pytest.fixture
def chart(shell: Shell) -> str:
    """The example chart with its library, as `helm dependency build` leaves it."""
    folder = shell.folder / "examples" / "into" / "chart"
    shutil.copytree(INTO / "chart", folder)
    shutil.copytree(ROOT / "deploy" / "library", shell.folder / "deploy" / "library")
    shell.good("helm", "dependency", "build", str(folder))
    return str(folder)


def test_a_helm_hook(shell: Shell, chart: str) -> None:
    """Nothing is installed or upgraded before the check passes; the condition says why."""
    options = ("--set", f"reporter.image={PRODUCT_IMAGE}", "--timeout", "5m")
    shell.good("helm", "install", "checked", chart, *options)
    assert ("True", "ChecksPassed") == shell.verdict("validate")

    failed = shell.run("helm", "upgrade", "checked", chart, *options, "--set", "file=/nowhere")

    assert 1 == failed.returncode
    assert "pre-upgrade hooks failed" in failed.stderr
    assert ("False", "ChecksFailed") == shell.verdict("validate")


def test_the_library_chart_has_what_inject_adds(shell: Shell, chart: str) -> None:
    """Its templates are not behind the command, and no rights come after the hook."""
    rendered = shell.good("helm", "template", "x", chart, "--kube-version", "1.29.0")
    injected = shell.good(
        *("status-ctl", "inject", "-f", str(INTO / "job.yaml"), "--with-rbac"),
        *("--own-token-only", "--image", WRITTEN_IMAGE),
    )

    def specs(text: str) -> dict[str, Any]:
        found = filter(None, yaml.safe_load_all(text))
        return {each["kind"]: {k: v for k, v in each.items() if k != "metadata"} for each in found}

    # The check is a hook, and so its rights have another name.
    assert specs(injected.replace("reporter-validator", "reporter-validator-hook")) == specs(
        rendered
    )
    shell.good("status-ctl", "lint", "--strict", "-f", "-", text=rendered)


def test_the_library_chart_as_values_ask_for_it(shell: Shell, chart: str) -> None:
    """Helm reads every number as a float, and checks no library's version of Kubernetes."""
    given = '(dict "root" $ "image" "i" "env" .Values.env "cpuLimit" "500m")'
    template = Path(chart, "templates", "more.yaml")
    template.write_text(f'more: {{{{ include "status-reporter.sidecar" {given} | nindent 2 }}}}\n')
    env = {"MAX_WAIT_TIME_SECONDS": 10_000_000, "POLL_INTERVAL_SECONDS": 0.5, "LOG_LEVEL": 'a:"b'}
    render = ("helm", "template", "x", chart, "--set-json", f"env={json.dumps(env)}")
    expected = {
        name: value if isinstance(value, str) else str(value) for name, value in env.items()
    }

    made = shell.good(*render, "--kube-version", "1.29.0")
    refused = shell.run(*render, "--kube-version", "1.28.9")

    (sidecar,) = next(each["more"] for each in yaml.safe_load_all(made) if each and "more" in each)
    found = {each["name"]: each.get("value") for each in sidecar["env"]}
    assert expected.items() <= found.items()
    both = {"cpu": "500m", "memory": "64Mi"}
    assert {"requests": both, "limits": both} == sidecar["resources"]
    assert "needs Kubernetes 1.29 or newer" in refused.stderr


def test_argos_steps(shell: Shell) -> None:
    """The Job in the resource template reports; the next step has its verdict's exit code."""
    name = "validate-x7k2p"
    namespace = shell.good("kubectl", "config", "view", "--minify", "-o", "jsonpath={..namespace}")
    shell.good("kubectl", "create", "serviceaccount", "validator")
    text = (INTO / "argo.yaml").read_text()
    text = text.replace("{{workflow.name}}", name).replace("{{workflow.namespace}}", namespace)
    templates = {each["name"]: each for each in yaml.safe_load(text)["spec"]["templates"]}
    made = inject(shell, templates["job"]["resource"]["manifest"])
    shell.good("kubectl", "create", "-f", "-", text=made)

    step = templates["verdict"]["container"]
    done = shell.run(*step["command"], *step["args"])

    assert 1 == done.returncode, done.stdout + done.stderr
    assert ("False", "ChecksFailed") == shell.verdict(name)


def test_tektons_steps(shell: Shell) -> None:
    """The first step's command creates the Job, the second one waits for its verdict."""
    namespace = shell.good("kubectl", "config", "view", "--minify", "-o", "jsonpath={..namespace}")
    task = yaml.safe_load(
        (INTO / "tekton.yaml")
        .read_text()
        .replace("$(params.job)", "validate")
        .replace("$(context.taskRun.namespace)", namespace)
        .replace("/manifests/", f"{shell.folder}/")
    )
    (shell.folder / "job.yaml").write_text(inject(shell, (INTO / "job.yaml").read_text()))

    for step in task["spec"]["steps"]:
        shell.good(*step["command"], *step["args"])

    assert ("True", "ChecksPassed") == shell.verdict("validate")


def test_githubs_steps(shell: Shell) -> None:
    """The scripts of the steps behind the one that gets kubectl, with bash as GitHub runs it."""
    workflow = yaml.safe_load((INTO / "github.yml").read_text())
    start, wait = (
        step["run"].replace("examples/into/job.yaml", str(INTO / "job.yaml"))
        for step in workflow["jobs"]["validate"]["steps"][-2:]
    )
    shell.good("bash", "-e", "-o", "pipefail", "-c", start)

    said = shell.good("bash", "-e", "-o", "pipefail", "-c", wait)

    assert "Available=True  ChecksPassed" in said
