"""The whole worker: done file, signals, settings, environment, as a process against real TLS."""

import contextlib
import http.client
import io
import json
import signal
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aggregators.identities import Authority, Identities, identities
from tests.aggregators.scripted import BEAT, Scripted
from tests.blackbox.worker.process import LAUNCHER, environment, worker
from tests.calm import Calm
from tests.scripted_server import Say, Silence

SONOBUOY = Say(404, b"404 page not found\n")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with Scripted() as aggregator:
        yield aggregator


def finish(results: Path, name: str = "a.json", content: bytes = b'{"a":1}') -> None:
    """Do what a plugin does."""
    (results / name).write_bytes(content)
    (results / "done.new").write_text(f"{results}/{name}\n")
    (results / "done.new").replace(results / "done")


def test_a_global_result(scripted: Scripted, results: Path) -> None:
    """W1: one PUT under the plugin's name, not before one look and the delay, exit 0."""
    finish(results)
    began = time.monotonic()
    with worker(
        environ=environment(scripted, results, SONOBUOY_DONE_FILE_DELAY="500ms")
    ) as process:
        (put,) = scripted.heard(1, "results")
        took = time.monotonic() - began
        code = process.join()

    assert (0, "") == (code, process.errors)
    assert ("PUT", "/api/v1/results/global/e2e", b'{"a":1}') == (put.method, put.target, put.body)
    assert 'attachment; filename="a.json"' == put.headers["content-disposition"]
    assert "application/json" == put.headers["content-type"]
    assert took >= 0.5
    assert [put] == scripted.heard(1, "results")
    assert {"outcome": "accepted", "digest": put.digest}.items() <= process.said(
        "Result delivered"
    )[0].items()


def test_the_result_of_a_node(scripted: Scripted, results: Path) -> None:
    """W2: with the arguments that Sonobuoy gives its workers."""
    finish(results)
    with worker(
        *["worker", "single-node", "-v", "5", "--logtostderr", "--level=trace", "--sleep=0"],
        environ=environment(scripted, results, NODE_NAME="node1"),
    ) as process:
        assert 0 == process.join()

    assert ["/api/v1/results/by-node/node1/e2e"] == [
        put.target for put in scripted.heard(1, "results")
    ]


def test_a_node_without_a_name(scripted: Scripted, results: Path) -> None:
    """W2: said before any network is touched."""
    finish(results)
    with worker(
        "worker", "single-node", environ=environment(scripted, results, NODE_NAME="")
    ) as process:
        assert 2 == process.join()

    assert "NODE_NAME" in process.said("Invalid settings")[0]["problems"][0]
    assert 0 == scripted.connections


def test_a_directory(scripted: Scripted, results: Path) -> None:
    """W4, F16: relative names, the plugin's own results.tar.gz, no link, no done file."""
    (results / "sub").mkdir()
    (results / "sub/results.tar.gz").write_bytes(b"the plugin's own")
    (results / "link").symlink_to("/etc/hostname")
    (results / "done").write_text(str(results))
    with worker(environ=environment(scripted, results)) as process:
        assert 0 == process.join()

    (put,) = scripted.heard(1, "results")
    assert 'attachment; filename="results.tar.gz"' == put.headers["content-disposition"]
    assert "application/gzip" == put.headers["content-type"]
    with tarfile.open(fileobj=io.BytesIO(put.body), mode="r:gz") as tar:
        assert ["sub", "sub/results.tar.gz"] == tar.getnames()


@pytest.mark.parametrize(
    ("acts", "code", "requests"),
    [
        ([Say(500), Say(500), Say(200)], 0, 3),
        ([Say(409)], 0, 1),
        ([Say(403)], 1, 1),
        ([Say(201)], 1, 1),
        ([Say(301, headers={"Location": "/api/v1/results/global/other"})], 1, 1),
    ],
    ids=["500 500 200", "409", "403", "201", "301"],
)
def test_what_the_aggregator_says_is_the_exit_code(
    results: Path, acts: list[Say], code: int, requests: int
) -> None:
    """W5, F20: a redirect is no success, and is not followed."""
    finish(results)
    with (
        Scripted(results=acts) as scripted,
        worker(environ=environment(scripted, results)) as process,
    ):
        assert code == process.join()
        assert requests == len(scripted.heard(requests, "results"))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("/nowhere/a.json", "no_result"),
        ("/proc/self/environ", "foreign_path"),
        ("link", "foreign_path"),
    ],
)
def test_no_result_behind_the_done_file(
    scripted: Scripted, results: Path, text: str, cause: str
) -> None:
    """W9, F15: our aggregator is told, exit 1."""
    (results / "link").symlink_to("/proc/self/environ")
    (results / "done").write_text(text)
    with worker(environ=environment(scripted, results)) as process:
        assert 1 == process.join()

    (put,) = scripted.heard(1, "results")
    assert ("error", "application/json") == (
        put.headers["result-outcome"],
        put.headers["content-type"],
    )
    assert 'attachment; filename="error.json"' == put.headers["content-disposition"]
    assert cause == json.loads(put.body)["cause"]
    assert b"PRIVATE KEY" not in put.body


