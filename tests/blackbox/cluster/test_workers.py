"""Workers on the real node: the sidecar's link when things go wrong, and Sonobuoy's worker mode."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.aggregators import run_certificates
from tests.aggregators.deployed import BOUND, Deployed, Object, with_components
from tests.bed.node import Node
from tests.blackbox.cluster.test_bed import RESTRICTED
from tests.blackbox.scenarios.jobs import container, make_job, writes
from tests.blackbox.scenarios.run import explained
from tests.blackbox.scenarios.stage import Stage

pytestmark = [pytest.mark.node, pytest.mark.timeout(300)]

FORMS = ("native", "classic")
RESULTS = "/tmp/sonobuoy/results"
PROGRESS = (
    'until wget -q -O - --post-data \'{"msg": "half", "total": 2, "completed": 1}\''
    " http://localhost:8099/progress; do sleep 0.2; done"
)
PLUGINS = {
    # A file that the done file names, and progress by the relay.
    "named": f"{PROGRESS}; echo '<ok/>' >{RESULTS}/r.xml; echo {RESULTS}/r.xml >{RESULTS}/new;"
    f" mv {RESULTS}/new {RESULTS}/done",
    # Ends well and leaves files, but no done file.
    "packed": f"mkdir {RESULTS}/sub; echo log >{RESULTS}/sub/log.txt",
    # Ends badly with half of its results.
    "crashed": f"echo half >{RESULTS}/half.txt; exit 3",
}
"""What the plugins beside Sonobuoy's worker do."""
PLAN = {
    "run": "0d5dd3f7-8d25-4a7c-9a2f-6f1f0f7f9f11",
    "plugins": [
        *({"name": f"oom-{form}"} for form in FORMS),
        *({"name": name, "nodes": [Node.name]} for name in PLUGINS),
        {"name": "open"},
    ],
}
READS_PODS: list[Object] = [
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "plugin"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "plugin"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "plugin"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "plugin",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "plugin"}],
    },
]


def oom_job(job: Object, form: str) -> Object:
    """A Job of the example in a form, whose adapter takes all the memory it may have."""
    name = f"oom-{form}"
    job = json.loads(json.dumps(job))
    pod = job["spec"]["template"]["spec"]
    for reporters in ("initContainers", "containers"):
        pod[reporters] = [c for c in pod.get(reporters, []) if c["name"] != "status-reporter"]
    pod["volumes"] = [v for v in pod["volumes"] if v["name"] == "aggregator-certificates"]
    pod["volumes"][0]["secret"]["secretName"] = f"status-aggregator-{name}"
    container(pod, "adapter")["command"] = ["sh", "-c", "sleep 1; exec tail /dev/zero"]
    job["metadata"] |= {"name": name}
    job["metadata"]["labels"]["status-reporter.io/inject"] = form
    job["spec"]["template"]["metadata"]["labels"]["status-reporter.io/plugin"] = name
    return job


def variable(name: str, **source: Object) -> Object:
    """A variable that is filled in by Kubernetes."""
    return {"name": name, "valueFrom": source}


def worker_pod(plugin: str) -> Object:
    """A plugin and its worker, as Sonobuoy puts them in one Pod; keys come as variables."""
    secret = f"status-aggregator-{plugin}"
    pems = {"CA_CERT": "ca.crt", "CLIENT_CERT": "tls.crt", "CLIENT_KEY": "tls.key"}
    fields = {
        "NODE_NAME": "spec.nodeName",
        "SONOBUOY_NS": "metadata.namespace",
        "SONOBUOY_PLUGIN_POD": "metadata.name",
    }
    env: list[Object] = [
        {"name": "AGGREGATOR_URL", "value": "https://status-aggregator:8080"},
        {"name": "RESULT_TYPE", "value": plugin},
        {"name": "SONOBUOY_WORKER_CONTAINER", "value": "sonobuoy-worker"},
        {"name": "SONOBUOY_DONE_FILE_DELAY", "value": "0s"},
        *(variable(name, fieldRef={"fieldPath": path}) for name, path in fields.items()),
        *(variable(n, secretKeyRef={"name": secret, "key": key}) for n, key in pems.items()),
    ]
    mounts = [{"name": "results", "mountPath": RESULTS}]
    shared = {"securityContext": RESTRICTED, "volumeMounts": mounts}
    worker = {
        "name": "sonobuoy-worker",
        "image": "status-reporter",
        "command": ["/sonobuoy"],
        "args": ["worker", "single-node", "--level=trace", "-v=4", "--logtostderr", "--sleep", "0"],
        "env": env,
        **shared,
    }
    command = ["sh", "-c", PLUGINS[plugin]]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": plugin},
        "spec": {
            "serviceAccountName": "plugin",
            "restartPolicy": "Never",
            "containers": [
                {"name": "plugin", "image": "busybox", "command": command, **shared},
                worker,
            ],
            "volumes": [{"name": "results", "emptyDir": {}}],
        },
    }


