"""deploy/monitoring at work: a real Prometheus, kube-state-metrics, reporter, run and reaper."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

from tests.aggregators.served import Aggregator, plan
from tests.bed import binaries, prometheus
from tests.bed.controlplane import ControlPlane
from tests.bed.processes import Program
from tests.bed.prometheus import Prometheus
from tests.blackbox.sidecar.scene import IN_POD, PROGRAM
from tests.forked import Forked
from tests.ports import free_port

pytestmark = pytest.mark.cluster
PROGRAMS = ("kube-state-metrics",)

ROOT = Path(__file__).resolve().parents[3]
KIT = ROOT / "deploy" / "monitoring"
JOB = "greeting"
Object = dict[str, Any]


def pod_labels(namespace: str, pod: str, **more: str) -> dict[str, str]:
    """What Prometheus would find out about a Pod."""
    found = {"namespace": namespace, "pod_name": pod, "pod_phase": "Running"} | more
    return {f"__meta_kubernetes_{name}": value for name, value in found.items()}


class Kit:
    """The configuration of the kit with quick scrapes and targets of this machine."""

    def __init__(self, folder: Path) -> None:
        self.kube_state_metrics = f"127.0.0.1:{free_port()}"
        found = ("status-reporter", "status-aggregator", "status-reaper")
        self._files = {name: folder / f"{name}.json" for name in found}
        for file in self._files.values():
            Prometheus.point(file, {})

    def config(self) -> Object:
        config: Object = yaml.safe_load((KIT / "prometheus.yaml").read_text())
        for job in config["scrape_configs"]:
            job["scrape_interval"] = "1s"
            if job.pop("kubernetes_sd_configs", None):
                job.update(Prometheus.found_in(self._files[job["job_name"]]))
            else:
                job["static_configs"] = [{"targets": [self.kube_state_metrics]}]
        times = {"scrape_timeout": "1s", "evaluation_interval": "1s"}
        return config | {"global": times, "rule_files": [str(KIT / "rules.yaml")]}

    def file(self, job: str) -> Path:
        """What a scrape finds is read from there."""
        return self._files[job]

    def point(self, job: str, port: int, **labels: str) -> None:
        """Let one Pod be found, and beside it a container that is not ours."""
        other = pod_labels(
            "other", "other", pod_container_name="other", pod_container_port_name="x"
        )
        Prometheus.point(self._files[job], {f"127.0.0.1:{port}": labels, "127.0.0.1:1": other})


@pytest.fixture
def kit(controlplane: ControlPlane, tmp_path: Path) -> Iterator[Kit]:
    """kube-state-metrics, with the arguments of its Deployment."""
    kit = Kit(tmp_path)
    deployed = yaml.safe_load((KIT / "kube-state-metrics" / "deployment.yaml").read_text())
    (container,) = deployed["spec"]["template"]["spec"]["containers"]
    program = Program(tmp_path, "kube-state-metrics")
    with ExitStack() as stack:
        stack.callback(program.stop)
        program.start(
            [
                str(binaries.program("kube-state-metrics")),
                *container["args"],
                f"--kubeconfig={controlplane.kubeconfig}",
                *("--host=127.0.0.1", "--telemetry-host=127.0.0.1"),
                f"--port={kit.kube_state_metrics.rpartition(':')[2]}",
                f"--telemetry-port={free_port()}",
            ]
        )
        yield kit


class Deployed:
    """The example Job, whose Pod this test plays on the API server, with its reporter's process."""

    def __init__(self, controlplane: ControlPlane, namespace: str, folder: Path) -> None:
        self._controlplane, self._namespace, self._folder = controlplane, namespace, folder
        self.port = free_port()
        made = controlplane.kubectl("kustomize", str(ROOT / "deploy" / "examples" / "classic"))
        made = made.replace("status-reporter-example", namespace)
        found = [each for each in yaml.safe_load_all(made) if each["kind"] != "Namespace"]
        apply = ("apply", "--namespace", namespace, "--filename", "-")
        controlplane.kubectl(*apply, input=yaml.safe_dump_all(found))
        pods = f"/api/v1/namespaces/{namespace}/pods"
        seen = controlplane.api.wait_for(pods, lambda found: found["items"])
        self.pod = str(seen["items"][0]["metadata"]["name"])
        self._started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.adapter({"running": {"startedAt": self._started}})

    def adapter(self, state: Object) -> None:
        """Show the adapter in this state, as a kubelet would."""
        containers = [
            {"name": name, "image": "i", "imageID": "i", "ready": True, "restartCount": 0} | extra
            for name, extra in (
                ("adapter", {"state": state}),
                ("status-reporter", {"state": {"running": {"startedAt": self._started}}}),
            )
        ]
        self._controlplane.request(
            "PATCH",
            f"/api/v1/namespaces/{self._namespace}/pods/{self.pod}/status",
            {"status": {"phase": "Running", "containerStatuses": containers}},
            "application/merge-patch+json",
        )

    def ends(self) -> None:
        """The adapter says why it has failed, and ends."""
        said = {"status": "failure", "reason": "DiskFull", "message": "no space left"}
        new = self._folder / "new"
        new.write_text(json.dumps(said))
        new.replace(self._folder / "adapter-result.json")
        ended = {"exitCode": 1, "startedAt": self._started, "finishedAt": self._started}
        self.adapter({"terminated": ended | {"reason": "Error"}})

    def reporter(self) -> Forked:
        """Start the reporter with the account of deploy/base."""
        token = self._folder / "token"
        token.write_text(self._controlplane.create_token(self._namespace, "status-reporter"))
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "SERVER": self._controlplane.url,
            "CA_FILE": str(self._controlplane.ca_file),
            "TOKEN_FILE": str(token),
            "REPORTER_FORM": "classic",
            "JOB_NAME": JOB,
            "JOB_NAMESPACE": self._namespace,
            "POD_NAME": self.pod,
            "RESULTS_PATH": str(self._folder / "adapter-result.json"),
            "METRICS_PORT": str(self.port),
            "METRICS_LINGER_SECONDS": "30",
        }
        return Forked([IN_POD, PROGRAM], env=environ, stdout=subprocess.DEVNULL)


