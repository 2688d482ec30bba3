"""The commands that README and docs print, and what a reader has when they come to them.

A block is of commands where its first word is a program, or a prompt with the commands behind it;
one in a shell's language is one command. Each is run as it is printed, in order, or is among those
that a page leaves out, with the reason.
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
NAMES = [
    "README.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "deploy").rglob("README.md")),
]
PROGRAMS = {
    *("curl", "docker", "export", "for", "found=$(kubectl", "helm", "kubectl", "make"),
    *("presign-my-bucket", "run-my-tests", "sed", "status-aggregator", "status-ctl"),
}
PROMPT = "$"
OUTPUT = {"complete,", "job.batch/validate"}
"""The first words of blocks with what the commands write; of each the first line is compared."""
SHOWN = {"FROM", "PUT", "SIGTERM", "T", "job.yaml:5:", "#!/bin/sh", "set"}
"""The first words of blocks that show something else: another's output, a diagram, a file."""
SHELLS = ("bash", "console", "sh", "shell")
NO_COMMANDS = {"go", "json", "python", "yaml"}
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLUGIN = ("docs/plugins.md", "yaml", 0)
_JOB = "examples/into/job.yaml"


def all_blocks(name: str) -> list[tuple[str, str]]:
    """Return the blocks of a page with their languages."""
    return _FENCE.findall((ROOT / name).read_text(encoding="utf-8"))


def blocks(name: str, *languages: str) -> list[str]:
    """Return the blocks of a page in these languages."""
    return [text for found, text in all_blocks(name) if found in languages]


def first_word(block: str) -> str:
    """Return what a block begins with."""
    return block.split(maxsplit=1)[0]


def commands(name: str) -> list[str]:
    """Return the commands that a page prints, with the lines that they go on in."""
    found = []
    for language, block in all_blocks(name):
        lines, first = re.split(r"(?<!\\)\n", block.rstrip("\n")), first_word(block)
        if language in NO_COMMANDS or first in SHOWN | OUTPUT:
            continue
        if first == PROMPT:
            found += [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        else:
            found += [block.rstrip("\n")] if language in SHELLS else lines
    return found


def outputs(name: str) -> list[str]:
    """Return the first lines of what a page shows as written by its commands."""
    return [each.splitlines()[0] for each in blocks(name, "") if first_word(each) in OUTPUT]


def first_line(command: str) -> str:
    """Return the whole first line of a command, without what explains or continues it."""
    return re.sub(r"\s+(# .*|\\)$", "", command.split("\n", maxsplit=1)[0])


def for_command(table: Mapping[str, T], command: str) -> T | None:
    """Return what a table has for a command, if it has it."""
    return table.get(first_line(command))


@dataclass(frozen=True)
class Page:
    """What is around the commands of a page; the keys of tables are first lines of commands.

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
            if for_command(self.left_out, printed) is not None:
                continue
            if first := for_command(self.before, printed):
                found.append((first, 0))
            command = printed
            for placeholder, value in names.items():
                command = command.replace(placeholder, value)
            found.append((command, for_command(self.codes, printed) or 0))
        return found


_OPERATOR = "needs the Prometheus operator's kinds: test_monitoring, test_chart"
_STORE = "needs an object store and the tool that signs its URLs"
_REGISTRY = "needs a registry"
_SERVES = (
    "status-aggregator run --plan plan.json --state /data/state --output /data/output "
    "--export-certs /data/certs"
)
_CHART = (
    "helm upgrade --install status-reporter dist/status-reporter-chart.tgz "
    "--namespace status-reporter --create-namespace"
)
_LABELLED = "found=$(kubectl get namespaces -l checks=enabled"
_PROGRESS = (
    'curl -s "http://localhost:$SONOBUOY_PROGRESS_PORT/progress" '
    """-d '{"msg": "3 of 9", "total": 9, "completed": 3}'"""
)
_CONDITIONS = (
    "kubectl get job JOB -o jsonpath='{range .status.conditions[*]}"
    r"""{.type}={.status} {.reason}: {.message}{"\n"}{end}'"""
)

