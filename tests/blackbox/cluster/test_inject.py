"""`status-ctl inject` behind the real kustomize and the real helm. No node is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import binaries

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[3]
COMPONENTS = ROOT / "deploy" / "components"
CRON_JOB = """\
apiVersion: batch/v1
kind: CronJob
metadata:
  name: nightly
  labels:
    status-reporter.io/inject: FORM
spec:
  schedule: "@daily"
  jobTemplate:
    spec:
      template:
        spec:
          serviceAccountName: mine
          restartPolicy: Never
          containers:
            - name: main
              image: busybox
              volumeMounts:
                - name: results
                  mountPath: /results
"""
JOB = """\
# of {{ .Release.Name }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-check
spec:
  template:
    spec:
      serviceAccountName: mine
      restartPolicy: Never
      containers:
        - name: main
          image: {{ .Values.image | quote }}
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A folder that is first in the PATH, with status-ctl in it."""
    if reason := binaries.why_not():
        pytest.skip(reason)
    script = tmp_path / "bin" / "status-ctl"
    script.parent.mkdir()
    launcher = ROOT / "cmd" / "status-ctl.py"
    script.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{launcher}' \"$@\"\n")
    script.chmod(0o755)
    return tmp_path


def run(people: Path, command: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell, as the pages have it."""
    path = [str(people / "bin")]
    path += [str(binaries.program(name).parent) for name in ("kubectl", "helm")]
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=people,
        env={"PATH": ":".join((*path, os.environ["PATH"])), "HOME": str(people)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def pod(value: Any) -> Any:
    """The Pod's spec of the Jobs of a CronJob."""
    return value["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def kustomization(folder: Path, label: str, component: str) -> None:
    """A CronJob with a label, and a component."""
    (folder / "cronjob.yaml").write_text(CRON_JOB.replace("FORM", label))
    components = [os.path.relpath(COMPONENTS / component, folder)]
    document = {"resources": ["cronjob.yaml"], "components": components}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(document))


CHECK = "kubectl kustomize . | status-ctl inject --check -l status-reporter.io/inject -f -"


@pytest.mark.parametrize(
    ("form", "containers"), [("native", "initContainers"), ("classic", "containers")]
)
def test_the_component_gives_a_cron_job_its_reporter(
    people: Path, form: str, containers: str
) -> None:
    """It keeps its account, its Jobs have the label, and the check that people copy is content."""
    kustomization(people, form, form)

    made = yaml.safe_load(run(people, "kubectl kustomize .").stdout)

    assert "status-reporter" == pod(made)[containers][0]["name"]
    assert "mine" == pod(made)["serviceAccountName"]
    assert "automountServiceAccountToken" not in pod(made)
    labels = made["spec"]["jobTemplate"]["metadata"]["labels"]
    assert {"status-reporter.io/inject": form} == labels
    assert 0 == run(people, CHECK).returncode


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("natve", "label status-reporter.io/inject=natve must be native, classic or disabled"),
        ("classic", "injected (classic form, adapter main)"),
    ],
    ids=["a typing error", "a component that is missing"],
)
def test_the_check_tells_of_a_label_that_no_component_matches(
    people: Path, label: str, said: str
) -> None:
    """Otherwise such a Job would run without a reporter."""
    kustomization(people, label, "native")

    checked = run(people, CHECK)

    assert 1 == checked.returncode
    assert said in checked.stderr


def test_kustomize_output_gets_its_reporter_and_goes_back(people: Path) -> None:
    """Without any component."""
    (people / "cronjob.yaml").write_text(CRON_JOB.replace("FORM", "native"))
    (people / "kustomization.yaml").write_text("resources: [cronjob.yaml]\nnamePrefix: a-\n")

    before = run(people, "kubectl kustomize .")
    after = run(people, "kubectl kustomize . | status-ctl inject -f - | tee made.yaml")
    back = run(people, "status-ctl uninject -f made.yaml")

    assert "status-reporter" == pod(yaml.safe_load(after.stdout))["initContainers"][0]["name"]
    assert "cronjob.batch/a-nightly: injected (native form" in after.stderr
    assert before.stdout == back.stdout


def test_a_post_renderer_of_helm(people: Path) -> None:
    """Two lines: the chart's Jobs have the reporter, its text stays, an error stops helm."""
    chart = people / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: app\nversion: 1.0.0\n")
    (chart / "values.yaml").write_text("image: busybox\n")
    (chart / "templates" / "job.yaml").write_text(JOB)
    (chart / "templates" / "map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"
    )
    plain = "helm template app ./chart"
    rendered = (
        "--post-renderer status-ctl --post-renderer-args inject --post-renderer-args=-f "
        "--post-renderer-args=- --post-renderer-args=--with-rbac"
    )

    before = run(people, plain)
    after = run(people, f"{plain} {rendered}")
    refused = run(people, f"{plain} {rendered} --post-renderer-args=--adapter=nobody")

    assert 0 == after.returncode, after.stderr
    kinds = {each["kind"]: each for each in yaml.safe_load_all(after.stdout)}
    assert {"ConfigMap", "Job", "Role", "RoleBinding"} == kinds.keys()
    spec = kinds["Job"]["spec"]["template"]["spec"]
    assert "status-reporter" == spec["initContainers"][0]["name"]
    assert "mine" == kinds["RoleBinding"]["subjects"][0]["name"]
    assert "# Source: app/templates/job.yaml" in after.stdout
    assert "# of app" in after.stdout
    (people / "made.yaml").write_text(after.stdout)
    back = run(people, "status-ctl uninject -f made.yaml").stdout
    assert list(yaml.safe_load_all(before.stdout)) == list(yaml.safe_load_all(back))
    assert 1 == refused.returncode
    assert "no container 'nobody'; containers: main" in refused.stderr
