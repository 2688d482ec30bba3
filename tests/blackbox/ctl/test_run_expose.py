"""`status-ctl run --expose`: who is let in from outside the cluster, and what is left with them."""

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.blackbox.ctl.launched import Controllers, standing
from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.blackbox.ctl.starting import DEFINITION, posts, really, start, write
from tests.fakekube import Answer, FakeKube
from tests.scripted_server import Say

NAMESPACE = "status-reporter-first"


class Listener(Scripted):
    """The run's status listener: with the certificate of Secret `first-status`, for its clients."""

    def __init__(self, fake: FakeKube, folder: Path) -> None:
        self._fake, self._folder = fake, folder
        super().__init__(status=Say(body=run_status("running", entry("quota"))))

    def context(self) -> ssl.SSLContext:
        data = self._fake.store.get("Secret", NAMESPACE, "first-status")["data"]
        for name, content in data.items():
            (self._folder / name).write_bytes(base64.b64decode(content))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._folder / "tls.crt", self._folder / "tls.key")
        context.load_verify_locations(self._folder / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
        return context


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server and its administrator."""
    with FakeKube(role="admin") as fake:
        yield fake


@pytest.fixture
def there(at_home: Home, fake: FakeKube, tmp_path: Path) -> Iterator[Home]:
    """A home with a kubeconfig and a definition, and what the cluster does for a run."""
    write(at_home, "quota.yaml", DEFINITION)
    certificates = tmp_path / "listener"
    certificates.mkdir()
    with Listener(fake, certificates) as listener, Controllers(fake, exposed=listener.port):
        yield at_home


def test_a_node_port(there: Home, fake: FakeKube) -> None:
    """The file has the node's address; with it the status is read without rights in the cluster."""
    code, out, err = start(there, "--expose", "nodeport")
    kept = json.loads(there.connection.read_text())
    (there.folder / ".kube" / "config").unlink()

    assert (0, "") == (code, out), err
    assert f"the status is at {kept['host_address']}; connection file: {there.connection}" in err
    assert kept["host_address"].startswith("https://127.0.0.1:")
    assert f"first-status.{NAMESPACE}.svc" == kept["server_name"]
    assert 0o600 == there.connection.stat().st_mode & 0o777
    assert (0, "quota/global\n", "") == there.run("status", "-o", "name")
    service = fake.store.get("Service", NAMESPACE, "first-status")
    assert "NodePort" == service["spec"]["type"]


def test_the_file_goes_with_the_run(there: Home) -> None:
    """It opens nothing any more; that of another run, also of that name, stays."""
    start(there, "--expose", "nodeport")
    other = there.folder / "other.json"
    other.write_bytes(there.connection.read_bytes())
    code, _, err = there.run("delete", "first", "--yes")

    assert 0 == code, err
    assert f"connection file {there.connection} deleted" in err
    start(there, "--expose", "nodeport", "--connection", "again.json")
    other.chmod(0o600)
    other.replace(there.connection)
    assert 0 == there.run("delete", "first", "--yes")[0]
    assert there.connection.exists()


def test_the_file_goes_when_the_secret_has_gone(there: Home, fake: FakeKube) -> None:
    """Also when something else stays: the next deletion could not tell whose file it is."""
    start(there, "--expose", "nodeport")
    fake.fail(Answer(403), method="DELETE", path="/secrets", times=None)
    assert 1 == there.run("delete", "first", "--yes", "--timeout", "1s")[0]
    assert there.connection.exists()
    fake.clear_faults()
    fake.fail(Answer(403), method="DELETE", path="/configmaps", times=None)
    code, _, err = there.run("delete", "first", "--yes", "--timeout", "1s")

    assert 1 == code
    assert f"connection file {there.connection} deleted" in err
    assert not there.connection.exists()
    assert ["ConfigMap/first", f"Namespace/{NAMESPACE}"] == standing(fake, "first")


def test_somebody_elses_certificate_is_not_trusted(there: Home, fake: FakeKube) -> None:
    """Whoever has the address in the meantime has another certificate."""
    start(there, "--expose", "nodeport")
    kept = json.loads(there.connection.read_text())
    there.connection.write_text(json.dumps(kept | {"server_name": "second-status.x.svc"}))
    code, _, err = there.run("status", "--connection", str(there.connection))

    assert 4 == code
    assert "certificate not trusted" in err


def test_a_load_balancer_without_an_address(there: Home) -> None:
    """What to do later is said: the only copy of the client's key is in the file."""
    code, _, err = start(there, "--expose", "loadbalancer", "--wait", "--timeout", "2s")

    assert 3 == code
    assert "service/first-status has no address yet" in err
    assert f"connection file: {there.connection}, so far with the address inside the" in err
    kept = json.loads(there.connection.read_text())
    assert f"https://first-status.{NAMESPACE}.svc:8081" == kept["host_address"]


def test_a_run_that_cannot_be_started_leaves_no_file(there: Home, fake: FakeKube) -> None:
    fake.fail(Answer(403), method="POST", path="/jobs", where=really, times=None)
    code, _, err = start(there, "--expose", "nodeport")

    assert 1 == code, err
    assert [] == standing(fake, "first")
    assert not there.connection.exists()


@pytest.mark.parametrize("file", [None, "kept.json"])
def test_printed(there: Home, fake: FakeKube, file: str | None) -> None:
    """With the key of the listener, which is said; the client's only where a file is named."""
    more = () if file is None else ("--connection", file)
    code, out, err = start(there, "--expose", "loadbalancer", "--dry-run", *more)
    made = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(out)}

    assert 0 == code
    assert {"ca.crt", "tls.crt", "tls.key"} == set(made["Secret", "first-status"]["data"])
    assert "secret/first-status has the key of the status listener: keep the output private" in err
    assert not there.connection.exists()
    assert (file is None) == ("no connection file is written" in err)
    assert [] == posts(fake)
    if file is not None:
        kept: dict[str, Any] = json.loads((there.folder / file).read_text())
        secret = base64.b64decode(made["Secret", "first-status"]["data"]["ca.crt"]).decode()
        assert secret == kept["ca_cert"]