@pytest.fixture(scope="module")
def site(
    node: Node, product_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployed]:
    """An aggregator with all workers on their way; one plugin of the plan never comes."""
    controlplane = node.controlplane
    with Deployed(node, controlplane.folder / "volumes", plan=PLAN) as run:
        run.start()
        for form in FORMS:
            folder = tmp_path_factory.mktemp(form)
            job = oom_job(run.jobs["quota"], form)
            run.apply(with_components(controlplane, folder, form, [job]))
        run.apply([*READS_PODS, *map(worker_pod, PLUGINS)])
        yield run


def entry_of(run: Deployed, key: str) -> Object:
    """What the status says of a key that has ended."""
    status = run.wait_status(lambda entries: entries[key]["status"] != "running")
    (found,) = (entry for entry in status["plugins"] if entry["key"] == key)
    return dict(found)


def blob_of(run: Deployed, entry: Object) -> Path:
    """The bytes that a worker sent, on the aggregator's volume."""
    (blob,) = (run.volume / "state" / "blobs").glob(f"{entry['digest']}-*")
    return blob


def members_of(run: Deployed, entry: Object) -> dict[str, bytes]:
    """The files of the archive that a worker sent."""
    with tarfile.open(blob_of(run, entry)) as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {name: file.read() for name, file in files if file is not None}


@pytest.mark.parametrize("form", FORMS)
def test_adapter_killed_for_its_memory_is_told_to_both(site: Deployed, form: str) -> None:
    """W24: the Job has its condition and the aggregator an error report with the evidence."""
    name = f"oom-{form}"
    conditions = site.wait_job(name)
    entry = entry_of(site, f"{name}/global")
    report = json.loads(blob_of(site, entry).read_bytes())
    codes = site.wait_pod_ended(site.pod_of(name)["metadata"]["name"])

    told = conditions["Available"]
    assert ("False", "AdapterOOMKilled") == (told["status"], told["reason"])
    assert ("failed", "worker_error", "AdapterOOMKilled") == (
        entry["status"],
        entry["error"]["cause"],
        entry["error"]["reason"],
    )
    assert (told["message"], told["reason"]) == (report["error"], report["cause"])
    assert "OOMKilled" == report["evidence"]["adapter"]["reason"]
    assert 137 == codes["adapter"]
    # Out of memory is trouble of the infrastructure's, which the classic form's exit code tells.
    assert (0 if form == "native" else 1) == codes["status-reporter"]


def test_worker_delivers_what_the_done_file_names(site: Deployed) -> None:
    """`/sonobuoy worker single-node` of our image, with Sonobuoy's variables and flags."""
    entry = entry_of(site, f"named/{Node.name}")
    codes = site.wait_pod_ended("named")

    assert b"<ok/>\n" == blob_of(site, entry).read_bytes()
    assert "complete" == entry["status"]
    assert (2, 1, "half") == tuple(entry["progress"][key] for key in ("total", "completed", "msg"))
    assert {"plugin": 0, "sonobuoy-worker": 0} == codes


