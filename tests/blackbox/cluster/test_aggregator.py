"""deploy/examples/run on the real node: three Jobs report to one aggregator, as a user sees it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators.deployed import BOUND, CONTAINER, POD, Deployed, Object
from tests.aggregators.served import ROOT
from tests.archives.tars import OURS
from tests.bed.api import ApiError
from tests.bed.binaries import program
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.blackbox.scenarios.jobs import container
from tests.blackbox.scenarios.run import touch
from tests.ports import free_port

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

NAMES = ("network", "storage", "quota")
NO_TAR = {"name": "", "created": "0001-01-01T00:00:00Z", "sha256": "", "size": 0}
# The limit in deploy/ is 64Mi, and the page cache takes what is left.
MOST_MEMORY = 60_000_000
MERGE = "application/merge-patch+json"
SAY = "say() { cat >/results/$1.tmp && mv /results/$1.tmp /results/$1; }"
UPDATE = 'echo \'{"msg": "checking", "total": 3, "completed": %d}\' | say progress.json'
FINE = '{"status": "success", "reason": "Fine", "message": "fine"}'
WRITE = f"echo '{FINE}' | say adapter-result.json"


def volumes(controlplane: ControlPlane) -> Path:
    """Where the node's volumes lie."""
    return controlplane.folder / "volumes"


@dataclass(frozen=True)
class Finished:
    """The example after its run."""

    run: Deployed
    shown: list[tuple[Object, Object]]
    """The two annotations, as they changed."""
    jobs: dict[str, dict[str, Object]]
    """Conditions by type, of each Job."""


@pytest.fixture(scope="module")
def finished(node: Node, product_image: str) -> Iterator[Finished]:
    """Applied at once and left to itself, but for the certificates, which somebody hands out."""
    with Deployed(node, volumes(node.controlplane)) as run:
        run.apply([*run.others, *run.jobs.values()])
        run.wait_ready()
        first = run.api.wait_for(
            run.pod_path, lambda pod: pod["metadata"].get("annotations"), BOUND
        )["metadata"]["annotations"]
        begun = (
            json.loads(first["sonobuoy.hept.io/status"]),
            json.loads(first["status-reporter.io/run-status"]),
        )
        run.hand_out()
        shown = [begun, *run.follow()]
        yield Finished(run, shown, {name: run.wait_job(name) for name in NAMES})


