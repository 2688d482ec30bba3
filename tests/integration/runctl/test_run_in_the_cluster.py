"""A run in the user's cluster, by its name: found, and asked through a port-forward."""

import ssl
import threading
from argparse import Namespace
from pathlib import Path

import pytest

from reporter.runctl.cluster_run import by_cluster
from tests.blackbox.ctl.cluster import add_aggregator, kubeconfig, plugin
from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.blackbox.ctl.test_retrieve_command import NAME, serving
from tests.fakekube import Answer, FakeKube, Reset, Rule
from tests.fakekube.certs import Authority
from tests.scripted_server import Say

BOUND = 60.0
FORWARD = Rule(("get",), ("pods/portforward",))


@pytest.fixture
def fake(fake: FakeKube) -> FakeKube:
    """The API server shows them Pods and lets them connect to one."""
    fake.tokens.roles["person"] = (*fake.tokens.roles["person"], FORWARD)
    return fake


def listening(*entries: object, run: str = "nightly", **more: object) -> Scripted:
    document = run_status("running", *(entries or (entry("e2e"),)), run=run, **more)
    return Scripted(status=Say(body=document))


@pytest.mark.parametrize("written", ["nightly", "run/nightly"])
@pytest.mark.parametrize("namespace", ["default", "status-reporter-nightly"])
def test_it_is_found_by_its_name(
    at_home: Home, fake: FakeKube, written: str, namespace: str
) -> None:
    """Beside others, in its own namespace or the current one; the listener says how it is."""
    add_aggregator(fake, "failed", launched="other", name="other-x")
    with listening(entry("e2e", message="from the listener")) as server:
        add_aggregator(
            fake, launched="nightly", name="nightly-x", namespace=namespace, listens=server.port
        )
        code, out, err = at_home.run("status", written)

    assert (0, "") == (code, err)
    assert "from the listener" in out
    assert "run nightly" in out


def test_without_a_name_it_is_the_only_one(at_home: Home, fake: FakeKube) -> None:
    """The aggregator's Pod of the namespace, as before."""
    with listening(entry("e2e", message="from the listener")) as server:
        add_aggregator(fake, listens=server.port)
        code, out, _ = at_home.run("status")

    assert 0 == code
    assert "from the listener" in out


def test_no_such_run(at_home: Home, fake: FakeKube) -> None:
    """4, and where it was looked for, said once."""
    add_aggregator(fake, launched="other", name="other-x")
    code, out, err = at_home.run("status", "nightly")

    assert (4, "") == (code, out)
    assert (
        "status-ctl: run 'nightly' not found in namespace 'default' or 'status-reporter-nightly'\n"
        == err
    )


def test_the_context_is_in_the_runs_own_namespace(at_home: Home, fake: FakeKube) -> None:
    """One place is named once."""
    own = "status-reporter-nightly"
    kubeconfig(at_home.folder / ".kube" / "config", fake, namespace=own)
    code, _, err = at_home.run("status", "nightly")

    assert (4, f"status-ctl: run 'nightly' not found in namespace '{own}'\n") == (code, err)


@pytest.mark.parametrize("command", ["status", "wait"])
def test_a_current_namespace_that_is_not_shown(at_home: Home, fake: FakeKube, command: str) -> None:
    """Whoever has rights in the run's own namespace alone need not name it."""
    fake.fail(Answer(403), path="/namespaces/default/pods", times=None)
    document = run_status("complete", entry("e2e", status="complete"), run="nightly", final=True)
    with Scripted(status=Say(body=document)) as server:
        own = "status-reporter-nightly"
        add_aggregator(fake, launched="nightly", namespace=own, listens=server.port)
        code, out, err = at_home.run(command, "nightly", "-o", "name")

    assert (0, "e2e/global\n", "") == (code, out, err)


def test_nothing_is_shown(at_home: Home, fake: FakeKube) -> None:
    """4, and which rights would help."""
    fake.fail(Answer(403), path="/pods", times=None)
    code, out, err = at_home.run("status", "nightly")

    assert (4, "") == (code, out)
    assert "/namespaces/default/pods" in err
    assert "/namespaces/status-reporter-nightly/pods" in err