def test_plugin_without_a_done_file_is_packed(site: Deployed) -> None:
    """Real statuses: the other container has ended well, so what it left is the result."""
    entry = entry_of(site, f"packed/{Node.name}")
    codes = site.wait_pod_ended("packed")

    assert "complete" == entry["status"]
    assert {"sub/log.txt": b"log\n"} == members_of(site, entry)
    assert {"plugin": 0, "sonobuoy-worker": 0} == codes


def test_crashed_plugin_is_reported_with_what_it_left(site: Deployed) -> None:
    """Half a minute after its end, which is for others that might still write a done file."""
    entry = entry_of(site, f"crashed/{Node.name}")
    codes = site.wait_pod_ended("crashed")

    sent = members_of(site, entry)
    report = json.loads(sent["error.json"])
    assert ("failed", "worker_error") == (entry["status"], entry["error"]["cause"])
    assert "plugin" in report["error"]
    assert [b"half\n"] == [data for name, data in sent.items() if name.endswith("half.txt")]
    assert {"plugin": 3, "sonobuoy-worker": 1} == codes


def pems() -> dict[str, str]:
    """Variables of a link with certificates that nobody will ever see."""
    pair = run_certificates.client("absent")
    return {
        "CA_CERT": run_certificates.authority().pem,
        "CLIENT_CERT": pair.certificate.decode(),
        "CLIENT_KEY": pair.key.decode(),
    }


def moment(text: str) -> float:
    """Seconds since 1970 of an API time."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class TestAbsent:
    """A link to an aggregator that is not there, or to none at all."""

    def ended(self, stage: Stage, form: str, name: str, **settings: str) -> tuple[Any, ...]:
        """Run a Job with that link: its condition, its reporter's end, what it logged."""
        run = stage.new_run(f"{name}-{form}")
        job = make_job(
            stage.controlplane, form, run.name, f"sleep 1; {writes()}", settings=settings, grace=6
        )
        jobs = f"/apis/batch/v1/namespaces/{run.namespace}/jobs"
        run.controlplane.request("POST", jobs, job)
        with explained(run):
            run.form = form
            run.wait_ended(BOUND)
        pod = run.pod()["status"]
        both = [*pod.get("initContainerStatuses", []), *pod["containerStatuses"]]
        states = {found["name"]: found["state"]["terminated"] for found in both}
        told = [
            condition
            for condition in run.controlplane.request("GET", run.path)["status"]["conditions"]
            if condition["type"] == "Available"
        ]
        log = run.log()
        run.delete()
        return told[0], states, log

    @pytest.mark.parametrize("form", FORMS)
    def test_condition_is_written_in_time_and_the_job_ends_well(
        self, stage: Stage, form: str
    ) -> None:
        """W24: the try takes what the form has left, and changes nothing else."""
        link = {
            **pems(),
            "AGGREGATOR_URL": f"https://{stage.controlplane.gateway}:9",
            "RESULT_TYPE": "absent",
        }

        told, states, log = self.ended(stage, form, "absent", **link)

        adapter, reporter = states["adapter"], states["status-reporter"]
        assert ("True", "Checked") == (told["status"], told["reason"])
        # API times are whole seconds.
        assert moment(told["lastTransitionTime"]) - moment(adapter["finishedAt"]) <= 3.0
        assert (0, 0) == (adapter["exitCode"], reporter["exitCode"])
        took = moment(reporter["finishedAt"]) - moment(adapter["finishedAt"])
        # Native: the grace period less 2 s; classic: 30 s.
        assert took <= (6.0 if form == "native" else 34.0)
        lost = [line for line in log if "Not delivered to the aggregator" in line["message"]]
        assert 1 == len(lost)

    @pytest.mark.parametrize("form", FORMS)
    def test_settings_that_do_not_fit_turn_the_link_off(self, stage: Stage, form: str) -> None:
        """One loud line; the Job never loses its verdict over them."""
        told, states, log = self.ended(
            stage, form, "bad-link", AGGREGATOR_URL="ftp://nowhere", CA_CERT="no PEM"
        )

        assert ("True", "Checked") == (told["status"], told["reason"])
        assert 0 == states["status-reporter"]["exitCode"]
        assert ["No link to the aggregator: invalid settings"] == [
            line["message"] for line in log if line["level"] == "error"
        ]