@pytest.mark.parametrize("beats", ["15", "0"])
def test_a_sonobuoy_aggregator_hears_nothing_of_it(results: Path, beats: str) -> None:
    """W9: it would book the report as a good result; its own look at the Pod does better."""
    (results / "done").write_text("")
    with (
        Scripted(health=[SONOBUOY]) as scripted,
        worker(environ=environment(scripted, results, WORKER_HEARTBEAT_SECONDS=beats)) as process,
    ):
        assert 1 == process.join()
        assert [] == scripted.heard(0, "results")
        assert len(scripted.heard(1, "health")) <= 2


@pytest.mark.parametrize("peer", ["ours", "Sonobuoy's"])
def test_a_result_that_cannot_be_read(results: Path, peer: str) -> None:
    """W19, F17: said to both, typed gzip to neither."""
    deep = results / "/".join("d" * 300)
    deep.mkdir(parents=True)
    (results / "done").write_text(str(results))
    with (
        Scripted(health=[BEAT if peer == "ours" else SONOBUOY]) as scripted,
        worker(environ=environment(scripted, results)) as process,
    ):
        assert 1 == process.join()
        (put,) = scripted.heard(1, "results")

    assert "error" in json.loads(put.body)
    assert "gzip" not in put.headers["content-type"]
    assert (peer == "ours") == ("content-disposition" in put.headers)
    assert (peer == "ours") == ("result-outcome" in put.headers)


def test_sigterm_without_results(scripted: Scripted, results: Path) -> None:
    """W12: five seconds before the end of the grace period it says so and ends with 1."""
    with worker(environ=environment(scripted, results, WORKER_GRACE_SECONDS="6")) as process:
        process.wait_log("Progress relay listening")
        began = time.monotonic()
        process.signal()
        code = process.join()

    (put,) = scripted.heard(1, "results")
    assert 1 == code
    assert "terminated" == json.loads(put.body)["cause"]
    assert time.monotonic() - began >= 1.0


def test_sigterm_and_results_soon_after(scripted: Scripted, results: Path) -> None:
    """W12: they still go out, and without the delay."""
    with worker(environ=environment(scripted, results, SONOBUOY_DONE_FILE_DELAY="1h")) as process:
        process.wait_log("Progress relay listening")
        process.signal()
        finish(results)
        assert 0 == process.join()

    assert [b'{"a":1}'] == [put.body for put in scripted.heard(1, "results")]


@pytest.mark.parametrize("sleep", ["-1", "3600"])
def test_sigterm_while_sleeping(scripted: Scripted, results: Path, sleep: str) -> None:
    """W12: all is delivered; exit 0 at once."""
    finish(results)
    with worker(
        "worker",
        "single-node",
        "--sleep",
        sleep,
        environ=environment(scripted, results, NODE_NAME="node1"),
    ) as process:
        process.wait_log("Result delivered")
        process.signal(signal.SIGINT)
        assert 0 == process.join()


def test_sleep_ends_by_itself(scripted: Scripted, results: Path) -> None:
    """A second of it."""
    finish(results)
    began = time.monotonic()
    with worker(
        *["worker", "single-node", "--sleep", "1"],
        environ=environment(scripted, results, NODE_NAME="node1"),
    ) as process:
        assert 0 == process.join()

    assert time.monotonic() - began >= 1.0


def test_a_second_signal_ends_it_at_once(scripted: Scripted, results: Path) -> None:
    """Whoever sends two does not want to wait."""
    with worker(environ=environment(scripted, results)) as process:
        process.wait_log("Progress relay listening")
        process.signal()
        process.signal(signal.SIGINT)
        code = process.join()

    # Both may come before the first is handled; then only their number is known.
    assert code in {128 + signal.SIGTERM, 128 + signal.SIGINT}


def test_what_is_missing_is_said_at_once(results: Path) -> None:
    """W16: one message with all problems, before any network."""
    with worker(environ={"WORKER_GRACE_SECONDS": "soon"}) as process:
        code = process.join()

    (line,) = process.lines
    assert (2, "error", "Invalid settings") == (code, line["level"], line["message"])
    assert {"AGGREGATOR_URL", "CA_CERT", "CLIENT_CERT", "CLIENT_KEY", "RESULT_TYPE"} < {
        problem.partition(":")[0] for problem in line["problems"]
    }


