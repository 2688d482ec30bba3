"""The address of a run that is exposed: which one, until when it is waited for, what is told."""

import argparse
import os
import stat
import sys
from collections.abc import Callable
from errno import EINVAL, ENOSPC
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reporter.cli.exits import CannotTell
from reporter.errors import Forbidden, NotFound, Unavailable
from reporter.run.connection_file import ConnectionFile, encode
from reporter.runctl.expose import (
    Access,
    balancer_urls,
    inside_url,
    make_access,
    node_urls,
    publish,
)
from reporter.runctl.follow import Deadline
from reporter.runctl.spec import RunSpec

ADDRESSES = [
    {"type": "InternalIP", "address": "10.0.0.1"},
    {"type": "ExternalIP", "address": "192.0.2.7"},
]
INSIDE, OUTSIDE = "https://10.0.0.1:31234", "https://192.0.2.7:31234"


class World:
    """An API server, a connection file, and who is reachable; time goes by while one sleeps."""

    path = Path("/home/me/connection.json")
    full = False

    def __init__(self, service: Callable[[float], Any], *reachable: str, node: Any = None) -> None:
        self._service, self._reachable = service, reachable
        self._node = node or {"status": {"addresses": ADDRESSES}}
        self.now, self.address = 0.0, ""

    def get(self, kind: str, namespace: Any, name: str, **_: Any) -> Any:
        wanted = ("Service", "ns", "r1-status"), ("Node", None, "node1")
        assert (kind, namespace, name) in wanted
        found = self._service(self.now) if kind == "Service" else self._node
        if isinstance(found, Exception):
            raise found
        return found

    def list_all(self, *_: Any, **__: Any) -> list[Any]:
        labels = {"sonobuoy-component": "aggregator"}
        status = {"hostIP": "10.0.0.1"}
        pod = {"metadata": {"labels": labels}, "spec": {"nodeName": "node1"}, "status": status}
        return [pod]

    def trouble(self, url: str) -> str:
        return "" if url in self._reachable else f"{url}: timed out"

    def point_to(self, url: str) -> None:
        if self.full:
            raise OSError(ENOSPC, "No space left on device")
        self.address = url

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def publish(self, kind: str, patience: float | None = None) -> None:
        chosen = cast("RunSpec", SimpleNamespace(run="r1", namespace="ns", expose=kind))
        publish(
            cast("Any", self),
            chosen,
            cast("Access", self),
            Deadline(patience, lambda: self.now, self.sleep),
        )


def told(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what was told, of which a part may have several lines."""
    return capsys.readouterr().err.strip().removeprefix("status-ctl: ").split("\nstatus-ctl: ")


def node_port(_: float) -> Any:
    return {"spec": {"ports": [{"port": 8081, "nodePort": 31234}]}}


@pytest.mark.parametrize(
    ("reachable", "node", "address", "seconds"),
    [
        ((INSIDE, OUTSIDE), None, OUTSIDE, 0.0),
        ((INSIDE,), None, INSIDE, 0.0),
        ((INSIDE,), Forbidden("403"), INSIDE, 0.0),
        ((), NotFound("404"), INSIDE, 15.0),
        ((), None, OUTSIDE, 15.0),
    ],
)
def test_the_address_of_a_node(
    reachable: tuple[str, ...],
    node: Any,
    address: str,
    seconds: float,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first that answers; the best of them where none does, and that is said."""
    world = World(node_port, *reachable, node=node)
    world.publish("nodeport")

    assert address == world.address
    assert seconds <= world.now < seconds + 1
    unreached = [] if reachable else [f"it is not reachable from here: {address}: timed out"]
    written = f"the status is at {address}; connection file: {world.path}"
    assert [written, *unreached] == told(capsys)


def test_the_address_is_not_lost_on_a_full_disk(capsys: pytest.CaptureFixture[str]) -> None:
    """The run continues; what belongs into the file is said."""
    world = World(node_port, OUTSIDE)
    world.full = True
    world.publish("nodeport")

    assert [
        f"cannot write {world.path}: No space left on device",
        f"the status is at {OUTSIDE}; set host_address in {world.path} to it",
    ] == told(capsys)


def test_the_file_in_a_directory_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on some network file systems: nobody else can read it, and that is all a run needs."""

    def fsync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    path, kept = tmp_path / "state" / "connection.json", ConnectionFile("https://h", 0.0)
    Access(cast("Any", None), path, kept).create()

    assert (0o600, encode(kept)) == (stat.S_IMODE(path.stat().st_mode), path.read_bytes())


def test_a_load_balancer_takes_its_time() -> None:
    """As does an API server."""
    url = "https://lb.example:8081"

    def service(now: float) -> Any:
        if now < 5:
            return Unavailable("connection refused")
        ingress = [{"hostname": "lb.example"}] if now >= 9 else []
        return {"status": {"loadBalancer": {"ingress": ingress}}}

    world = World(service, url)
    world.publish("loadbalancer")

    assert url == world.address
    assert 9 <= world.now < 10


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ({"status": {}}, "service/r1-status has no address yet"),
        (Unavailable("connection refused"), "connection refused"),
    ],
)
def test_no_address_in_time(service: Any, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The file keeps the one inside the cluster; how to add the other is said."""
    world = World(lambda _: service)
    world.publish("loadbalancer", 7.0)

    assert ("", 7) == (world.address, round(world.now, 3))
    said, later = told(capsys)
    assert why == said
    assert "kubectl get service r1-status -n ns" in later
    assert f"connection file: {world.path}, so far with the address inside" in later
    assert "set host_address in the file to https://ADDRESS:PORT" in later


def test_without_the_package_that_makes_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """`status-ctl` runs without it; which extra has it is said."""
    for name in ("reporter.pki.status", "reporter.pki.issuing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "cryptography", None)

    with pytest.raises(CannotTell, match=r"requires the extra \[aggregator\] of the package"):
        make_access(argparse.Namespace(connection=None), cast("RunSpec", None))


SERVICE = {"spec": {"ports": [{"name": "status", "port": 8081, "nodePort": 31234}]}}
NODE = {
    "status": {
        "addresses": [
            {"type": "Hostname", "address": "node1"},
            {"type": "InternalIP", "address": "10.0.0.1"},
            {"type": "InternalIP", "address": "fd00::1"},
            {"type": "ExternalIP", "address": "192.0.2.7"},
        ]
    }
}
POD = {"status": {"hostIP": "10.0.0.1"}}


def test_a_node_is_best_reached_by_its_external_address() -> None:
    """Each address once, IPv6 in brackets; its host name is for the cluster."""
    assert [
        "https://192.0.2.7:31234",
        "https://10.0.0.1:31234",
        "https://[fd00::1]:31234",
    ] == node_urls(SERVICE, POD, NODE)


def test_nothing_is_known_yet() -> None:
    """No port is allotted, the Pod has no node, the balancer no address."""
    assert [] == node_urls({"spec": {"ports": [{"port": 8081}]}}, POD, NODE)
    assert [] == node_urls(SERVICE, {}, {})
    assert [] == balancer_urls(SERVICE | {"status": {"loadBalancer": {}}})


def test_a_balancer_has_an_address_or_a_name() -> None:
    ingress = [{"ip": "192.0.2.9"}, {"hostname": "lb.example"}, {"ports": []}]

    assert ["https://192.0.2.9:8081", "https://lb.example:8081"] == balancer_urls(
        {"status": {"loadBalancer": {"ingress": ingress}}}
    )


def test_pods_use_the_name_in_the_certificate() -> None:
    assert "https://r1-status.ns.svc:8081" == inside_url("r1", "ns")
