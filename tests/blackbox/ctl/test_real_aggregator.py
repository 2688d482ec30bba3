"""status-ctl and a real aggregator process: what one serves, the other understands."""

import base64
import contextlib
import http.client
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.aggregators.served import LAUNCHER, Aggregator, plan
from tests.blackbox.ctl.scripted import BOUND, Home

NODES = ("node1", "node2")


@pytest.fixture
def aggregator(tmp_path: Path):
    with Aggregator(
        tmp_path / "run", plan("sysd", NODES), "--hold-seconds", "0", "--status-scope", "local"
    ) as running:
        yield running


def local(aggregator: Aggregator) -> tuple[str, str]:
    return "--url", f"http://127.0.0.1:{aggregator.status_port}"


def head(aggregator: Aggregator) -> tuple[int, http.client.HTTPMessage, bytes]:
    """Ask for the head of the results."""
    connection = http.client.HTTPConnection("127.0.0.1", aggregator.status_port, timeout=BOUND)
    with contextlib.closing(connection):
        connection.request("HEAD", "/results")
        with connection.getresponse() as answer:
            return answer.status, answer.headers, answer.read()


def test_the_head_of_the_results(aggregator: Aggregator) -> None:
    """404 while the run goes on; then name, size and digest as announced, and no body."""
    assert 404 == head(aggregator)[0]
    for node in NODES:
        aggregator.worker("sysd").put(f"by-node/{node}/sysd", b"data")
    tar = aggregator.wait_status(lambda found: found["final"])["tar-info"]
    status, headers, body = head(aggregator)

    digest = base64.b64encode(bytes.fromhex(tar["sha256"])).decode()
    assert (200, b"") == (status, body)
    assert str(tar["size"]) == headers["Content-Length"]
    assert f'attachment; filename="{tar["name"]}"' == headers["Content-Disposition"]
    assert f"sha-256=:{digest}:" == headers["Result-Digest"]


@pytest.mark.parametrize("damage", ["shorter", "gone"])
def test_results_that_were_damaged_are_not_taken(home: Home, aggregator, damage: str) -> None:
    """4, and nothing is left; the aggregator goes on."""
    for node in NODES:
        aggregator.worker("sysd").put(f"by-node/{node}/sysd", b"data")
    tar = aggregator.wait_status(lambda found: found["final"])["tar-info"]
    file = aggregator.output / tar["name"]
    if damage == "gone":
        file.unlink()
    else:
        os.truncate(file, tar["size"] - 1)
    code, out, err = home.run("retrieve", *local(aggregator))

    assert (4, "") == (code, out)
    assert "status-ctl: http://" in err
    assert not [name for name in os.listdir(home.folder) if name.endswith((".gz", ".part"))]
    assert 0 == home.run("status", *local(aggregator))[0]


def test_with_certificates(home: Home, tmp_path: Path) -> None:
    """The files of `status-aggregator certs`.

    On the same machine only the aggregator has to show who it is.
    """
    certs = tmp_path / "status-certs"
    subprocess.run(
        [
            *(sys.executable, str(LAUNCHER), "certs", "--for", "status"),
            *("--host", "127.0.0.1", "--out", str(certs)),
        ],
        env=home.environ | {"PYTHONPATH": str(LAUNCHER.parents[1])},
        check=True,
        capture_output=True,
        timeout=BOUND,
    )
    flags = {"cert": "server.crt", "key": "server.key", "client-ca": "ca.pem"}
    words = [
        word for flag, name in flags.items() for word in (f"--status-tls-{flag}", str(certs / name))
    ]
    aggregator = Aggregator(tmp_path / "run", plan("sysd", NODES), *words)
    url = f"https://127.0.0.1:{aggregator.status_port}"
    files = {"--ca": "ca.pem", "--cert": "client.crt", "--key": "client.key"}
    words = [word for flag, name in files.items() for word in (flag, str(certs / name))]
    try:
        aggregator.launch()
        for _ in range(600):
            code, out, err = home.run("status", "-o", "name", "--url", url, *words)
            if code == 0:
                break
            assert "unreachable" in err or "answered 503" in err, err
        assert (0, "sysd/node1\nsysd/node2\n", "") == (code, out, err)
        beside = home.run("status", "-o", "name", "--url", url, "--ca", str(certs / "ca.pem"))
        assert (0, "sysd/node1\nsysd/node2\n", "") == beside
    finally:
        aggregator.kill()