class Reaper:
    """The container of deploy/reaper as a process, at one namespace and without a minute's pause.

    It has the administrator's rights: those of its own account are `test_reap.py`'s.
    """

    def __init__(self, controlplane: ControlPlane, namespace: str, folder: Path) -> None:
        self.port = free_port()
        deployed = yaml.safe_load((ROOT / "deploy" / "reaper" / "deployment.yaml").read_text())
        (container,) = deployed["spec"]["template"]["spec"]["containers"]
        (port,) = container["ports"]
        self.port_name = port["name"]
        instead = {"-A": f"--namespace={namespace}", str(port["containerPort"]): str(self.port)}
        program, *words = (instead.get(word, word) for word in container["command"])
        assert list(instead.values()) == [word for word in words if word in instead.values()]
        self._command = [str(ROOT / "cmd" / f"{program}.py"), *words, "--interval=1s"]
        self._env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(folder),
            "KUBECONFIG": str(controlplane.kubeconfig),
        }

    def __enter__(self) -> Self:
        self._process = Forked(self._command, env=self._env, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)


def test_alerts_fire_for_a_job_and_a_run_whose_pods_are_gone(
    controlplane: ControlPlane, namespace: str, kit: Kit, tmp_path: Path
) -> None:
    """By the kit's own scrapes, relabelling and rules; one alert, whoever shows the verdict."""
    if reason := prometheus.why_not():
        (pytest.fail if os.environ.get("REQUIRE_CLUSTER") == "1" else pytest.skip)(reason)
    run = Aggregator(tmp_path / "run", plan("e2e", ["n1", "n2"]))
    deployed = Deployed(controlplane, namespace, tmp_path)
    reaper = Reaper(controlplane, namespace, tmp_path)
    with (
        Prometheus(tmp_path / "prometheus", kit.config()) as watching,
        run,
        deployed.reporter() as reporter,
        reaper,
    ):
        named = {"pod_container_name": "status-reporter", "pod_container_port_number": "9"}
        found = pod_labels(namespace, deployed.pod, pod_label_job_name=JOB, **named)
        kit.point("status-reporter", deployed.port, **found)
        found = pod_labels("runs", "agg-0", pod_container_port_name="status")
        kit.point("status-aggregator", run.status_port, **found)
        found = pod_labels("status-reaper", "reaper-0", pod_container_port_name=reaper.port_name)
        kit.point("status-reaper", reaper.port, **found)
        series = f'{{namespace="{namespace}", job_name="{JOB}"}}'
        watching.wait_for(lambda: watching.query(f"status_reporter_condition{series}"))
        ours = '{namespace="status-reaper", pod="reaper-0", job="status-reaper"}'
        open_jobs = f"status_reporter_reaper_open_jobs{ours}"
        watching.wait_for(lambda: watching.query(f"{open_jobs} == 1"))
        assert [] == watching.firing()

        deployed.ends()
        body = b'{"status": "failure", "reason": "DiskSlow", "message": "80 ms"}'
        adapter = "status-reporter.io/adapter-result.v1"
        assert 200 == run.worker("e2e").put("by-node/n1/e2e", body, Result_Format=adapter).status
        assert 0 == reporter.wait(60)
        watching.wait_for(lambda: watching.query(f"{open_jobs} == 0"))

        def failed(name: str, **labels: str) -> list[Object]:
            alerts = [each for each in watching.firing() if name == each["alertname"]]
            return [each for each in alerts if labels.items() <= each.items()]

        (job,) = watching.wait_for(lambda: failed("StatusReporterJobFailed", reason="DiskFull"))
        watching.wait_for(lambda: failed("StatusAggregatorPluginFailed", plugin="e2e"))
        watching.wait_for(lambda: failed("StatusAggregatorRunFailed", pod="agg-0"))
        last = f"last_over_time(status_reporter_verdict_final{series}[5m]) == 1"
        scraped = watching.query(last)

        assert (namespace, JOB, "R", "Available") == tuple(
            job[label] for label in ("namespace", "job_name", "rule", "type")
        )
        assert [deployed.pod] == [each["metric"]["pod"] for each in scraped]
        assert [job] == failed("StatusReporterJobFailed")
        assert [] == watching.query('kube_job_annotations or up{namespace="other"}')