def test_a_namespace_is_the_only_place(at_home: Home, fake: FakeKube) -> None:
    """What stands elsewhere is another run."""
    add_aggregator(fake, launched="nightly", namespace="status-reporter-nightly")
    code, _, err = at_home.run("status", "nightly", "-n", "default")

    assert 4 == code
    assert "not found in namespace 'default'" in err


def test_without_the_right_the_annotation_says_it(at_home: Home, fake: FakeKube) -> None:
    """Reading Pods is enough to see how the run is."""
    fake.tokens.roles["person"] = (Rule(("get", "list"), ("pods",)),)
    with listening() as server:
        add_aggregator(
            fake,
            "complete",
            plugin("disk", status="complete"),
            launched="nightly",
            listens=server.port,
        )
        code, out, err = at_home.run("status", "nightly")

    assert (0, "") == (code, err)
    assert "disk" in out


@pytest.mark.parametrize("trouble", ["nobody listens", "reset", "503"])
def test_a_listener_that_does_not_answer(at_home: Home, fake: FakeKube, trouble: str) -> None:
    """The annotation says what was known last."""
    add_aggregator(fake, "running", plugin("disk"), launched="nightly", listens=1)
    if trouble == "nobody listens":
        fake.forwards.clear()
    else:
        fault = Reset() if trouble == "reset" else Answer(503)
        fake.fail(fault, times=None, path="/portforward")
    code, out, _ = at_home.run("status", "nightly")

    assert 0 == code
    assert "disk" in out


def test_a_connection_that_is_given_up_is_closed(at_home: Home, fake: FakeKube) -> None:
    """Whoever waits for hours for a listener that refuses would run out of descriptors."""
    with Scripted(status=Say(404)) as server:
        add_aggregator(fake, "running", plugin("disk"), launched="nightly", listens=server.port)
        chosen = by_cluster(
            Namespace(
                namespace=None, context=None, kubeconfig=str(at_home.folder / ".kube" / "config")
            ),
            "nightly",
        )
        for _ in range(3):
            assert chosen.look().document is not None
        names = [each.name for each in threading.enumerate()]

    assert [] == [each for each in names if each.startswith("port-forward")]


@pytest.fixture
def tls(tmp_path: Path) -> ssl.SSLContext:
    """Of a listener that lets in who has no certificate, as that of `run --expose`."""
    authority = Authority(strict=True)
    authority.write_pair(tmp_path / "s.crt", tmp_path / "s.key", ("first-status.default.svc",))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "s.crt", tmp_path / "s.key")
    return context


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("status", "nightly", "-o", "name"), "e2e/global"),
        (("wait", "nightly", "-o", "name"), "e2e/global"),
        (("watch", "nightly", "-o", "name"), "e2e/global"),
        (("retrieve", "nightly"), NAME),
    ],
)
def test_a_listener_that_speaks_tls(
    at_home: Home, fake: FakeKube, tls: ssl.SSLContext, arguments: tuple[str, ...], shown: str
) -> None:
    """The API server and the kubelet lead to the Pod; its certificate has other names."""
    with serving(tls=tls) as server:
        add_aggregator(fake, launched="nightly", listens=server.port, tls=True)
        code, out, err = at_home.run(*arguments)

    assert (0, shown, "") == (code, out.strip(), err)


def test_results_need_a_port_forward(at_home: Home, fake: FakeKube) -> None:
    """4: the right that is missing, and the other way."""
    fake.tokens.roles["person"] = (Rule(("get", "list"), ("pods",)),)
    with serving() as server:
        add_aggregator(
            fake,
            "complete",
            plugin("e2e", status="complete"),
            launched="nightly",
            listens=server.port,
        )
        code, _, err = at_home.run("retrieve", "nightly")

    assert 4 == code
    assert "pods/portforward" in err
    assert "--url or --connection" in err


def test_a_new_pod_is_found_again(at_home: Home, fake: FakeKube) -> None:
    """The first is replaced while somebody waits."""
    document = run_status("complete", entry("e2e", status="complete"), run="nightly", final=True)
    with listening() as first, Scripted(status=Say(body=document)) as second:
        add_aggregator(fake, "running", launched="nightly", name="nightly-x", listens=first.port)

        with at_home.started("wait", "run/nightly") as waiting:
            with first.changed:
                assert first.changed.wait_for(lambda: first.connections, BOUND)
            fake.forwards["default", "nightly-x", 8081] = second.port
            first.close()
            assert 0 == waiting.wait(BOUND)
