"""The results of a run uploaded to a real object store, and the URL looked for everywhere."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.object_store import ObjectStore
from tests.aggregators.served import Aggregator, plan
from tests.bed.binaries import BedUnavailable, program
from tests.bed.controlplane import ControlPlane
from tests.blackbox.cluster.scene import Person, gateway, write
from tests.plugin_definitions import ours
from tests.ports import free_port

pytestmark = [pytest.mark.node, pytest.mark.timeout(600)]

POD = """
    spec:
      containers:
        - name: adapter
          image: docker.io/library/busybox:1.37
          command: [sh, -c, 'echo "{\\"status\\":\\"success\\"}" >/results/new && mv /results/new \
/results/adapter-result.json']"""
PLUGIN = ours("greeting", "result-file", POD)


@pytest.fixture(autouse=True)
def _store_program() -> None:
    try:
        program("versitygw")
    except BedUnavailable as reason:
        pytest.skip(str(reason))


SEEN = ("pods", "jobs", "configmaps", "secrets", "services", "networkpolicies", "events")


def secrets(url: str) -> tuple[str, ...]:
    """The parts of a URL that must not be seen."""
    return tuple(re.findall(r"X-Amz-(?:Signature|Credential)=([^&]+)", url))


def test_a_store_takes_what_was_presigned_for_it(tmp_path: Path) -> None:
    """Byte for byte; what it does not take it says why, and the tarball stays."""
    tarballs: dict[str, bytes] = {}
    with ObjectStore(tmp_path, "127.0.0.1", free_port()) as store:
        for name, state in (("good", "uploaded"), ("forged", "failed")):
            url = store.presigned(f"/results/{name}.tar.gz")
            if name == "forged":
                url = url[:-8] + "0" * 8
            flags = ("--upload-url-file", write(tmp_path, "url", url), "--upload-ca", str(store.ca))
            with Aggregator(tmp_path / name, plan("e2e", []), *flags) as run:
                run.worker("e2e").put("global/e2e", b"result" * 1_000_000)
                ended = run.wait_status(lambda status: status["final"])
                assert state == ended["upload"]["state"], ended
                tarballs[name] = run.ask("/results")
                for secret in secrets(url):
                    assert secret not in json.dumps([ended, run.events])
        assert "403 Forbidden (SignatureDoesNotMatch)" == ended["upload"]["error"]
        assert tarballs["good"] == store.object("good.tar.gz").read_bytes()
        assert not store.object("forged.tar.gz").exists()


def test_a_run_that_ends_with_its_verdict(person: Person, run: str, tmp_path: Path) -> None:
    """L16: uploaded, passed, its Job complete; and the URL is in its Secret and nowhere else."""
    where = gateway(person.cluster)
    with ObjectStore(tmp_path, where, free_port()) as store:
        url = store.presigned("/results/run.tar.gz")
        code, out, err = person.run(
            *("run", "-f", write(tmp_path, "plugin.yaml", PLUGIN), "--name", run),
            *("--upload-url-file", write(tmp_path, "url", url), "--upload-ca", str(store.ca)),
            *("--plugin-timeout", "1h", "--exit", "--wait"),
        )
        assert 0 == code, err
        packed = store.object("run.tar.gz").read_bytes()
    namespace = f"status-reporter-{run}"
    person.cluster.kubectl(
        *("wait", f"job/{run}", "-n", namespace, "--for=condition=Complete", "--timeout=60s")
    )
    code, shown, _ = person.run("status", run, "-o", "json")
    document = json.loads(shown)
    assert (0, "passed", "uploaded") == (
        code,
        document["result_status"],
        document["upload"]["state"],
    )
    assert document["tar-info"]["sha256"] == hashlib.sha256(packed).hexdigest()
    seen = [out, err, shown, *everything(person.cluster, namespace, run)]
    for secret in secrets(url):
        assert not [each for each in seen if secret in each]
    assert 0 == person.run("delete", run)[0]
    assert [] == person.left_of(run)


def everything(cluster: ControlPlane, namespace: str, run: str) -> Iterator[str]:
    """What anybody sees of a run: its objects, Events and logs, and the processes of its node."""
    for kind in SEEN:
        listed = json.loads(cluster.kubectl("get", kind, "-n", namespace, "-o", "json"))
        for each in listed["items"]:
            if (each["kind"], each["metadata"]["name"]) != ("Secret", f"{run}-upload"):
                yield json.dumps(each)
    yield cluster.kubectl("logs", f"job/{run}", "-n", namespace)
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield process.read_text(errors="replace")
        except OSError:
            continue  # it has ended