def test_reporters_are_scraped_at_the_usual_port_or_the_one_that_is_declared(
    tmp_path: Path,
) -> None:
    """On the node's network only at one that is declared: the usual one may be another Pod's."""
    if reason := prometheus.why_not():
        (pytest.fail if os.environ.get("REQUIRE_CLUSTER") == "1" else pytest.skip)(reason)
    kit = Kit(tmp_path)
    ours = {"pod_container_name": "status-reporter", "pod_host_ip": "192.0.2.1"}
    declared = ours | {"pod_container_port_number": "9999"}
    targets = {
        "192.0.2.2": pod_labels("n", "usual", pod_ip="192.0.2.2", **ours),
        "2001:db8::2": pod_labels("n", "usual", pod_ip="2001:db8::2", **ours),
        "192.0.2.3:9999": pod_labels("n", "declared", pod_ip="192.0.2.3", **declared),
        "192.0.2.1": pod_labels("n", "node", pod_ip="192.0.2.1", **ours),
        "192.0.2.1:9999": pod_labels("n", "node-declared", pod_ip="192.0.2.1", **declared),
    }
    Prometheus.point(kit.file("status-reporter"), targets)

    with Prometheus(tmp_path / "prometheus", kit.config()) as watching:
        found = watching.wait_for(lambda: watching.scraped("status-reporter"))

    assert {
        "192.0.2.2:9464",
        "[2001:db8::2]:9464",
        "192.0.2.3:9999",
        "192.0.2.1:9999",
    } == set(found)