class TestExample:
    """deploy/examples/run: a success, a failure that an adapter reports, and a crash."""

    def test_begins_with_everything_running(self, finished: Finished) -> None:
        """K1: no results, no tarball, nothing done."""
        status, run_status = finished.shown[0]

        assert ("running", NO_TAR) == (status["status"], status["tar-info"])
        assert [(name, "global", "running", "") for name in NAMES] == [
            (e["plugin"], e["node"], e["status"], e["result-status"]) for e in status["plugins"]
        ]
        assert ("running", 0.0, False) == tuple(
            run_status[key] for key in ("status", "percent_complete", "final")
        )

    def test_never_goes_back_and_never_shows_an_early_failure(self, finished: Finished) -> None:
        """K2: Sonobuoy's tools would stop at the word; our own annotation has it."""
        order = ["running", "post-processing", "complete"]
        said = [order.index(status["status"]) for status, _ in finished.shown]

        assert sorted(said) == said
        status, run_status = finished.shown[-1]
        assert "complete" == status["status"]
        assert ("failed", 1.0, True) == tuple(
            run_status[key] for key in ("status", "percent_complete", "final")
        )

    def test_says_which_checks_failed_and_why(self, finished: Finished) -> None:
        """The adapter's own failure beside the crash; Sonobuoy's readers get verdict and count."""
        status, run_status = finished.shown[-1]

        assert ("failed", 0.6666) == (run_status["result_status"], run_status["plugins_reported"])
        assert {
            "storage/global": "NoStorageClass",
            "quota/global": "AdapterExitedWithError",
        } == {key: why["reason"] for key, why in run_status["why"].items()}
        assert {"storage/global", "quota/global"} == set(run_status["failed"])
        assert {
            "network": ("complete", "passed", {"passed": 1}),
            "storage": ("complete", "failed", {"failed": 1}),
            "quota": ("failed", "failed", {"failed": 1}),
        } == {
            e["plugin"]: (e["status"], e["result-status"], e["result-counts"])
            for e in status["plugins"]
        }

    def test_each_job_has_its_condition(self, finished: Finished) -> None:
        """The aggregator changes nothing about what a Job says."""
        shown = {
            name: (conditions["Available"]["status"], conditions["Available"]["reason"])
            for name, conditions in finished.jobs.items()
        }

        assert {
            "network": ("True", "RoutesFine"),
            "storage": ("False", "NoStorageClass"),
            "quota": ("False", "AdapterExitedWithError"),
        } == shown

    @pytest.mark.parametrize("command", ["status-reporter", "status-aggregator", "status-ctl"])
    def test_the_image_has_every_command(self, finished: Finished, command: str) -> None:
        """In its PATH, by the name that documents and advice use."""
        done = subprocess.run(
            [
                *(program("kubectl"), "--kubeconfig", finished.run.controlplane.kubeconfig),
                *("--namespace", finished.run.namespace, "exec", POD, "--", command, "--version"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )

        here = subprocess.run(
            [sys.executable, str(ROOT / "cmd" / f"{command}.py"), "--version"],
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert (0, here.stdout, "") == (done.returncode, done.stdout, done.stderr)

    def test_tarball_has_all_three(self, finished: Finished) -> None:
        """K3: size and digest in the annotation are the file's; retrieved as documented."""
        packed = subprocess.run(
            [
                *(program("kubectl"), "--kubeconfig", finished.run.controlplane.kubeconfig),
                *("--namespace", finished.run.namespace, "exec", POD, "--"),
                *("/sonobuoy", "splat", "/data/output"),
            ],
            capture_output=True,
            check=True,
        ).stdout
        told = finished.shown[-1][0]["tar-info"]
        with tarfile.open(fileobj=io.BytesIO(packed)) as outer:
            (name,) = outer.getnames()
            file = outer.extractfile(name)
            assert file is not None
            tarball = file.read()
        with tarfile.open(fileobj=io.BytesIO(tarball)) as inner:
            files = {
                member.name
                for member in inner
                if member.isfile() and not member.name.endswith(OURS)
            }

        assert (told["name"], told["size"], told["sha256"]) == (
            name,
            len(tarball),
            hashlib.sha256(tarball).hexdigest(),
        )
        assert {
            "meta/workers.json",
            "plugins/network/results/global/adapter-result.json",
            "plugins/storage/results/global/adapter-result.json",
            "plugins/quota/errors/global/error.json",
        } == files

    def test_crash_is_told_with_its_evidence(self, finished: Finished) -> None:
        """A verdict of the reporter's own is an error report, with what it was made from."""
        name = finished.shown[-1][0]["tar-info"]["name"]
        with tarfile.open(finished.run.volume / "output" / name) as tarball:
            file = tarball.extractfile("plugins/quota/errors/global/error.json")
            assert file is not None
            report = json.load(file)

        assert "AdapterExitedWithError" == report["cause"]
        assert 3 == report["evidence"]["adapter"]["exitCode"]
        assert "Adapter container exited with code 3: Error" == report["error"]

    def test_progress_was_forwarded(self, finished: Finished) -> None:
        """The newest of the adapter's updates is kept after its result."""
        (entry,) = (e for e in finished.shown[-1][0]["plugins"] if e["plugin"] == "network")

        assert (3, 3) == (entry["progress"]["total"], entry["progress"]["completed"])

    def test_status_is_for_a_port_forward_and_not_for_the_proxy(self, finished: Finished) -> None:
        """The API server's proxy is no local peer; it gets probes and metrics alone."""
        run, port = finished.run, free_port()
        proxy = f"{run.pod_path}:8081/proxy"
        command = [program("kubectl"), "--kubeconfig", run.controlplane.kubeconfig]
        command += ["--namespace", run.namespace, "port-forward", POD, f"{port}:8081"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as forward:
            try:
                assert forward.stdout is not None
                forward.stdout.readline()
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as answer:
                    found = json.load(answer)
            finally:
                forward.terminate()

        assert ("failed", True) == (found["status"], found["final"])
        with pytest.raises(ApiError) as refused:
            run.api.request("GET", f"{proxy}/status")
        assert 403 == refused.value.status
        assert "ok" == run.api.request("GET", f"{proxy}/readyz").strip()
        assert "status_aggregator_run_final 1.0" in run.api.request("GET", f"{proxy}/metrics")

    def test_nobody_complains(self, finished: Finished) -> None:
        """One line for each fact, and a warning for the crash alone."""
        run = finished.run
        loud = [line["message"] for line in run.log() if line["level"] != "info"]
        others = {
            job: [
                line
                for line in run.log(run.pod_of(job)["metadata"]["name"], "status-reporter")
                if line["level"] != "info"
            ]
            for job in finished.jobs
        }

        assert ["Result stored", "Worker reported an error"] == sorted(loud)  # both did fail
        assert {name: [] for name in NAMES} == others

    def test_keys_are_nobodys_business(self, finished: Finished) -> None:
        """What lies on the volume belongs to the aggregator's user alone."""
        for name in ("export/secrets.yaml", "state/tls", "state/run.db"):
            found = (finished.run.volume / name).stat()
            assert (65532, 0) == (found.st_uid, found.st_mode & 0o077), name

    def test_sonobuoy_reads_status_and_retrieves(self, finished: Finished, tmp_path: Path) -> None:
        """The unchanged command of Sonobuoy takes our Pod for an aggregator of its own."""
        run = finished.run
        environ = {"KUBECONFIG": str(run.controlplane.kubeconfig), "PATH": os.environ["PATH"]}

        def sonobuoy(*arguments: str) -> str:
            command = [program("sonobuoy"), *arguments, "--namespace", run.namespace]
            return subprocess.run(
                command,
                env=environ,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=BOUND,
                check=True,
            ).stdout

        status = sonobuoy("status")
        name = sonobuoy("retrieve", "--retrieve-path", "/data/output").strip()

        assert "Sonobuoy has completed" in status
        told = finished.shown[-1][0]["tar-info"]
        assert told["sha256"] == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


class TestRights:
    """What the aggregator's account may do."""

    def test_one_thing(self, finished: Finished) -> None:
        """Its own Pod can be patched; nothing else can be read or written."""
        run = finished.run
        token = run.controlplane.create_token(run.namespace, "status-aggregator")
        api = run.controlplane.token_api(token)
        space = f"/api/v1/namespaces/{run.namespace}"
        other = run.pod_of("network")["metadata"]["name"]
        note = {"metadata": {"annotations": {"test": "was here"}}}
        forbidden: list[tuple[str, str, Any]] = [
            ("GET", run.pod_path, None),
            ("GET", f"{space}/pods", None),
            ("PATCH", f"{space}/pods/{other}", note),
            ("PATCH", f"{run.pod_path}/status", note),
            ("DELETE", run.pod_path, None),
            ("POST", f"{run.pod_path}/exec?command=id", None),
            ("GET", f"{space}/secrets", None),
            ("GET", f"{space}/secrets/status-aggregator-network", None),
            ("GET", f"{space}/configmaps/status-aggregator-plan", None),
            ("GET", f"/apis/batch/v1/namespaces/{run.namespace}/jobs", None),
            ("PATCH", f"/apis/batch/v1/namespaces/{run.namespace}/jobs/network/status", note),
            ("GET", "/api/v1/nodes", None),
        ]

        api.request("PATCH", run.pod_path, note, MERGE)
        for method, path, body in forbidden:
            with pytest.raises(ApiError) as refused:
                api.request(method, path, body, MERGE)
            assert 403 == refused.value.status, (method, path)

    def test_reporter_may_do_no_more_than_before(self, finished: Finished) -> None:
        """A reporter with a link needs nothing of the API that one without does not need."""
        run = finished.run
        user = f"system:serviceaccount:{run.namespace}:status-reporter"
        asked = {
            (
                event["verb"],
                event["objectRef"]["resource"],
                event["objectRef"].get("subresource", ""),
            )
            for event in run.controlplane.audit_events()
            if event["user"]["username"] == user
        }

        assert asked <= {
            ("get", "jobs", "status"),
            ("patch", "jobs", "status"),
            ("get", "pods", ""),
            ("watch", "pods", ""),
            ("create", "events", ""),
        }

    def test_aggregator_asks_for_nothing_else(self, finished: Finished) -> None:
        """All its requests are patches of its own Pod, and all are taken."""
        run = finished.run
        user = f"system:serviceaccount:{run.namespace}:status-aggregator"
        asked = {
            (event["verb"], event["objectRef"]["name"], event["responseStatus"]["code"])
            for event in run.controlplane.audit_events()
            if event["user"]["username"] == user and event.get("userAgent") == "status-reporter"
        }

        assert {("patch", POD, 200)} == asked

    def test_run_works_without_them(self, node: Node, product_image: str) -> None:
        """No Role: results come in all the same, and one line says what is missing."""
        with Deployed(node, volumes(node.controlplane), rights=False) as run:
            run.start()
            run.apply(run.jobs.values())
            run.wait_status(lambda entries: entries["network/global"]["status"] == "complete")
            pod = run.api.request("GET", run.pod_path)
            lines = [line for line in run.log() if "annotation" in line["message"]]
            shown = run.api.request("GET", f"{run.pod_path}:8081/proxy/metrics")

            assert not {"sonobuoy.hept.io/status"} & set(pod["metadata"].get("annotations", {}))
            assert ["The status annotation could not be written"] == [
                line["message"] for line in lines
            ]
            assert "status_aggregator_annotation_failures_total" in shown


def script(job: Object, *commands: str) -> Object:
    """Let a Job's adapter run these."""
    adapter = container(job["spec"]["template"]["spec"], "adapter")
    adapter["command"] = ["sh", "-c", "\n".join([SAY.replace("$", "$$"), *commands])]
    return job


def test_aggregator_is_killed_in_the_middle(
    node: Node, product_image: str, figures: Callable[[str], None]
) -> None:
    """Its Pod is deleted without grace: what it acknowledged is there, workers go on. K3."""
    with Deployed(node, volumes(node.controlplane)) as run:
        network, storage, quota = (run.jobs[name] for name in NAMES)
        go = "until [ -e /results/go ]; do sleep 0.1; done"
        script(network, UPDATE % 1, go, UPDATE % 2, "sleep 1", UPDATE % 3, WRITE)
        script(storage, WRITE)
        script(quota, go, WRITE)
        for job in run.jobs.values():
            # A new Pod with its volume may take longer than what is left of 30 s.
            job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 120
        run.start()
        run.apply(run.jobs.values())
        before = run.wait_status(
            lambda entries: (
                entries["storage/global"]["status"] == "complete"
                and entries["network/global"]["progress"]
            )
        )
        uid = run.api.request("GET", run.pod_path)["metadata"]["uid"]
        pod = run.pod_of("network")["metadata"]["name"]
        reporter = node.usage(run.namespace, pod, "status-reporter").peak_bytes
        aggregator = node.usage(run.namespace, POD, CONTAINER).peak_bytes
        figures(f"VmHWM: linked reporter {reporter:,}, aggregator {aggregator:,} bytes")

        run.api.request("DELETE", f"{run.pod_path}?gracePeriodSeconds=0")
        touch(node, run.pod_of("network"), "results", "go")
        run.wait_ready(other_than=uid)
        # The last result closes the run, after which progress is too late: so that is quota's.
        between = run.wait_status(
            lambda entries: (
                entries["network/global"]["status"] == "complete"
                and entries["network/global"]["progress"]["completed"] == 3
            )
        )
        touch(node, run.pod_of("quota"), "results", "go")
        shown = run.follow()
        after = run.status()
        exits = {name: run.wait_pod_ended(run.pod_of(name)["metadata"]["name"]) for name in NAMES}

        def storage_of(status: Object) -> tuple[Any, ...]:
            (entry,) = (e for e in status["plugins"] if e["name"] == "storage")
            return tuple(entry[key] for key in ("status", "received_at", "digest", "bytes"))

        assert reporter <= MOST_MEMORY
        assert storage_of(before) == storage_of(between) == storage_of(after)
        assert between["revision"] >= before["revision"]
        assert ["complete"] * 3 == [entry["status"] for entry in after["plugins"]]
        (network_entry,) = (e for e in after["plugins"] if e["name"] == "network")
        assert 3 == network_entry["progress"]["completed"]
        status, run_status = shown[-1]
        assert ("complete", "complete", True) == (
            status["status"],
            run_status["status"],
            run_status["final"],
        )
        tarball = (run.volume / "output" / status["tar-info"]["name"]).read_bytes()
        assert status["tar-info"]["sha256"] == hashlib.sha256(tarball).hexdigest()
        assert [{"adapter": 0, "status-reporter": 0}] * 3 == list(exits.values())
        said = [line["message"] for line in run.log()]
        assert "Run resumed" in said
        assert "Existing certificates of this run are used, nothing is exported" in said


def test_aggregator_is_killed_by_the_kernel(node: Node, product_image: str) -> None:
    """SIGKILL in a Pod that stays: the container comes back by itself, with everything."""
    with Deployed(node, volumes(node.controlplane)) as run:
        for job in run.jobs.values():
            script(job, WRITE)
        run.start()
        run.apply([run.jobs["storage"]])
        run.wait_status(lambda entries: entries["storage/global"]["status"] == "complete")
        os.kill(node.container_pid(run.namespace, POD, CONTAINER), 9)
        run.apply([run.jobs["network"], run.jobs["quota"]])
        shown = run.follow()

        pod = run.api.request("GET", run.pod_path)
        assert 1 == pod["status"]["containerStatuses"][0]["restartCount"]
        assert ["complete"] * 3 == [entry["status"] for entry in shown[-1][0]["plugins"]]
