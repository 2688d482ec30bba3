"""Where everything lies, whatever it is called."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.collect.snapshot.files import (
    TOP,
    Folder,
    ListFiles,
    file_name,
    host_path,
    list_path,
    log_path,
    segment,
)
from reporter.collect.snapshot.index import Collected, Index
from reporter.collect.snapshot.options import Choice
from reporter.kube.resources import DiscoveryTrouble, Resource

PODS = Resource("", "v1", "pods", "Pod", True)
JOBS = Resource("batch", "v1", "jobs", "Job", True)
METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True)


def test_the_places_that_readers_know() -> None:
    """As Sonobuoy has them; two kinds with one plural have two files."""
    nodes = Resource("", "v1", "nodes", "Node", False)

    assert "resources/ns/default/core_v1_pods.json" == list_path(PODS, "default")
    assert "metrics.k8s.io_v1beta1_pods.json" == file_name(METRICS)
    assert "resources/cluster/core_v1_nodes.json" == list_path(nodes, "")
    assert "hosts/node1/configz.json" == host_path("node1", "configz")
    assert "podlogs/a/b/logs/c.txt" == log_path("a", "b", "c")
    assert "podlogs/a/b/logs/c.previous.txt" == log_path("a", "b", "c", previous=True)


def test_a_group_that_is_called_core() -> None:
    """It is another one than the core group."""
    foreign = Resource("core", "v1", "pods", "Pod", True)

    assert "%63ore_v1_pods.json" == file_name(foreign) != file_name(PODS)


NAMES = st.text(max_size=8) | st.sampled_from(
    [".", "..", "", "a/b", "../../etc", "a_b", "a", "%2F", "a" * 300, "a" * 301, "\udcff", "\0"]
)


@given(NAMES, NAMES)
def test_any_name_is_one_component_of_its_own(one: str, other: str) -> None:
    """It leads nowhere else, fits a file system, and no two are the same."""
    found = segment(one)

    assert not {"/", "\0"} & set(found)
    assert found not in {"", ".", ".."}
    assert len(found) <= 240
    assert (segment(other) == found) is (other == one)


@given(st.tuples(NAMES, NAMES, NAMES), st.tuples(NAMES, NAMES, NAMES))
def test_no_two_resources_share_a_file(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    """Whatever their groups, versions and plurals are."""
    first, second = (Resource(*each, "K", True) for each in (one, other))

    assert len(file_name(first)) <= 240
    assert (file_name(first) == file_name(second)) is (one == other)
    assert list_path(first, "x").split("/")[0] in TOP


def test_a_list_whose_namespaces_are_mixed(tmp_path: Path) -> None:
    """Some servers do not sort them: each file is whole all the same, and can be taken back."""
    folder, found = Folder(tmp_path, 1000, 2), Collected()
    files = ListFiles(folder, PODS, 1000, found)
    for number, space in enumerate("abba"):
        files.add(space, {"n": number}, redacted=1)
    files.close()

    def numbers(space: str) -> list[int]:
        written = json.loads((tmp_path / list_path(PODS, space)).read_bytes())
        return [each["n"] for each in written["items"]]

    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert ([0, 3], [1, 2]) == (numbers("a"), numbers("b"))
    assert (4, sum(path.stat().st_size for path in written), 4) == (
        found.count,
        found.size,
        found.redacted,
    )
    files.discard()
    assert (Collected(), 0) == (found, sum(path.is_file() for path in tmp_path.rglob("*")))
    folder.take(1000, files=2)


@pytest.mark.parametrize(
    ("size", "files", "why"), [(50, 9, "size limit reached"), (1000, 0, "file limit reached")]
)
def test_without_room_nothing_is_written(tmp_path: Path, size: int, files: int, why: str) -> None:
    found = Collected()
    with found.noting():
        ListFiles(Folder(tmp_path, size, files), PODS, 1000, found).add("a", {"n": "x" * 50}, 0)

    assert (why, 0, []) == (found.truncated, found.count, [*tmp_path.iterdir()])


def test_the_index_of_a_whole_snapshot() -> None:
    """What did not happen is not said."""
    index = Index(
        began=0.0,
        server_version="v1.34.4",
        choice=Choice((PODS,), ((METRICS, "in SNAPSHOT_EXCLUDE"),)),
        found={PODS: Collected(3, 100, 0.12345, redacted=2)},
    )
    found = index.document(9.5)

    assert (True, 1, "v1.34.4") == (found["complete"], found["version"], found["serverVersion"])
    assert [
        {
            "group": "",
            "version": "v1",
            "resource": "pods",
            "kind": "Pod",
            "namespaced": True,
            "count": 3,
            "bytes": 100,
            "seconds": 0.123,
            "redacted": 2,
        }
    ] == found["resources"]
    assert "in SNAPSHOT_EXCLUDE" == found["leftOut"][0]["reason"]
    assert {"namespaces", "stopped", "error", "hosts"}.isdisjoint(found)
    assert not replace(index, gone={"a": "it was deleted"}).document(9.5)["complete"]


def test_the_index_of_a_snapshot_with_gaps() -> None:
    """Each gap is said where it is, and the whole is not complete."""
    index = Index(
        began=0.0,
        choice=Choice((PODS, METRICS, JOBS)),
        found={
            PODS: Collected(truncated="too large", inconsistent=True),
            METRICS: Collected(error="503 \x1b[31m" + "x" * 9999),
        },
        troubles=[DiscoveryTrouble("broken.example.com", "v1", "away")],
        namespaces=["a", "b"],
        gone={"b": "it was\ndeleted"},
        parts={"hosts": Collected(1)},
        stopped="terminated",
        error="503",
    )
    found = index.document(1.0)
    pods, metrics, jobs = found["resources"]

    assert ("too large", True) == (pods["truncated"], pods["inconsistent"])
    assert ("terminated", 0) == (jobs["truncated"], jobs["count"])
    assert len(metrics["error"]) <= 1024
    assert "\\u001b" not in json.dumps(metrics)
    assert [{"group": "broken.example.com", "version": "v1", "error": "away"}] == (
        found["groupErrors"]
    )
    assert [{"namespace": "b", "error": "it was deleted"}] == found["namespaceErrors"]
    assert (False, ["a", "b"], "terminated", "503", 1) == (
        found["complete"],
        found["namespaces"],
        found["stopped"],
        found["error"],
        found["hosts"]["count"],
    )
