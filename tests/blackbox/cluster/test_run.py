"""`status-ctl run` on a real node: from definitions to verdicts and a tarball, and back to nothing.

The cluster is the one of `make cluster`: with a scheduler, Services, names and volumes.
"""

from __future__ import annotations

import json
import tarfile
import time
from typing import Any

import pytest
import yaml

from tests.bed.node import Node
from tests.blackbox.cluster.scene import (
    BOUND,
    BUSYBOX,
    FIRST,
    SLEEPS,
    SONOBUOYS,
    Person,
    conditions,
    entries,
    go_on,
    jobs,
    phases,
    wait_pods,
    write,
)
from tests.blackbox.cluster.two_readers import check_both
from tests.plugin_definitions import KUBE_BENCH, ours

REPORT = (
    "<testsuite name='kubelet'><testcase name='4.1.1 of $KUBERNETES_VERSION'/>"
    "<testcase name='4.1.2 of $KUBERNETES_VERSION'><failure>is 0644</failure></testcase>"
    "</testsuite>"
)
WRITES = f"""cd $RESULTS_DIR && echo \\"{REPORT}\\" >a.xml && echo -n $PWD/a.xml >done"""
BENCH = (
    KUBE_BENCH.replace("kube-bench-node", "kube-bench")
    .replace("sonobuoy/kube-bench:$SONOBUOY_K8S_VERSION", BUSYBOX)
    .replace("[-c, /run-kube-bench.sh;", f'[-c, "{WRITES};')
    .replace("sleep 3600; done]", 'sleep 3600; done"]')
)
"""In the shape of Sonobuoy's kube-bench, with a small program: it sleeps for ever, too."""
VERDICTS = {
    "greeting/global": ("complete", "passed"),
    "quota/global": ("complete", "failed"),
    "kernel/node1": ("complete", "passed"),
    "systemd-logs/node1": ("complete", "passed"),
    "kube-bench/node1": ("complete", "failed"),
}
CONDITIONS = {"greeting": "True Greeted", "quota": "False QuotaMissing"}
pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    # Begins now, so that it is over when its tests come.
    pytest.mark.usefixtures("slow_run"),
]


class TestFromNothingToATarballAndBack:
    """L1, L2, L21: adapters that pass and fail, a plugin for each node, two of Sonobuoy's."""

    def test_verdicts_conditions_and_tarball(self, person: Person, run: str) -> None:
        code, out, err = person.run(
            *("run", *self.files(person), "--name", run, "--storage", "none"),
            *("--wait", "--timeout", "4m", "-o", "json"),
        )

        for name in ("systemd-logs", "kube-bench"):
            replaced = "is replaced by --service-account or the run's own"
            assert f"plugin {name}: the service account sonobuoy-serviceaccount {replaced}" in err
        self.check(person, run, code, out)
        code, out, err = person.run("retrieve", run)
        assert 0 == code, err
        tarball = person.home / out.strip()
        raw = ("kernel", "systemd-logs")
        said = {name: check_both(tarball, name, raw) for name in (*CONDITIONS, *raw, "kube-bench")}
        with tarfile.open(tarball) as packed:
            kernel = packed.extractfile("plugins/kernel/results/node1/kernel.txt")
            assert kernel is not None
            assert kernel.read().startswith(b"Linux ")
        assert {"4.1.1 of v1.34.4": "passed", "4.1.2 of v1.34.4": "failed"} == {
            each["name"]: each["status"] for each in said["kube-bench"]["tests"]
        }

        code, _, err = person.run("delete", run)
        assert 0 == code, err
        assert [] == person.left_of(run)

    def test_printed_manifests_need_no_command_afterwards(self, person: Person, run: str) -> None:
        """Another client creates them, as a GitOps tool does; each node has its certificate."""
        code, manifests, err = person.run(
            *("run", *self.files(person), "--name", run, "--storage", "none"),
            *("--dry-run", "-o", "yaml", "--identity", "node"),
        )
        assert 0 == code, err
        person.cluster.kubectl("create", "-f", "-", input=manifests)

        code, out, _ = person.run("wait", f"run/{run}", "--timeout", "4m", "-o", "json")

        self.check(person, run, code, out)

    def files(self, person: Person) -> tuple[str, ...]:
        """Write the definitions; the Jobs of the adapters stay, because of their conditions."""
        own = FIRST.read_text().replace(": result-file\n", ": result-file\n  cleanup: never\n")
        written = {"own": own, "logs": SONOBUOYS, "bench": BENCH}
        return tuple(
            argument
            for name, content in written.items()
            for argument in ("-f", write(person.home, f"{name}.yaml", content))
        )

    def check(self, person: Person, run: str, code: int, out: str) -> None:
        """Compare verdicts and conditions; of the rest no Job stays."""
        assert (1, VERDICTS) == (code, entries(out)), out
        namespace = f"status-reporter-{run}"
        assert CONDITIONS == conditions(person, namespace)
        wait_removed(person, run)
        labels = [job["metadata"]["labels"] for job in jobs(person, namespace)]
        assert [*CONDITIONS] == sorted(each["status-reporter.io/plugin"] for each in labels)


