"""What is handed out of the certificates of a run: files and Secrets."""

import base64
import os
import re
import stat
from pathlib import Path

import pytest
import yaml

from reporter.aggregator.certificates.export import (
    export_files,
    export_secrets,
    secrets,
)
from reporter.aggregator.certificates.run import (
    Issued,
)
from reporter.link import WorkerConfig
from reporter.run.plan import Plan, Plugin
from tests.integration.aggregator.certificates.world import E2E, LOGS_1, RUN, SYSD, URL, issue


def test_the_files_of_a_run(issued: Issued, tmp_path: Path) -> None:
    """Per plugin, per node where it has its own, and the CA; 0600 whatever the umask."""
    before = os.umask(0)
    try:
        export_files(issued, tmp_path / "new" / "certs", url=URL)
    finally:
        os.umask(before)
    names = ["e2e", "sysd", "logs@node1", "logs@node2"]
    files = {path.name: path for path in (tmp_path / "new" / "certs").iterdir()}

    expected = {f"{name}.{end}" for name in names for end in ("crt", "key", "json")} | {"ca.pem"}
    assert expected == set(files)
    assert {0o600} == {stat.S_IMODE(path.stat().st_mode) for path in files.values()}
    assert issued.clients[SYSD].key == files["sysd.key"].read_bytes()
    assert issued.clients[LOGS_1].certificate == files["logs@node1.crt"].read_bytes()
    assert issued.ca == files["ca.pem"].read_bytes()


def test_the_file_of_a_worker_is_all_it_needs(issued: Issued, tmp_path: Path) -> None:
    """`PLUGIN.json` through WORKER_CONFIG_FILE makes the worker, for a node's certificate too."""
    export_files(issued, tmp_path, url=URL)
    e2e = WorkerConfig.from_env({"WORKER_CONFIG_FILE": str(tmp_path / "e2e.json")})
    logs = WorkerConfig.from_env(
        {"WORKER_CONFIG_FILE": str(tmp_path / "logs@node1.json")}, scope="node"
    )

    assert (URL, "e2e", "global") == (e2e.aggregator_url, e2e.plugin, e2e.node)
    assert ("logs", "node1") == (logs.plugin, logs.node)
    assert issued.ca.decode() == e2e.ca_cert
    assert issued.clients[LOGS_1].key.decode() == logs.client_key


def test_files_of_an_earlier_run_are_replaced(issued: Issued, tmp_path: Path) -> None:
    """Also where somebody has put a link in the way: it is replaced, not followed."""
    target = tmp_path / "precious"
    target.write_text("mine")
    certs = tmp_path / "certs"
    export_files(issue(), certs, url=URL)
    (certs / "e2e.key").unlink()
    (certs / "e2e.key").symlink_to(target)
    export_files(issued, certs, url=URL)

    assert "mine" == target.read_text()
    assert issued.clients[E2E].key == (certs / "e2e.key").read_bytes()
    assert not (certs / "e2e.key").is_symlink()


def test_the_ca_comes_last(issued: Issued, tmp_path: Path) -> None:
    """Who waits for it finds everything else."""
    whole = tmp_path / "whole"
    export_files(issued, whole, url=URL)
    others = [path.name for path in whole.iterdir() if path.suffix in {".crt", ".key"}]
    assert 8 == len(others)
    for name in others:
        directory = tmp_path / f"without-{name}"
        (directory / name).mkdir(parents=True)
        with pytest.raises(OSError, match=re.escape(name)):
            export_files(issued, directory, url=URL)
        assert not (directory / "ca.pem").exists()


def test_the_ca_of_a_start_that_was_killed_goes_first(issued: Issued, tmp_path: Path) -> None:
    """Who waits for it must not find it beside keys of another CA."""
    export_files(issue(), tmp_path, url=URL)
    (tmp_path / "e2e.key").unlink()
    (tmp_path / "e2e.key").mkdir()
    with pytest.raises(OSError, match=r"e2e\.key"):
        export_files(issued, tmp_path, url=URL)

    assert not (tmp_path / "ca.pem").exists()


def test_secret_manifests(issued: Issued, tmp_path: Path) -> None:
    """One `kubernetes.io/tls` per client that says whose it is; a YAML reader gets them back."""
    path = tmp_path / "new" / "secrets.yaml"
    export_secrets(issued, path, namespace="conformance")
    documents = list(yaml.safe_load_all(path.read_text()))

    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert secrets(issued, namespace="conformance") == documents
    assert [
        "status-aggregator-e2e",
        "status-aggregator-sysd",
        "status-aggregator-logs.node1",
        "status-aggregator-logs.node2",
    ] == [document["metadata"]["name"] for document in documents]
    sysd = documents[1]
    assert {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "status-aggregator-sysd",
            "namespace": "conformance",
            "annotations": {
                "status-reporter.io/run": RUN,
                "status-reporter.io/plugin": "sysd",
                "status-reporter.io/node": "*",
            },
        },
        "type": "kubernetes.io/tls",
    } == {key: value for key, value in sysd.items() if key != "data"}
    assert {
        "ca.crt": issued.ca,
        "tls.crt": issued.clients[SYSD].certificate,
        "tls.key": issued.clients[SYSD].key,
    } == {name: base64.b64decode(value) for name, value in sysd["data"].items()}
    assert "namespace" not in secrets(issued)[0]["metadata"]


def test_plugins_whose_names_are_no_secrets_names() -> None:
    """Capitals, underlines, odd dots, and names that would become one: each has its own."""
    plan = Plan(
        RUN,
        (
            Plugin("E2E"),
            Plugin("e2e"),
            Plugin("e_2.-e"),
            Plugin("a.b", nodes=("c",), identity="node"),
            Plugin("a", nodes=("b.c",), identity="node"),
            Plugin("long", nodes=("n" * 253,), identity="node"),
        ),
    )
    names = [secret["metadata"]["name"] for secret in secrets(issue(plan))]

    assert len(names) == len(set(names))
    assert "status-aggregator-e2e" == names[1]
    assert names[0].startswith("status-aggregator-e2e-")
    assert names[2].startswith("status-aggregator-e-2-e-")
    assert "status-aggregator-a.b.c" == names[3]
    assert names[4].startswith("status-aggregator-a-b-c-")
    assert all(len(name) <= 253 and name == name.lower() for name in names)
