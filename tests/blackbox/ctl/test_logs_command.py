"""`status-ctl logs`: whose lines, with which names before them, and until when."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.blackbox.ctl.cluster import LABEL
from tests.blackbox.ctl.launched import RUN_LABEL, shown
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import Answer, FakeKube, Reset, make_job, make_pod, running, waiting

OWN = "status-reporter-first"


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """A run with its aggregator and the Pods of two plugins."""
    with FakeKube(role="admin") as fake:
        plan = {"name": "first", "namespace": OWN, "labels": {RUN_LABEL: "first"}}
        fake.store.create("ConfigMap", {"metadata": plan})
        add_pod(fake, "first-x7d2k", "", "", b"aggregator\n")
        add_pod(fake, "first-cis-1-x", "cis", "node1", b"  one\ntwo\n")
        add_pod(fake, "first-cis-2-x", "cis", "node2", b"three")
        add_pod(fake, "first-quota-1-x", "quota", "global", b"\x1b[31mfour\xff\n")
        yield fake


def add_pod(fake: FakeKube, name: str, plugin: str, node: str, log: bytes) -> None:
    pod = make_pod(make_job(namespace=OWN), name=name)
    pod["metadata"]["labels"] = {RUN_LABEL: "first"} | ({} if plugin else LABEL)
    pod["metadata"]["uid"] = name
    if plugin:
        whose = {"status-reporter.io/plugin": plugin, "status-reporter.io/node": node}
        pod["metadata"]["annotations"] = whose
    pod["spec"]["containers"] = [{"name": "main"}, {"name": "slow"}]
    pod["spec"]["initContainers"] = []
    pod["status"]["initContainerStatuses"] = []
    pod["status"]["containerStatuses"] = [
        {"name": "main", "state": running()},
        {"name": "slow", "state": waiting()},
    ]
    fake.create_pod(pod)
    fake.store.logs[OWN, name, "main"] = log


def run_is(fake: FakeKube, annotations: dict[str, str], container: str = "") -> None:
    """Let the aggregator say this of its run, from this container."""

    def change(pod: Any) -> None:
        pod["metadata"].update(annotations=annotations)
        pod["status"]["containerStatuses"][0].update(containerID=container)

    fake.update_pod("first-x7d2k", change, namespace=OWN)


def test_every_line_says_whose_it_is(at_home: Home) -> None:
    """Indented as it was, without what a terminal would obey; nothing of what has not begun."""
    code, out, err = at_home.run("logs", "first")

    assert (0, "") == (code, err)
    assert [
        "[first-cis-1-x/main]   one",
        "[first-cis-1-x/main] two",
        "[first-cis-2-x/main] three",
        "[first-quota-1-x/main] [31mfour\ufffd",
        "[first-x7d2k/main] aggregator",
    ] == out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (("--plugin", "cis"), ["  one", "two", "three"]),
        (("--node", "node2"), ["three"]),
        (("--plugin", "cis", "--node", "node1"), ["  one", "two"]),
    ],
)
def test_of_one_plugin_or_one_node(
    at_home: Home, arguments: tuple[str, ...], lines: list[str]
) -> None:
    code, out, _ = at_home.run("logs", "run/first", *arguments)

    assert 0 == code
    assert lines == [line.partition("] ")[2] for line in out.splitlines()]


def test_pods_that_are_gone_have_left_their_logs_in_the_results(at_home: Home) -> None:
    code, out, err = at_home.run("logs", "first", "--plugin", "none")

    assert (4, "") == (code, out)
    assert "no Pod of run first matches; the logs of deleted Pods are in the results" in err


def test_followed_until_the_run_is_over(at_home: Home, fake: FakeKube) -> None:
    """Pods that come later are followed too."""
    run_is(fake, shown("running", final=False))
    with at_home.started("logs", "first", "-f") as process:
        assert process.stdout is not None
        first = [process.stdout.readline().decode().strip() for _ in range(5)]
        add_pod(fake, "first-late-x", "late", "global", b"late\n")
        late = process.stdout.readline().decode().strip()
        run_is(fake, shown("complete"))
        assert 0 == process.wait(60)

    assert 5 == len(set(first))
    assert "[first-late-x/main] late" == late


def test_followed_until_the_run_is_deleted(at_home: Home, fake: FakeKube) -> None:
    """Nobody can write any more."""
    run_is(fake, shown("running", final=False))
    with at_home.started("logs", "first", "-f") as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        fake.store.empty(OWN)
        _, err = process.communicate(timeout=60)

    assert 4 == process.returncode
    assert err.endswith(b"status-ctl: run first was deleted\n")


def test_followed_beyond_a_restart(at_home: Home, fake: FakeKube) -> None:
    """The aggregator's Pod keeps its name when it is replaced, and its container when it fails."""
    run_is(fake, shown("running", final=False), "containerd://1")
    with at_home.started("logs", "first", "-f") as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        fake.store.logs[OWN, "first-x7d2k", "main"] = b"again\n"
        run_is(fake, shown("running", final=False), "containerd://2")
        again = process.stdout.readline().decode()
        run_is(fake, shown("complete"), "containerd://2")
        assert 0 == process.wait(60)

    assert "[first-x7d2k/main] again\n" == again


def test_a_stream_that_is_cut_goes_on(at_home: Home, fake: FakeKube) -> None:
    """Every line once, in order: the server ends streams, resets them, and is away for a while."""
    run_is(fake, shown("running", final=False))
    log = b"".join(b"%d\n" % number for number in range(5))
    fake.store.logs[OWN, "first-quota-1-x", "main"] = log
    with at_home.started("logs", "first", "-f", "--plugin", "quota") as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(5)]
        fake.fail(Reset(), path="/first-quota-1-x/log")
        fake.fail(Answer(503), path="/pods", times=2)
        fake.store.logs[OWN, "first-quota-1-x", "main"] = log + b"5\n6\n7"
        seen += [process.stdout.readline() for _ in range(2)]
        run_is(fake, shown("complete"))
        seen += process.stdout.readlines()
        assert 0 == process.wait(60)

    lines = [line.partition(b"] ")[2] for line in seen]
    assert [b"%d\n" % number for number in range(8)] == lines


@pytest.mark.parametrize("code", [404, 400])
def test_a_pod_that_goes_meanwhile_costs_no_other_its_lines(
    at_home: Home, fake: FakeKube, code: int
) -> None:
    fake.fail(Answer(code), path="/first-cis-1-x/log")
    exit_code, out, err = at_home.run("logs", "first")

    assert 0 == exit_code
    assert 3 == len(out.splitlines())
    assert "status-ctl: [first-cis-1-x/main] " in err