def test_a_run_whose_pods_cannot_reach_it_ends_with_fail_fast(person: Person, run: str) -> None:
    """The fault has its name long before; the run goes on."""
    name = f"{run}.status-reporter-{run}.svc"
    cut_off = [{"ip": "127.0.0.1", "hostnames": [name]}]
    plugins = list(yaml.safe_load_all(SLEEPS))
    plugins[0]["spec"]["template"]["spec"]["hostAliases"] = cut_off
    sleeps = write(person.home, "sleeps.yaml", yaml.safe_dump_all(plugins))
    code, out, err = person.run(
        *("run", "-f", sleeps, "--name", run, "--storage", "none"),
        *("--wait", "--fail-fast", "--timeout", "4m"),
    )

    said = f"cannot connect to {name}: Connection refused"
    assert (1, True) == (code, said in out), out + err
    assert f"sleeps-result-file/global: Running: AggregatorUnreachable: {said}" in err
    _, out, _ = person.run("status", f"run/{run}", "-o", "json")
    assert "running" == entries(out)["sleeps-done-file/global"][0]


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
    person.cluster.kubectl("delete", "pod", "-l", f"job-name={run}", "-n", namespace)
    path = f"/api/v1/namespaces/{namespace}/pods?labelSelector=job-name%3D{run}"
    person.cluster.api.wait_for(path, lambda pods: any(map(is_ready, pods["items"])), BOUND)
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


def wait_removed(person: Person, run: str) -> dict[str, Any]:
    """Return the status of a run that is over, once the removal of its plugins is."""
    end = time.monotonic() + BOUND
    while True:
        _, out, _ = person.run("status", f"run/{run}", "-o", "json")
        shown = json.loads(out) if out else {}
        if (shown.get("launcher") or {}).get("step") == "done":
            return dict(shown)
        assert time.monotonic() < end, shown


def test_a_plugin_that_ignores_sigterm_holds_up_no_verdict(person: Person, run: str) -> None:
    """As a shell does that is process 1: after the end its Pod takes the whole grace period."""
    # This one shares the node's processes, and so it is none.
    ignores = SONOBUOYS.replace('"echo', "\"trap '' TERM; echo")
    assert ignores != SONOBUOYS
    logs = write(person.home, "logs.yaml", ignores)
    code, out, err = person.run(
        *("run", "-f", logs, "--name", run, "--storage", "none"),
        *("--wait", "--timeout", "4m", "-o", "json"),
    )
    pods = wait_pods(person, run, lambda _: True)

    assert (0, ["Running"]) == (code, phases(pods)), err
    over = json.loads(out)
    assert (True, "removing") == (over["final"], over["launcher"]["step"])
    assert [] == wait_removed(person, run)["launcher"]["stays"]
    assert [] == wait_pods(person, run, lambda pods: not pods)
    assert 0 == person.run("retrieve", run)[0]


