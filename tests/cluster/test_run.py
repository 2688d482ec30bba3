"""`status-ctl run` on a real node: from definitions to verdicts and a tarball, and back to nothing.

The cluster is the one of `make cluster`: with a scheduler, Services, names and volumes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.aggregators.served import ROOT
from tests.bed.__main__ import import_images
from tests.bed.controlplane import ControlPlane
from tests.bed.node import Node
from tests.bed.product_image import PRODUCT_IMAGE

FIRST = ROOT / "deploy" / "plugins" / "first-run.yaml"
BUSYBOX = "docker.io/library/busybox:1.37"
SONOBUOYS = f"""\
sonobuoy-config:
  driver: DaemonSet
  plugin-name: systemd-logs
  result-format: raw
spec:
  name: systemd-logs
  image: {BUSYBOX}
  command: ["/bin/sh", "-c", "echo -n logs >${{RESULTS_DIR}}/log && echo -n ${{RESULTS_DIR}}/log \
>${{RESULTS_DIR}}/done && while true; do sleep 3600; done"]
  volumeMounts:
    - {{mountPath: /tmp/sonobuoy/results, name: results, readOnly: false}}
    - {{mountPath: /node, name: root, readOnly: false}}
"""
"""In the shape of Sonobuoy's: no podSpec, its volume `root`, and it sleeps for ever."""
OBEYS = SONOBUOYS.replace(
    "&& while true; do sleep 3600; done", "; trap 'exit 0' TERM; sleep 3600 & wait"
)
"""As above, but it ends when it is asked to: nobody waits for its grace period."""
PASSES = '{"status": "success", "reason": "Fine", "message": "all is well"}'
SLEEPS = yaml.safe_dump_all(
    {
        "apiVersion": "status-reporter.io/v1",
        "kind": "Plugin",
        "metadata": {"name": f"sleeps-{contract}"},
        "spec": {
            "driver": "Job",
            "contract": contract,
            "template": {
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [
                        {
                            "name": "main",
                            "image": BUSYBOX,
                            "command": [
                                *("/bin/sh", "-c"),
                                "trap 'exit 143' TERM; "
                                f"until [ -e /tmp/go ]; do sleep 0.2; done; {ending}",
                            ],
                        }
                    ],
                }
            },
        },
    }
    for contract, ending in {
        "result-file": f"echo '{PASSES}' >/results/new;"
        " mv /results/new /results/adapter-result.json",
        "done-file": "echo well >$RESULTS_DIR/a; echo -n $RESULTS_DIR/a >$RESULTS_DIR/done",
    }.items()
)
"""Both go on when there is a file /tmp/go in their containers."""
DAEMONS = "---".join(
    f"""
apiVersion: status-reporter.io/v1
kind: Plugin
metadata: {{name: {name}}}
spec:
  driver: Node
  contract: done-file
  dispatch: daemonset
  cleanup: {cleanup}
  template:
    spec:
      containers:
        - name: main
          image: {BUSYBOX}
          command: ["/bin/sh", "-c", "trap 'exit 0' TERM; echo -n well >$RESULTS_DIR/a; \
echo -n $RESULTS_DIR/a >$RESULTS_DIR/done; sleep 3600 & wait"]
"""
    for name, cleanup in (("goes", "always"), ("stays", "never"))
)
"""As Sonobuoy's plugins for each node are: they sleep after the done file."""
BOUND = 300.0

pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    # Begins now, so that it is over when its tests come.
    pytest.mark.usefixtures("slow_run"),
]


