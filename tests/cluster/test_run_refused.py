"""`status-ctl run` on a real node that cannot work: refused before it starts, or said at once."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Iterator

import pytest
import yaml

from tests.cluster.scene import (
    BOUND,
    BUSYBOX,
    FIRST,
    REFUSAL,
    SONOBUOYS,
    Person,
    conditions,
    entries,
    refusing,
    write,
)

pytestmark = [
    pytest.mark.node,
    pytest.mark.timeout(900),
    # Begins now, so that it is over when its tests come.
    pytest.mark.usefixtures("slow_run"),
]


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

    def test_a_policy(self, person: Person, run: str, team: str) -> None:
        """Which refuses a plugin's Pod, or only the Job that would make it."""
        with refusing(person.cluster, run, pod="kernel", job="quota"):
            err = self.refused(person, run, team)

        assert 2 == err.count(REFUSAL)
        for plugin, kind in (("kernel", "Pod"), ("quota", "Job")):
            assert re.search(
                rf"plugin {plugin}: its {kind} would be refused: .* denied request: {REFUSAL}", err
            )

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
