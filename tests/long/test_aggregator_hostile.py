"""Workers that send whatever costs most: memory stays, and others are served meanwhile."""

from __future__ import annotations

import http.client
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reporter.link import AggregatorClient, ResultSource, WorkerConfig
from tests.collecting.served import Aggregator, plan
from tests.collecting.worker import reply

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

MB = 10**6
MIB = 2**20
NODES = [f"node{number}" for number in range(200)]
LARGEST = 120 * MB


def resident(aggregator: Aggregator) -> int:
    """Bytes of memory that the process has now."""
    status = Path(f"/proc/{aggregator.pid}/status").read_text()
    (found,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(found) * 1024


def test_progress_of_all_nodes_is_as_large_as_it_can_be(tmp_path: Path) -> None:
    """400 updates of a mebibyte, twenty at a time: at most 120 MB, after kill -9 too."""
    names = ",".join(f'"{number:04d} {"x" * 1_010}"' for number in range(1_000))
    body = f'{{"failures":[{names}]}}'.encode()
    with Aggregator(tmp_path / "run", plan("sysd", NODES)) as aggregator:
        worker = aggregator.worker("sysd")

        def send(number: int) -> int:
            key = f"by-node/{NODES[number % 200]}/sysd"
            return worker.ask("POST", f"progress/{key}", body).status

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(send, range(400)))
        assert {200} == set(answers)
        peak = aggregator.usage().peak_bytes
        shown = aggregator.detail("sysd/node7")["progress"]
        assert (1_000, 1_000) == (len(shown["failures"]), shown["failures_total"])
        assert 16 * 1024 >= sum(map(len, shown["failures"]))
        aggregator.kill()
        aggregator.start()
        again = aggregator.usage().peak_bytes
        assert shown == aggregator.detail("sysd/node7")["progress"]
    print(f"peak {peak / MB:.0f} MB, after a restart {again / MB:.0f} MB")
    assert LARGEST > peak
    assert LARGEST > again


def test_foreign_targets(tmp_path: Path) -> None:
    """16,500 long ones: the process is no larger than before."""
    with Aggregator(tmp_path / "run", plan("sysd", NODES)) as aggregator:
        worker = aggregator.worker("sysd")

        def ask(count: int, start: int) -> None:
            connection = worker.connection()
            for number in range(start, start + count):
                connection.request("GET", f"/api/v1/health/by-node/{number}{'x' * 7_000}/sysd")
                assert 403 == reply(connection).status
            connection.close()

        ask(1_500, 0)  # what is remembered for the log's sake is full
        before = resident(aggregator)
        ask(16_500, 1_500)
        after = resident(aggregator)
    print(f"before {before / MB:.1f} MB, after {after / MB:.1f} MB")
    assert 5 * MB > after - before


def test_brackets_on_eighty_connections(tmp_path: Path) -> None:
    """A mebibyte each: the probe is answered within 100 ms all the time."""
    body = b'{"x":[' + b"[]," * ((MIB - 10) // 3) + b"1]}"
    with Aggregator(tmp_path / "run", plan("sysd", NODES)) as aggregator:
        worker, ended = aggregator.worker("sysd"), threading.Event()
        slowest = 0.0

        def send(number: int) -> int:
            key = f"by-node/{NODES[number]}/sysd"
            return worker.ask("POST", f"progress/{key}", body).status

        def attack() -> list[int]:
            with ThreadPoolExecutor(80) as pool:
                answers = list(pool.map(send, range(80)))
            ended.set()
            return answers

        with ThreadPoolExecutor(1) as pool:
            attacked = pool.submit(attack)
            probe = http.client.HTTPConnection("127.0.0.1", aggregator.status_port, timeout=60)
            while not ended.wait(0.01):
                began = time.monotonic()
                probe.request("GET", "/livez")
                answer = probe.getresponse()
                answer.read()
                assert 200 == answer.status
                slowest = max(slowest, time.monotonic() - began)
                if answer.will_close:
                    probe.close()
            probe.close()
            assert {200, 503} >= set(attacked.result())
    print(f"slowest probe {slowest * 1e3:.0f} ms")
    assert 1.0 > slowest  # wanted are 100 ms; the machine may have other things to do


def test_outage_over_the_deadline_of_forty_workers(tmp_path: Path) -> None:
    """Scaled: 6 s of time, away from the 4th to the 14th second; all forty deliver."""
    nodes = NODES[:40]
    document = plan("sysd", nodes, timeout_seconds=6)
    with Aggregator(tmp_path / "run", document) as aggregator:
        certificates = aggregator.certificates
        time.sleep(4.0)
        aggregator.kill()

        def deliver(node: str) -> str:
            config = WorkerConfig.from_env(
                {
                    "AGGREGATOR_URL": aggregator.url,
                    "NODE_NAME": node,
                    "RESULT_TYPE": "sysd",
                    "CA_CERT_FILE": str(certificates / "ca.pem"),
                    "CLIENT_CERT_FILE": str(certificates / "sysd.crt"),
                    "CLIENT_KEY_FILE": str(certificates / "sysd.key"),
                },
                scope="node",
            )
            client = AggregatorClient(config)
            try:
                source = ResultSource.from_bytes(node.encode(), "r.txt", "text/plain")
                return str(client.put_result(source).outcome)
            finally:
                client.close()

        with ThreadPoolExecutor(40) as pool:
            delivered = [pool.submit(deliver, node) for node in nodes]
            time.sleep(10.0)
            aggregator.start()
            outcomes = [each.result() for each in delivered]
        done = aggregator.wait_status(lambda found: found["final"])
    assert {"accepted"} == {outcome.lower().rpartition(".")[2] for outcome in outcomes}
    assert ["complete"] * 40 == [entry["status"] for entry in done["plugins"]]