def test_a_broken_key_is_never_shown(scripted: Scripted, results: Path) -> None:
    """W16: exit 2 before any network, and nothing of the key in the log."""
    key = identities().client.sec1
    broken = key.replace(key.splitlines()[1], "AAAA" + key.splitlines()[1][4:])
    with worker(environ=environment(scripted, results, CLIENT_KEY=broken)) as process:
        assert 2 == process.join()

    assert ["CLIENT_KEY"] == [problem.partition(":")[0] for problem in process.lines[0]["problems"]]
    assert key.splitlines()[2] not in json.dumps(process.lines)
    assert 0 == scripted.connections


EC_PARAMETERS = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"


@pytest.mark.parametrize("form", ["PKCS#8", "EC PARAMETERS first"])
def test_other_forms_of_a_key(scripted: Scripted, results: Path, form: str) -> None:
    """W16: what openssl writes by itself."""
    finish(results)
    client = identities().client
    key = client.pkcs8 if form == "PKCS#8" else EC_PARAMETERS + client.sec1
    with worker(environ=environment(scripted, results, CLIENT_KEY=key)) as process:
        assert 0 == process.join()


def test_settings_from_a_file(scripted: Scripted, results: Path, tmp_path: Path) -> None:
    """WORKER_CONFIG_FILE; a variable wins over it."""
    finish(results)
    given = scripted.environment()
    facts = {
        "aggregatorurl": given["AGGREGATOR_URL"] + "/dropped",
        "resulttype": "other",
        "resultsdir": str(results),
        "cacert": given["CA_CERT"],
        "clientcert": given["CLIENT_CERT"],
        "clientkey": given["CLIENT_KEY"],
    }
    (tmp_path / "worker.json").write_text(json.dumps(facts))
    variables = {"WORKER_CONFIG_FILE": str(tmp_path / "worker.json"), "RESULT_TYPE": "e2e"}
    with worker(environ={**variables, "SONOBUOY_DONE_FILE_DELAY": "0s"}) as process:
        assert 0 == process.join()

    assert ["/api/v1/results/global/e2e"] == [put.target for put in scripted.heard(1, "results")]


def test_an_aggregator_that_is_not_ours(results: Path) -> None:
    """W17: three handshakes, no request, exit 1."""
    finish(results)
    with (
        Scripted(server=Authority().server()) as scripted,
        worker(environ=environment(scripted, results, WORKER_HEARTBEAT_SECONDS="0")) as process,
    ):
        assert 1 == process.join()
        assert 3 == scripted.connections
        assert [] == scripted.requests

    assert "No result delivered" == process.said("No result delivered")[0]["message"]
    (told,) = process.said("Cannot reach the aggregator")
    assert "certificate of another run" in told["error"]


def test_an_aggregator_without_an_address(scripted: Scripted, results: Path) -> None:
    """The log says so long before there is a result."""
    url = "https://aggregator.invalid:8080"
    variables = environment(
        scripted,
        results,
        AGGREGATOR_URL=url,
        WORKER_HEARTBEAT_SECONDS="1",
        WORKER_GRACE_SECONDS="3",
    )
    with worker(environ=variables) as process:
        told = process.wait_log("Cannot reach the aggregator")
        process.signal()
        assert 1 == process.join()

    assert told["error"].startswith("cannot resolve aggregator.invalid: ")


def test_an_aggregator_that_is_still_starting(results: Path) -> None:
    """Its absence is over when it comes."""
    with Scripted(listening=False) as scripted:
        variables = environment(scripted, results, WORKER_HEARTBEAT_SECONDS="1")
        with worker(environ=variables) as process:
            told = process.wait_log("Cannot reach the aggregator")
            scripted.listen()
            finish(results)
            assert 0 == process.join()

    assert "cannot connect to 127.0.0.1: Connection refused" == told["error"]
    assert [] != process.said("Reached the aggregator")


@pytest.mark.filterwarnings("ignore:Attribute's length")
def test_an_aggregator_of_sonobuoys_shape(results: Path) -> None:
    """W18: whole program, which loads what it takes for that."""
    finish(results)
    ca = Authority(sonobuoy=True)
    who = Identities(ca, ca.server(), ca.client())
    with (
        Scripted(server=who.server, client_ca=ca, health=[SONOBUOY]) as scripted,
        worker(environ={**environment(scripted, results), **scripted.environment(who)}) as process,
    ):
        assert (0, "") == (process.join(), process.errors)

    assert [] == process.said("Message from a library")


