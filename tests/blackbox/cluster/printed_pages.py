"""The commands that README and docs print, and what a reader has when they come to them.

A block is of commands where its first word is a program. Each command is run as it is printed, in
order, or is among those that a page leaves out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.bed.product_image import PRODUCT_IMAGE

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]
NAMES = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
PROGRAMS = {
    *("curl", "export", "helm", "kubectl", "make", "presign-my-bucket", "run-my-tests", "sed"),
    *("status-aggregator", "status-ctl"),
}
SHOWN = {"$", "FROM", "PUT", "SIGTERM", "T", "complete,", "job.batch/validate", "job.yaml:5:"}
"""The first words of blocks that show something else: a session, output, a diagram, a file."""
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLUGIN = ("docs/plugins.md", "yaml", 0)
_JOB = "examples/into/job.yaml"


def blocks(name: str, language: str = "") -> list[str]:
    """Return the blocks of a page in a language."""
    page = (ROOT / name).read_text(encoding="utf-8")
    return [text for found, text in _FENCE.findall(page) if found == language]


def first_word(block: str) -> str:
    """Return what a block begins with."""
    return block.split(maxsplit=1)[0]


def commands(name: str) -> list[str]:
    """Return the commands that a page prints, with the lines that they go on in."""
    wanted = [block for block in blocks(name) if first_word(block) not in SHOWN]
    return [each for block in wanted for each in re.split(r"(?<!\\)\n", block.rstrip("\n"))]


def for_command(table: Mapping[str, T], command: str) -> T | None:
    """Return what a table has for the beginning of a command, if it has it."""
    return next((found for start, found in table.items() if command.startswith(start)), None)


@dataclass(frozen=True)
class Page:
    """What is around the commands of a page; the keys of tables are the beginnings of commands.

    `files` are there before, as copies from the repository or blocks of (page, language, number).
    `before` has what is done before a command, `names` what a reader puts in the place of others,
    `codes` exit codes other than 0, `left_out` why a command is not run. `after` takes away what
    would be in the way of others.
    """

    files: Mapping[str, str | tuple[str, str, int]] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    after: str = ""

    def steps(self, name: str, namespace: str) -> list[tuple[str, int]]:
        """Return what a reader of the page of that name runs, and the exit codes."""
        names = {
            "registry.example.org/team/status-reporter:0.1.0": PRODUCT_IMAGE,
            "/tmp/cluster/kubeconfig": "kubeconfig",
            "your-namespace": namespace,
            # Without setting up the environment anew, which is the one of these tests.
            "make demo": "examples/demo.sh",
            **self.names,
        }
        found = []
        for printed in commands(name):
            if for_command(self.left_out, printed):
                continue
            if first := for_command(self.before, printed):
                found.append((first, 0))
            command = printed
            for placeholder, value in names.items():
                command = command.replace(placeholder, value)
            found.append((command, for_command(self.codes, printed) or 0))
        return found


_CLUSTER = {"make cluster": "there is one on this machine already"}
_OPERATOR = "needs the Prometheus operator's kinds: test_monitoring, test_chart"
_STORE = "needs a public object store: test_upload"
_REGISTRY = "needs a registry"

PAGES = {
    "README.md": Page(
        files={"job.yaml": ("README.md", "yaml", 0)},
        left_out={"make test": "this is one of these tests"},
    ),
    "docs/adapter-authors.md": Page(
        files={
            "my-adapter": "examples/success.sh",
            "adapter-result.json": ("docs/adapter-authors.md", "json", 0),
        }
    ),
    "docs/add-to-jobs.md": Page(
        files={
            "job.yaml": _JOB,
            "app/job.yaml": "deploy/examples/native/job.yaml",
            "app/kustomization.yaml": ("docs/add-to-jobs.md", "yaml", 0),
            "status-reporter/deploy": "deploy",
        },
        before={
            "helm upgrade": "mkdir -p chart/templates && "
            "printf 'apiVersion: v2\\nname: app\\nversion: 0.1.0\\n' >chart/Chart.yaml && "
            "sed s/validat/check/ job.yaml >chart/templates/job.yaml"
        },
        names={"kustomize .": "kustomize app"},
        left_out={
            "helm plugin": "Helm 4",
            "helm upgrade --install app ./chart --post-renderer status-reporter": "Helm 4",
        },
    ),
    "docs/admission.md": Page(after="kubectl delete -k deploy/admission"),
    "docs/aggregator.md": Page(
        codes={"status-ctl wait": 1},
        left_out={"status-aggregator run": "serves until it is stopped: test_process_run"},
    ),
    "docs/coming-from-go.md": Page(),
    "docs/helm.md": Page(left_out={"helm upgrade": _OPERATOR}),
    "docs/host-facts.md": Page(
        files={
            "gatherers/30-time": ("docs/host-facts.md", "sh", 0),
            "gatherers/40-users": ("docs/host-facts.md", "python", 0),
        },
        names={"DIR": "gatherers"},
        left_out={"status-ctl run --plugin host-facts --image": _REGISTRY},
    ),
    "docs/installing.md": Page(left_out={"make release-check": "test_release"}),
    "docs/lint.md": Page(
        files={
            "job.yaml": _JOB,
            "rbac.yaml": "deploy/base/role.yaml",
            "chart": "examples/into/chart",
        },
        names={"overlay/": "deploy/examples/native"},
    ),
    "docs/monitoring.md": Page(left_out={"kubectl apply": _OPERATOR}),
    "docs/plugins.md": Page(
        files={"plugin.yaml": _PLUGIN, "my-adapter": "examples/success.sh"},
        left_out=dict.fromkeys(
            ("run-my-tests", 'echo "$RESULTS_DIR', 'mv "$RESULTS_DIR', "curl"),
            "runs in a plugin's container",
        ),
    ),
    "docs/quickstart.md": Page(
        files={"job.yaml": ("docs/quickstart.md", "yaml", 0)},
        codes={"status-ctl wait job/validate": 1},
        left_out={**_CLUSTER, "make image-push": _REGISTRY},
    ),
    "docs/reaper.md": Page(
        names={"reap -A": "reap"},  # the Jobs of other tests are in the cluster
        left_out={"kubectl apply": "reaps the Jobs of other tests: test_reap"},
    ),
    "docs/results.md": Page(
        files={"plugin.yaml": _PLUGIN},
        before={
            "status-ctl results RUN --failed": "status-ctl run -f plugin.yaml --name demo --wait "
            "&& status-ctl retrieve demo --file 202601011200_sonobuoy_demo.tar.gz"
        },
        names={"RUN": "demo"},
    ),
    "docs/runbook.md": Page(
        files={"job.yaml": _JOB},
        before={
            "kubectl get job JOB -o jsonpath='{range": "status-ctl inject -f job.yaml --with-rbac "
            "| kubectl apply -f - && status-ctl wait job/validate --timeout 11m"
        },
        names={"JOB": "validate", "POD": "$(kubectl get pods -l job-name=validate -o name)"},
    ),
    "docs/runs.md": Page(
        files={"plugin.yaml": _PLUGIN},
        before={
            "status-ctl run -f plugins/ --name nightly --wait": "mkdir plugins && "
            "sed s/quota-check/cis/ plugin.yaml >plugins/cis.yaml"
        },
        codes={"status-ctl run -f deploy/plugins/first-run.yaml": 1, "status-ctl results first": 1},
        left_out={
            **_CLUSTER,
            **dict.fromkeys(
                (
                    "presign-my-bucket",
                    "status-ctl run -f plugins/ --name nightly --upload-url-file",
                    "status-ctl run -f plugins/ --upload-url-file",
                    "kubectl apply -k deploy/examples/run-as-job",
                    "status-ctl wait run/example",
                ),
                _STORE,
            ),
        },
    ),
    "docs/snapshot.md": Page(),
    "docs/status-ctl.md": Page(
        left_out={"status-ctl status --connection": "no aggregator is at HOST: test_status_tls"}
    ),
}
"""The pages that print commands."""