class Person:
    """Somebody with the cluster's kubeconfig and this command."""

    def __init__(self, cluster: ControlPlane, home: Path) -> None:
        self.cluster, self.home = cluster, home

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Run the command in the background."""
        return subprocess.Popen(
            [sys.executable, str(ROOT / "cmd" / "status-ctl.py"), *arguments],
            env={
                "KUBECONFIG": str(self.cluster.kubeconfig),
                "PATH": "/usr/bin:/bin",
                "STATUS_CTL_IMAGE": PRODUCT_IMAGE,
                "XDG_STATE_HOME": str(self.home),
            },
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run the command: exit code, standard output, standard error."""
        with self.start(*arguments) as process:
            try:
                out, err = process.communicate(timeout=BOUND)
            finally:
                process.kill()
        return process.returncode, out, err

    def left_of(self, run: str) -> list[str]:
        """Return what has the run's label, of all kinds, in the cluster's scope too."""
        named = self.cluster.kubectl("api-resources", "--verbs=list", "-o", "name").split()
        # A kind that is there twice, and one of virtual objects that have no labels.
        kinds = sorted({*named} - {"events", "componentstatuses"})
        label = f"status-reporter.io/run={run}"
        listed = self.cluster.kubectl("get", ",".join(kinds), "-A", "-l", label, "-o", "name")
        return listed.split()

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        """Return an object."""
        found = self.cluster.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        return dict(json.loads(found))


@pytest.fixture
def person(cluster: ControlPlane, tmp_path: Path) -> Person:
    """Somebody in an empty folder."""
    return Person(cluster, tmp_path)