def test_heartbeats_that_hang_are_in_nobodys_way(results: Path) -> None:
    """W20: the upload does not wait for one, and neither does the end."""
    finish(results)
    with (
        Scripted(health=[Silence()]) as scripted,
        worker(environ=environment(scripted, results, WORKER_HEARTBEAT_SECONDS="0.05")) as process,
    ):
        scripted.heard(1, "health")
        with Calm() as calm:
            assert 0 == process.join()

    assert calm.seconds < 4.0


def test_heartbeats_until_the_delivery(scripted: Scripted, results: Path) -> None:
    """W20: beats while it waits, none any more while it sleeps."""
    with worker(
        *["worker", "single-node", "--sleep", "3600"],
        environ=environment(scripted, results, NODE_NAME="node1", WORKER_HEARTBEAT_SECONDS="0.1"),
    ) as process:
        assert {"/api/v1/health/by-node/node1/e2e"} == {
            heard.target for heard in scripted.heard(3, "health")
        }
        finish(results)
        process.wait_log("Result delivered")
        process.signal()
        assert 0 == process.join()


def test_progress_through_the_whole_program(scripted: Scripted, results: Path) -> None:
    """W13: the plugin posts to SONOBUOY_PROGRESS_PORT, also after its result."""
    environ = environment(scripted, results, NODE_NAME="node1")
    finish(results)
    with worker(*["worker", "single-node", "--sleep", "3600"], environ=environ) as process:
        process.wait_log("Result delivered")
        port = int(environ["SONOBUOY_PROGRESS_PORT"])
        connection = http.client.HTTPConnection("localhost", port, timeout=30)
        with contextlib.closing(connection):
            connection.request("POST", "/progress", b'{"msg":"m"}')
            assert 200 == connection.getresponse().status
        process.signal()
        assert 0 == process.join()

    (heard,) = scripted.heard(1, "progress")
    assert b'{"msg":"m"}' == heard.body


def test_the_port_of_the_relay_is_taken(scripted: Scripted, results: Path) -> None:
    """W15: the upload works."""
    finish(results)
    environ = environment(scripted, results)
    with contextlib.ExitStack() as held:
        other = held.enter_context(socket.socket())
        other.bind(("127.0.0.1", int(environ["SONOBUOY_PROGRESS_PORT"])))
        other.listen()
        with worker(environ=environ) as process:
            assert 0 == process.join()

    assert 1 == len(process.said("Progress relay not listening yet: port already in use"))


@pytest.mark.parametrize("launcher", [("-I", str(LAUNCHER)), (str(LAUNCHER),)])
def test_the_plugins_environment(
    scripted: Scripted, results: Path, tmp_path: Path, launcher: tuple[str, ...]
) -> None:
    """W21: Sonobuoy merges it into the worker's; it must have no effect."""
    (tmp_path / "evil").mkdir()
    for name in ("ssl", "urllib3", "reporter", "structlog"):
        (tmp_path / f"evil/{name}.py").write_text("raise SystemExit(77)\n")
    # With it no context could speak TLS 1.2, and the aggregator speaks nothing older.
    (tmp_path / "openssl.cnf").write_text(
        "openssl_conf = x\n[x]\nssl_conf = y\n[y]\nsystem_default = z\n[z]\nMaxProtocol = TLSv1.1\n"
    )
    finish(results)
    with worker(
        environ=environment(
            scripted,
            results,
            PYTHONPATH=str(tmp_path / "evil"),
            PYTHONHOME="",
            PYTHONINSPECT="1",
            SSLKEYLOGFILE=str(tmp_path / "keys"),
            SSL_CERT_FILE="/nowhere",
            HTTPS_PROXY="http://127.0.0.1:1",
            https_proxy="http://127.0.0.1:1",
            ALL_PROXY="http://127.0.0.1:1",
            OPENSSL_CONF=str(tmp_path / "openssl.cnf"),
        ),
        launcher=launcher,
    ) as process:
        assert (0, "") == (process.join(), process.errors)

    assert not (tmp_path / "keys").exists()
    assert 1 == len(scripted.heard(1, "results"))


def test_usage() -> None:
    """Exit 2 and the usage on stderr."""
    with worker("worker", "everywhere", environ={}) as process:
        assert 2 == process.join()

    assert "usage: sonobuoy worker global" in process.errors


@pytest.mark.parametrize("arguments", [["version"], ["--help"], ["version", "--level=info"]])
def test_questions(arguments: list[str]) -> None:
    """Answered on stdout."""
    done = subprocess.run(
        [sys.executable, "-I", LAUNCHER, *arguments], capture_output=True, text=True, check=True
    )

    assert done.stdout
    assert "" == done.stderr