def test_a_run_with_an_endless_plugin_is_stopped(person: Person, run: str) -> None:
    """What passed is kept, what goes on fails; one plugin first, then all, then nothing is left."""
    greeting = write(person.home, "g.yaml", FIRST.read_text().partition("\n---\n")[0])
    sleeps = write(person.home, "sleeps.yaml", SLEEPS)
    files = ("-f", greeting, "-f", sleeps)
    code, _, err = person.run("run", *files, "--name", run, "--storage", "none")
    assert 0 == code, err
    end = time.monotonic() + BOUND
    while person.run("wait", f"run/{run}", "--for", "greeting", "--timeout", "2m")[0]:
        assert time.monotonic() < end
    wait_pods(person, run, lambda pods: phases(pods).count("Running") == 2)

    code, out, _ = person.run("results", run, "-o", "json")
    assert (3, True) == (code, json.loads(out)["partial"])
    code, _, err = person.run("stop", run, "--plugin", "sleeps-result-file")
    assert (0, True) == (code, "entries without a result: 1" in err)
    code, _, err = person.run("stop", run)
    assert (0, True) == (code, "entries without a result: 1" in err)
    code, out, _ = person.run("wait", f"run/{run}", "--timeout", "4m", "-o", "json")

    stopped = ("failed", "failed")
    assert (1, ("complete", "passed"), stopped, stopped) == (
        code,
        *(
            entries(out)[f"{name}/global"]
            for name in ("greeting", "sleeps-result-file", "sleeps-done-file")
        ),
    )
    assert [] == wait_removed(person, run)["launcher"]["stays"]
    assert [] == wait_pods(person, run, lambda pods: not pods)
    code, _, err = person.run("delete", run, "--yes")
    assert 0 == code, err
    assert [] == person.left_of(run)


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a Pod is ready."""
    conditions = pod["status"].get("conditions", [])
    return ("Ready", "True") in [(each["type"], each["status"]) for each in conditions]


ON_ITS_NODES_NETWORK = ours(
    "says",
    "done-file",
    f"""
    spec:
      hostNetwork: true
      containers:
        - name: plugin
          image: {BUSYBOX}
          command:
            - sh
            - -c
            - >-
              until wget -q -O - --post-data "{{\\"msg\\": \\"$WHOSE\\"}}"
              http://localhost:$SONOBUOY_PROGRESS_PORT/progress; do sleep 0.2; done;
              echo $WHOSE >$RESULTS_DIR/whose; echo $RESULTS_DIR/whose >$RESULTS_DIR/done
""",
    driver="Node",
)
"""It tells progress by a port that the Pods of all runs on a node share."""


def test_two_runs_side_by_side_in_one_namespace(person: Person, run: str) -> None:
    """L18: each ends for itself and hears its own progress; neither takes the other's objects."""
    team, other = f"team-{run}", f"{run}-b"
    person.cluster.kubectl("create", "namespace", team)
    says = write(person.home, "says.yaml", ON_ITS_NODES_NETWORK)
    rest = ("-f", str(FIRST), "-f", says, "-n", team, "--storage", "none", "--wait", "-o", "json")
    try:
        with (
            person.start("run", "--name", run, *rest, "--plugin-env", f"says.WHOSE={run}") as one,
            person.start(
                "run", "--name", other, *rest, "--plugin-env", f"says.WHOSE={other}"
            ) as two,
        ):
            ended = [each.communicate(timeout=BOUND) for each in (one, two)]
        assert [1, 1] == [one.returncode, two.returncode], ended
        assert entries(ended[0][0]) == entries(ended[1][0])
        said = [
            each["progress"]["msg"]
            for out, _ in ended
            for each in json.loads(out)["plugins"]
            if each["name"] == "says"
        ]
        assert [run, other] == said

        code, _, err = person.run("run", "--name", run, *rest)
        assert (1, True) == (code, f"configmap/{run}: " in err)
        assert 0 == person.run("delete", run, "-n", team, "--yes")[0]
        assert [] == person.left_of(run)
        assert f"job.batch/{other}" in person.left_of(other)
    finally:
        person.cluster.kubectl("delete", "namespace", team, "--wait=false")


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