@pytest.fixture
def run(person: Person, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a run that is gone after the test, whatever became of it."""
    name = re.sub(r"[^a-z]+", "-", request.node.name.removeprefix("test_"))[:30].strip("-")
    yield name
    person.run("delete", name, "--yes")


def entries(document: str) -> dict[str, tuple[str, str]]:
    """Return status and result of each entry, by plugin and node."""
    return {
        each.get("key") or f"{each['name']}/{each['node'] or 'global'}": (
            each["status"],
            each["result_status"],
        )
        for each in json.loads(document)["plugins"]
    }


def conditions(person: Person, namespace: str) -> dict[str, str]:
    """Return the status of our condition on the Jobs of a namespace, by plugin."""
    listed = person.cluster.kubectl("get", "jobs", "-n", namespace, "-o", "json")
    found = {}
    for job in json.loads(listed)["items"]:
        plugin = job["metadata"]["labels"]["status-reporter.io/plugin"]
        for each in job["status"].get("conditions", []):
            if each["type"] == "Available":
                found[plugin] = f"{each['status']} {each['reason']}"
    return found


def write(folder: Path, name: str, content: str) -> str:
    """Write a file; return its path."""
    path = folder / name
    path.write_text(content)
    return str(path)


def wait_pods(person: Person, run: str, wanted: Callable[[list[Any]], bool]) -> list[Any]:
    """Return the Pods of a run's plugins once they are as wanted."""
    path = f"/api/v1/namespaces/status-reporter-{run}/pods"
    query = "?labelSelector=status-reporter.io/plugin"
    found = person.cluster.api.wait_for(path + query, lambda pods: wanted(pods["items"]), BOUND)
    return list(found["items"])


def go_on(person: Person, pods: list[Any]) -> None:
    """Let the sleepers of these Pods end."""
    for pod in pods:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        try:
            person.cluster.kubectl(
                "exec", name, "-n", namespace, "-c", "main", "--", "touch", "/tmp/go"
            )
        except subprocess.CalledProcessError as error:
            if error.returncode != 137:  # the container has ended, and the command with it
                raise


def phases(pods: list[Any]) -> list[str]:
    """Return the phases of Pods."""
    return [pod["status"].get("phase", "") for pod in pods]


class TestFromNothingToATarballAndBack:
    """L1: adapters that pass and fail, a plugin for each node, one of Sonobuoy's."""

    def test_verdicts_conditions_and_tarball(self, person: Person, run: str) -> None:
        sonobuoys = write(person.home, "systemd-logs.yaml", SONOBUOYS)
        files = ("-f", str(FIRST), "-f", sonobuoys)
        code, out, err = person.run(
            *("run", *files, "--name", run, "--storage", "none", "--cleanup", "never"),
            *("--wait", "--timeout", "4m", "-o", "json"),
        )

        assert 1 == code, err
        assert {
            "greeting/global": ("complete", "passed"),
            "quota/global": ("complete", "failed"),
            "kernel/node1": ("complete", "passed"),
            "systemd-logs/node1": ("complete", "passed"),
        } == entries(out), err
        namespace = f"status-reporter-{run}"
        assert {
            "greeting": "True Greeted",
            "quota": "False QuotaMissing",
        } == conditions(person, namespace)

        code, out, err = person.run("retrieve", run, "--extract", str(person.home / "got"))
        assert 0 == code, err
        kernel = person.home / "got" / "plugins" / "kernel" / "results" / "node1" / "kernel.txt"
        assert kernel.read_text().startswith("Linux ")

        code, _, err = person.run("delete", run)
        assert 0 == code, err
        assert [] == person.left_of(run)


def test_plugins_with_a_daemon_set(person: Person, run: str) -> None:
    """Complete with their results, though they sleep on; one is gone then, the other is kept."""
    daemons = write(person.home, "daemons.yaml", DAEMONS)
    code, out, err = person.run(
        *("run", "-f", daemons, "--name", run, "--storage", "none"),
        *("--wait", "--timeout", "4m", "-o", "json"),
    )

    assert 0 == code, err
    expected = dict.fromkeys(("goes/node1", "stays/node1"), ("complete", "passed"))
    assert expected == entries(out), err
    namespace = f"status-reporter-{run}"
    # The node takes a moment to let go of Pods in which nothing runs any more.
    wait_pods(person, run, lambda pods: len(pods) == 1)
    listed = person.cluster.kubectl("get", "daemonsets,jobs,pods", "-n", namespace, "-o", "json")
    left = {
        (each["kind"], each["metadata"]["labels"].get("status-reporter.io/plugin")): each
        for each in json.loads(listed)["items"]
    }
    assert {("DaemonSet", "stays"), ("Pod", "stays"), ("Pod", None)} == left.keys()
    # A worker that ends would be started again, and would send its result again.
    assert {("main", 0, True), ("status-worker", 0, True)} == {
        (each["name"], each["restartCount"], "running" in each["state"])
        for each in left["Pod", "stays"]["status"]["containerStatuses"]
    }

    code, _, err = person.run("delete", run, "--yes")
    assert 0 == code, err
    assert [] == person.left_of(run)


def test_printed_manifests_need_no_command_afterwards(person: Person, run: str) -> None:
    """L2: another client creates them, as a GitOps tool does."""
    code, manifests, err = person.run(
        *("run", "-f", str(FIRST), "--name", run, "--storage", "none", "--dry-run", "-o", "yaml")
    )
    assert 0 == code, err
    person.cluster.kubectl("create", "-f", "-", input=manifests)

    code, out, err = person.run("wait", f"run/{run}", "--timeout", "4m", "-o", "json")

    assert 1 == code, err
    assert {
        "greeting/global": ("complete", "passed"),
        "quota/global": ("complete", "failed"),
        "kernel/node1": ("complete", "passed"),
    } == entries(out)


@pytest.mark.parametrize("time", range(int(os.environ.get("DELETIONS", "1"))))
class TestDeletesInEachPhase:
    """L3: nothing of the run is left, whatever it was doing; DELETIONS=10 tries each ten times."""

    def start(self, person: Person, run: str, *more: str) -> subprocess.Popen[str]:
        sonobuoys = write(person.home, "systemd-logs.yaml", OBEYS)
        files = ("-f", str(FIRST), "-f", sonobuoys)
        return person.start("run", *files, "--name", run, "--storage", "none", *more)

    def test_before_the_aggregator_is_ready(self, person: Person, run: str, time: int) -> None:
        """The command that started it has been killed."""
        with self.start(person, run) as process:
            assert process.stderr is not None
            assert any("created in new namespace" in line for line in process.stderr)
            process.kill()

        assert 0 == person.run("delete", run, "--yes")[0]
        assert [] == person.left_of(run)

    def test_while_plugins_start(self, person: Person, run: str, time: int) -> None:
        with self.start(person, run) as process:
            _, err = process.communicate(timeout=BOUND)
            assert 0 == process.returncode, err

        code, _, err = person.run("delete", run)
        assert (1, True) == (code, "it is still running" in err)
        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_while_plugins_run(self, person: Person, run: str, time: int) -> None:
        sleeps = write(person.home, "sleeps.yaml", SLEEPS)
        code, _, err = person.run("run", "-f", sleeps, "--name", run, "--storage", "none")
        assert 0 == code, err
        wait_pods(person, run, lambda pods: phases(pods) == ["Running"] * 2)

        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_while_it_cleans_up(self, person: Person, run: str, time: int) -> None:
        """The first of its Jobs are being removed."""
        with self.start(person, run, "--wait") as process:
            seen = [0]

            def fewer(pods: list[Any]) -> bool:
                seen.append(len(pods))
                return seen[-1] < max(seen)

            wait_pods(person, run, fewer)
            process.kill()

        code, _, err = person.run("delete", run, "--yes")
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_when_it_is_over(self, person: Person, run: str, time: int) -> None:
        with self.start(person, run, "--wait") as process:
            process.communicate(timeout=BOUND)

        code, _, err = person.run("delete", run)
        assert (1, True) == (code, "its results were not downloaded" in err)
        assert 0 == person.run("delete", run, "--yes")[0]
        assert [] == person.left_of(run)


@pytest.fixture
def second(cluster: ControlPlane) -> Iterator[str]:
    """The name of another real node, with a kubelet of its own."""
    with Node(cluster, services=True, second=True) as node:
        import_images(node)
        yield node.name
    cluster.request("DELETE", f"/api/v1/nodes/{node.name}")


def test_the_aggregators_pod_is_deleted_while_plugins_run_on_two_nodes(
    person: Person, run: str, second: str
) -> None:
    """L5: the plugins live on, the clocks too, and the next one ends the run."""
    each_node = SLEEPS.replace("driver: Job", "driver: Node")
    sleeps = write(person.home, "sleeps.yaml", each_node)
    code, _, err = person.run("run", "-f", sleeps, "--name", run, "--storage", "1Gi")
    assert 0 == code, err
    namespace = f"status-reporter-{run}"
    pods = wait_pods(person, run, lambda pods: phases(pods) == ["Running"] * 4)

    def started() -> dict[str, Any]:
        _, out, _ = person.run("status", f"run/{run}", "-n", namespace, "-o", "json")
        listed = json.loads(out)["plugins"] if out else []
        shown = {each["key"]: each["pod"] or {} for each in listed}
        running = {key: pod["since"] for key, pod in shown.items() if pod.get("phase") == "Running"}
        return running if len(running) == len(pods) else {}

    end = time.monotonic() + BOUND
    while not (since := started()):
        assert time.monotonic() < end
    person.cluster.kubectl("delete", "pod", f"{run}-0", "-n", namespace)
    ready = ("--for=condition=Ready", f"pod/{run}-0", "-n", namespace, f"--timeout={BOUND:.0f}s")
    person.cluster.kubectl("wait", "--for=create", *ready[1:])
    person.cluster.kubectl("wait", *ready)
    while not (again := started()):
        assert time.monotonic() < end

    assert since == again
    assert {pod["metadata"]["uid"] for pod in pods} == {
        pod["metadata"]["uid"] for pod in wait_pods(person, run, bool)
    }
    go_on(person, pods)
    code, out, err = person.run("wait", f"run/{run}", "--timeout", "4m", "-o", "json")
    assert 0 == code, (out, err)
    assert {
        f"sleeps-{contract}/{node}": ("complete", "passed")
        for contract in ("result-file", "done-file")
        for node in (Node.name, second)
    } == entries(out)
    code, _, err = person.run("delete", run, "--yes")
    assert 0 == code, err
    assert [] == person.left_of(run)


class TestSaidBeforeTheStart:
    """L6: the API server's own words, nothing created, nothing of others touched."""

    @pytest.fixture
    def team(self, person: Person, run: str) -> Iterator[str]:
        """A namespace of somebody else's."""
        name = f"team-{run}"
        person.cluster.kubectl("create", "namespace", name)
        there = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        person.cluster.api.wait_for(there, bool)
        yield name
        person.cluster.kubectl("delete", "namespace", name, "--wait=false")

    def refused(self, person: Person, run: str, team: str, *more: str) -> str:
        began = time.monotonic()
        code, out, err = person.run(
            *("run", "--name", run, "-n", team, "--storage", "none", *(more or ("-f", str(FIRST))))
        )
        assert time.monotonic() - began < 30
        assert (1, "") == (code, out), err
        assert "the run cannot be started" in err
        assert [] == person.left_of(run)
        return err

    def test_a_quota(self, person: Person, run: str, team: str) -> None:
        person.cluster.kubectl("create", "quota", "none", "--hard=pods=0", "-n", team)
        there = f"/api/v1/namespaces/{team}/resourcequotas/none"
        person.cluster.api.wait_for(there, lambda quota: quota.get("status", {}).get("hard"))
        err = self.refused(person, run, team)

        assert "the aggregator: its Pod would be refused: " in err
        assert "plugin kernel: its Pod would be refused: " in err
        assert 4 == err.count("exceeded quota: none")

    def test_pod_security(self, person: Person, run: str, team: str) -> None:
        """Of the plugin that asks for too much, and of no other."""
        level = "pod-security.kubernetes.io/enforce=restricted"
        person.cluster.kubectl("label", "namespace", team, level)
        sonobuoys = write(person.home, "systemd-logs.yaml", SONOBUOYS)
        err = self.refused(person, run, team, "-f", str(FIRST), "-f", sonobuoys)

        assert 1 == err.count("its Pod would be refused")
        assert "plugin systemd-logs: its Pod would be refused: " in err
        assert 'violates PodSecurity "restricted:latest"' in err

    def test_no_such_account(self, person: Person, run: str, team: str) -> None:
        err = self.refused(person, run, team, "-f", str(FIRST), "--service-account", "nobody")

        assert 3 == err.count("error looking up service account")
        assert "the aggregator: " not in err

    def test_a_name_that_a_stranger_has(self, person: Person, run: str, team: str) -> None:
        person.cluster.kubectl("create", "configmap", run, "--from-literal=a=b", "-n", team)
        err = self.refused(person, run, team)

        assert f'configmap/{run}: configmaps "{run}" already exists' in err
        assert {"a": "b"} == person.get("configmap", run, team)["data"]

    def test_who_may_not_grant_the_status_of_jobs(
        self, person: Person, run: str, team: str
    ) -> None:
        """As with the built-in role `admin`: the run goes without conditions on the Jobs."""
        kubectl = person.cluster.kubectl
        kubectl("create", "serviceaccount", "lead", "-n", team)
        kubectl(
            *("create", "rolebinding", "lead", "--clusterrole=admin", "-n", team),
            f"--serviceaccount={team}:lead",
        )
        token = kubectl("create", "token", "lead", "-n", team).strip()
        config = yaml.safe_load(person.cluster.kubeconfig.read_text())
        config["users"] = [{"name": "lead", "user": {"token": token}}]
        config["contexts"][0]["context"]["user"] = "lead"
        own = write(person.home, "kubeconfig", json.dumps(config))
        code, out, err = person.run(
            *("run", "-f", str(FIRST), "--name", run, "-n", team, "--kubeconfig", own),
            *("--storage", "none", "--node", "node1", "--cleanup", "never"),
            *("--wait", "--timeout", "4m", "-o", "json"),
        )

        assert 1 == code, err
        assert "you may not grant jobs/status: verdicts are not written on the Jobs" in err
        assert ("complete", "failed") == entries(out)["quota/global"]
        assert {} == conditions(person, team)
        assert 0 == person.run("delete", run, "-n", team, "--yes", "--kubeconfig", own)[0]
        assert [] == person.left_of(run)


def test_two_runs_side_by_side_in_one_namespace(person: Person, run: str) -> None:
    """L18: each ends for itself, and neither takes the other's objects along."""
    team, other = f"team-{run}", f"{run}-b"
    person.cluster.kubectl("create", "namespace", team)
    rest = ("-f", str(FIRST), "-n", team, "--storage", "none", "--wait", "-o", "json")
    try:
        with (
            person.start("run", "--name", run, *rest) as one,
            person.start("run", "--name", other, *rest) as two,
        ):
            ended = [each.communicate(timeout=BOUND) for each in (one, two)]
        assert [1, 1] == [one.returncode, two.returncode], ended
        assert entries(ended[0][0]) == entries(ended[1][0])

        code, _, err = person.run("run", "--name", run, *rest)
        assert (1, True) == (code, f"configmap/{run}: " in err)
        assert 0 == person.run("delete", run, "-n", team, "--yes")[0]
        assert [] == person.left_of(run)
        assert f"statefulset.apps/{other}" in person.left_of(other)
    finally:
        person.cluster.kubectl("delete", "namespace", team, "--wait=false")


def test_an_image_of_ours_that_cannot_be_pulled(person: Person, run: str) -> None:
    """L19: the reason is on the terminal long before the two minutes are over."""
    image = "localhost:1/nobody/has:this"
    began = time.monotonic()
    with person.start(
        *("run", "-f", str(FIRST), "--name", run, "--storage", "none", "--image", image, "--wait")
    ) as process:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if "cannot pull its image" in line:
                break
        seconds = time.monotonic() - began
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=BOUND)

    assert image in said
    assert seconds < 60
    assert 130 == process.returncode
    assert f"status-ctl delete {run}" in rest


