"""`status-ctl run` on a real node that cannot work: refused before it starts, or said at once."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.bed.controlplane import ControlPlane
from tests.blackbox.cluster.scene import (
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
    pytest.mark.usefixtures("slow_run", "never_pulled"),
]
BACK_OFF = "ImagePullBackOff"
NEVER_PULLED = "localhost:1/nobody/has:that"


class NeverPulled:
    """A run of a plugin whose image nobody has, waited for in the background; it takes a minute."""

    def __init__(self, person: Person) -> None:
        self.person, self.wide = person, (-1, "", "")
        greeting = FIRST.read_text().partition("\n---\n")[0].replace(BUSYBOX, NEVER_PULLED)
        soon = greeting.replace("timeoutSeconds: 300", "startTimeoutSeconds: 30")
        self._process = person.start(
            *("run", "-f", write(person.home, "greeting.yaml", soon), "--name", "pulls"),
            *("--storage", "none", "--wait", "--timeout", "6m", "-o", "json"),
        )
        self._lines: list[tuple[float, str]] = []
        self._reading = threading.Thread(target=self._read)
        self._watching = threading.Thread(target=self._watch)
        self.shown_at = math.inf
        self._reading.start()
        self._watching.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self._lines.append((time.time(), line))
            if NEVER_PULLED in line and self.wide[0] < 0:
                self.wide = self.person.run("status", "pulls", "-o", "wide")

    def ended(self) -> tuple[int, str, float, str]:
        """Return exit code, standard output, when the image was named, and how."""
        code = self._process.wait(BOUND)
        self._reading.join(BOUND)
        self._watching.join(BOUND)
        assert self._process.stdout is not None
        # Before, it may be told that the Pod is being set up.
        said = [each for each in self._lines if NEVER_PULLED in each[1]]
        assert said, self._lines
        return code, self._process.stdout.read(), *said[0]

    def _watch(self) -> None:
        path = "/api/v1/namespaces/status-reporter-pulls/pods"
        query = "?labelSelector=status-reporter.io/plugin"

        def refused(pods: Any) -> bool:
            return any(
                each["state"].get("waiting", {}).get("reason") in {"ErrImagePull", BACK_OFF}
                for pod in pods["items"]
                for each in pod["status"].get("containerStatuses", ())
            )

        self.person.cluster.api.wait_for(path + query, refused, BOUND)
        self.shown_at = time.time()

    def end(self) -> None:
        """Leave nothing."""
        self._process.kill()
        self._reading.join(BOUND)
        self._watching.join(BOUND)
        with self._process:
            pass  # nothing reads its pipes any more
        self.person.run("delete", "pulls", "--yes")


@pytest.fixture(scope="module")
def never_pulled(
    cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NeverPulled]:
    """Begun before the other tests here, so that it is over when its own comes."""
    run = NeverPulled(Person(cluster, tmp_path_factory.mktemp("pulls")))
    yield run
    run.end()


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
        assert "no permission to grant jobs/status: verdicts are not written on the Jobs" in err
        assert ("complete", "failed") == entries(out)["quota/global"]
        assert {} == conditions(person, team)
        assert 0 == person.run("delete", run, "-n", team, "--yes", "--kubeconfig", own)[0]
        assert [] == person.left_of(run)


def test_an_image_of_ours_that_cannot_be_pulled(person: Person, run: str) -> None:
    """L19: the command ends with the reason long before the two minutes are over; the run stays."""
    image = "localhost:1/nobody/has:this"
    began = time.monotonic()
    code, _, err = person.run(
        *("run", "-f", str(FIRST), "--name", run, "--storage", "none", "--image", image, "--wait")
    )
    seconds = time.monotonic() - began

    assert 1 == code
    assert seconds < 100
    assert "cannot pull its image" in err
    assert f"The image is {image}: to use another one, " in err
    assert "STATUS_CTL_IMAGE" in err
    assert f"status-ctl delete {run}" in err


def test_a_plugins_image_that_cannot_be_pulled(never_pulled: NeverPulled) -> None:
    """L19: the kubelet's words on the terminal 15 s after it has said them, and exit code 1.

    `-o wide` has them too, while the image is still being tried.
    """
    code, out, seen_at, said = never_pulled.ended()
    # Its Event comes some ten seconds earlier: a Pod that waits is not looked at all the time.
    seconds = seen_at - never_pulled.shown_at
    print(f"seconds from the kubelet's word in the Pod's status to the line: {seconds:.1f}")

    words = rf"Pending: (ErrImagePull|ImagePullBackOff): .*{NEVER_PULLED}"
    assert re.search(rf"greeting/global: .*{words}", said)
    assert seconds < 15
    code_wide, wide, err = never_pulled.wide
    assert 0 == code_wide, err
    assert re.search(words, wide)
    assert (1, {"greeting/global": ("failed", "failed")}) == (code, entries(out))
    (entry,) = json.loads(out)["plugins"]
    assert "start_failed" == entry["error"]["cause"]
    assert re.search(rf"not started within 30s: .*{NEVER_PULLED}", entry["error"]["text"])