PAGES = {
    "README.md": Page(
        files={"job.yaml": ("README.md", "yaml", 0)},
        left_out={
            "make test": "this is one of these tests",
            "kubectl get job validate -o jsonpath='{.status.conditions[0]}'": "the end of it all: "
            "docs/quickstart.md",
        },
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
            "helm upgrade --install app ./chart --post-renderer status-ctl": "mkdir -p "
            "chart/templates && printf 'apiVersion: v2\\nname: app\\nversion: 0.1.0\\n' "
            ">chart/Chart.yaml && "
            "sed s/validat/check/ job.yaml >chart/templates/job.yaml"
        },
        names={
            "kustomize .": "kustomize app",
            "job/JOB": "job/validate",
            "job JOB": "job validate",
        },
        left_out={
            "helm plugin install DIRECTORY": "Helm 4",
            "helm upgrade --install app ./chart --post-renderer status-reporter": "Helm 4",
        },
        after="kubectl delete -f deploy/base/clusterrole.yaml",
    ),
    "docs/admission.md": Page(
        left_out={"kubectl apply -f job.yaml": "shows what the policy refuses: test_admission"},
        after="kubectl delete -k deploy/admission",
    ),
    "docs/aggregator.md": Page(
        codes={"status-ctl wait": 1},
        left_out={_SERVES: "serves until it is stopped: test_process_run"},
    ),
    "docs/coming-from-go.md": Page(),
    "docs/helm.md": Page(left_out={_CHART: _OPERATOR}),
    "docs/host-facts.md": Page(
        files={"gatherers/30-time": ("docs/host-facts.md", "python", 0)},
        names={"DIR": "gatherers"},
        left_out={
            "status-ctl run --plugin host-facts --image registry.example.com/"
            "status-reporter-facts:1 --wait": _REGISTRY
        },
    ),
    "docs/lint.md": Page(
        files={
            "job.yaml": _JOB,
            "rbac.yaml": "deploy/base/role.yaml",
            "chart": "examples/into/chart",
        },
        before={
            "helm template chart/ | status-ctl lint -f -": "mkdir chart/charts && "
            "cp -R deploy/library chart/charts/status-reporter-library"
        },
        names={
            "overlay/": "deploy/examples/native",
            # A Helm that was built here does not know which Kubernetes it is for.
            "template chart/": "template chart/ --kube-version 1.34.4",
        },
    ),
    "docs/log-analysis.md": Page(
        files={"patterns.yaml": ("docs/log-analysis.md", "yaml", 0)},
        names={
            # The verdict is that of this machine's logs.
            "--wait": "--wait --delivery-only",
            "results logs": "results logs || [ $? = 1 ]",
        },
    ),
    "docs/monitoring.md": Page(
        left_out={
            "kubectl apply --namespace monitoring -k deploy/monitoring": _OPERATOR,
            "kubectl apply -k deploy/monitoring/kube-state-metrics": _OPERATOR,
        }
    ),
    "docs/platform-teams.md": Page(
        before={
            _LABELLED: "make chart && kubectl label namespace printed-platform-teams "
            "checks=enabled && helm install status-reporter dist/status-reporter-chart.tgz"
        },
        names={"--namespace status-reporter": "--namespace printed-platform-teams"},
    ),
    "docs/plugins.md": Page(
        files={"plugin.yaml": _PLUGIN, "my-adapter": "examples/success.sh"},
        left_out=dict.fromkeys(
            (
                'run-my-tests --junit "$RESULTS_DIR/report.xml"',
                'echo "$RESULTS_DIR/report.xml" >"$RESULTS_DIR/done.new"',
                'mv "$RESULTS_DIR/done.new" "$RESULTS_DIR/done"',
                _PROGRESS,
            ),
            "runs in a plugin's container",
        ),
    ),
    "docs/quickstart.md": Page(
        files={"job.yaml": ("docs/quickstart.md", "yaml", 0)},
        codes={"status-ctl wait job/validate --timeout 11m": 1},
        left_out={
            "make cluster DIR=/tmp/cluster": "there is one on this machine already",
            "make image-push REGISTRY=registry.example.org/team": _REGISTRY,
        },
    ),
    "docs/reaper.md": Page(
        names={"reap -A": "reap"},  # the Jobs of other tests are in the cluster
        left_out=dict.fromkeys(
            ("kubectl apply -k deploy/reaper", "kubectl apply -k deploy/reaper/cronjob"),
            "reaps the Jobs of other tests: test_reap",
        ),
    ),
    "docs/results.md": Page(
        files={"plugin.yaml": _PLUGIN},
        before={
            "status-ctl results RUN --failed": "status-ctl run -f plugin.yaml --name demo --wait "
            "&& status-ctl retrieve demo --file demo_202601011200.tar.gz"
        },
        names={"RUN": "demo"},
    ),
    "docs/runbook.md": Page(
        files={"job.yaml": _JOB},
        before={
            _CONDITIONS: "status-ctl inject -f job.yaml --with-rbac "
            "| kubectl apply -f - && status-ctl wait job/validate --timeout 11m"
        },
        names={"JOB": "validate", "POD": "$(kubectl get pods -l job-name=validate -o name)"},
    ),
    "docs/runs.md": Page(
        files={"plugin.yaml": _PLUGIN},
        before={
            "status-ctl run -f plugins/ --name nightly --wait --timeout 2h": "mkdir plugins && "
            "sed s/quota-check/cis/ plugin.yaml >plugins/cis.yaml"
        },
        codes={
            "status-ctl run -f deploy/plugins/first-run.yaml --name first --wait": 1,
            "status-ctl results first": 1,
        },
        names={"run --wait": "run --wait --delivery-only"},  # this machine's logs are in it
        left_out={
            "status-ctl open nightly": "serves until Ctrl-C: test_stop_command",
            **dict.fromkeys(
                (
                    "presign-my-bucket >url",
                    "presign-my-bucket >deploy/examples/run-as-job/url",
                    "status-ctl run -f plugins/ --name nightly --upload-url-file url",
                    "status-ctl run -f plugins/ --upload-url-file url --exit --wait",
                    "kubectl apply -k deploy/examples/run-as-job",
                    "status-ctl wait run/example --timeout 2h",
                ),
                _STORE,
            ),
        },
    ),
    "docs/snapshot.md": Page(),
    "docs/status-ctl.md": Page(
        left_out={
            "status-ctl status --connection DIR/connection.json": "no aggregator is at HOST: "
            "test_status_tls",
            "status-ctl wait job/nightly job/quota -n checks --timeout 30m": "test_wait_jobs",
            "status-ctl explain nightly": "test_explain",
        }
    ),
    "deploy/plugins/ansible/README.md": Page(
        left_out=dict.fromkeys(
            (
                "docker build --build-arg AGENT_IMAGE=registry.example.com/status-reporter:0.1.0",
                "docker push registry.example.com/status-reporter:0.1.0-ansible",
                "status-ctl run -f deploy/plugins/ansible "
                "--image registry.example.com/status-reporter:0.1.0 --name facts --wait",
                "status-ctl retrieve facts --extract facts",
                "jq .ansible_facts facts/plugins/ansible/results/NODE/ansible/ansible-facts.json",
            ),
            "needs a registry: test_ansible",
        )
    ),
}
"""The pages that print commands."""