def test_a_plugins_image_that_cannot_be_pulled(person: Person, run: str) -> None:
    """L19: `--wait` and `-o wide` have the kubelet's words while it is still being tried."""
    image = "localhost:1/nobody/has:that"
    greeting = FIRST.read_text().partition("\n---\n")[0].replace(BUSYBOX, image)
    with person.start(
        *("run", "-f", write(person.home, "greeting.yaml", greeting), "--name", run),
        *("--storage", "none", "--wait", "--timeout", "4m"),
    ) as process:
        assert process.stderr is not None
        # Before, it may be told that the Pod is being set up.
        said = next(
            line for line in process.stderr if "greeting/global: " in line and image in line
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=BOUND)
    code, out, err = person.run("status", run, "-o", "wide")

    assert re.search(r"Pending: (ErrImagePull|ImagePullBackOff): ", said)
    assert image in said
    assert 0 == code, err
    assert re.search(rf"Pending: (ErrImagePull|ImagePullBackOff): .*{image}", out)


def test_exposed_on_a_node(person: Person, run: str) -> None:
    """The status by the connection file alone, the results also through a port-forward."""
    greeting = write(person.home, "g.yaml", FIRST.read_text().partition("\n---\n")[0])
    code, out, err = person.run(
        *("run", "-f", greeting, "--name", run, "--storage", "none", "--expose", "nodeport"),
        *("--wait", "--timeout", "4m", "-o", "name"),
    )
    assert (0, "greeting/global\n") == (code, out), err
    file = person.home / "status-reporter" / "connection.json"
    node = person.get("node", "node1", "default")["status"]["addresses"]
    address = next(each["address"] for each in node if each["type"] == "InternalIP")
    kept = json.loads(file.read_text())
    assert kept["host_address"].startswith(f"https://{address}:"), err

    by_file = ("--connection", str(file), "-o", "name")
    assert (0, "greeting/global\n", "") == person.run("status", *by_file)
    code, tarball, err = person.run("retrieve", run)
    assert (0, True) == (code, (person.home / tarball.strip()).exists()), err
    assert 0 == person.run("delete", run)[0]
    assert not file.exists()
    assert [] == person.left_of(run)
