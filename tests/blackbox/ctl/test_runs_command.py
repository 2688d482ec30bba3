"""`status-ctl runs`: every run that stands in the cluster, and how it is."""

import json

import pytest

from tests.blackbox.ctl import cluster
from tests.blackbox.ctl.cluster import add_aggregator, plugin
from tests.blackbox.ctl.launched import standing
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import FakeKube, Rule

READ = Rule(("list",), ("pods", "jobs"), groups=("", "batch"))
REST = Rule(("get", "list"), ("configmaps", "namespaces"))


@pytest.fixture
def fake(fake: FakeKube) -> FakeKube:
    """The API server shows them what a run consists of."""
    fake.tokens.roles["person"] = (READ,)
    return fake


def labels(run: str) -> dict[str, str]:
    """Return the labels of the aggregator's own objects."""
    return {**cluster.labels(run), "app.kubernetes.io/name": "status-aggregator"}


def add_run(fake: FakeKube, name: str, namespace: str = "default") -> None:
    """Put the aggregator's Job there."""
    meta = {"name": name, "namespace": namespace, "labels": labels(name)}
    meta["creationTimestamp"] = "2026-01-01T00:00:00Z"  # type: ignore[assignment]
    fake.store.create("Job", {"metadata": meta, "spec": {}})


def with_pod(fake: FakeKube, name: str, status: str, *plugins: object, **more: object) -> None:
    """Put the aggregator's Pod there."""
    add_aggregator(fake, status, *plugins, name=f"{name}-x", launched=name, **more)  # type: ignore[arg-type]
    pod = fake.store.get("Pod", str(more.get("namespace", "default")), f"{name}-x")
    pod["metadata"]["labels"] |= labels(name)
    fake.store.replace("Pod", pod)


def test_each_has_a_line(at_home: Home, fake: FakeKube) -> None:
    """In order of their names, whatever has become of them."""
    add_run(fake, "nightly")
    with_pod(
        fake,
        "nightly",
        "complete",
        plugin("disk", status="complete", verdict="failed"),
        plugin("net", status="complete", verdict="passed"),
        run={"status": "complete", "result_status": "failed", "final": True},
    )
    add_run(fake, "gone")
    code, out, err = at_home.run("runs")

    assert (0, "") == (code, err)
    header, *rows = out.splitlines()
    assert ["NAME", "STATUS", "RESULT", "DONE", "FAILED", "AGE", "DETAIL"] == header.split()
    assert ["gone", "-", "-", "-", "-"] == rows[0].split()[:5]
    assert rows[0].endswith("its aggregator has no Pod")
    assert ["nightly", "complete", "failed", "2/2", "1"] == rows[1].split()[:5]


def test_a_pod_that_says_nothing_yet(at_home: Home, fake: FakeKube) -> None:
    """Its trouble is shown instead."""
    add_run(fake, "new")
    with_pod(fake, "new", "running", phase="Pending")
    _, out, _ = at_home.run("runs")

    assert out.splitlines()[1].endswith("the pod is Pending")


@pytest.mark.parametrize("form", ["name", "json"])
def test_all_namespaces(at_home: Home, fake: FakeKube, form: str) -> None:
    """A run has a namespace of its own unless somebody says otherwise."""
    add_run(fake, "one", "status-reporter-one")
    add_run(fake, "two")
    code, out, _ = at_home.run("runs", "-A", "-o", form)
    table = at_home.run("runs", "--all-namespaces")[1]

    assert 0 == code
    if form == "name":
        assert ["run/two", "run/one"] == out.split()
    else:
        assert ["two", "one"] == [each["name"] for each in json.loads(out)["items"]]
    assert ["status-reporter-one", "one"] == table.splitlines()[2].split()[:2]


def add_plan(fake: FakeKube, name: str, namespace: str = "default") -> None:
    """Put the run's ConfigMap there, which is created first and deleted last."""
    meta = {"name": name, "namespace": namespace, "labels": labels(name)}
    fake.store.create("ConfigMap", {"metadata": meta, "data": {"plan.json": "{}"}})


def add_namespace(fake: FakeKube, run: str) -> None:
    """Put the namespace there that a run has made."""
    made_by = {"status-reporter.io/created-by-run": run}
    meta = {"name": f"status-reporter-{run}", "labels": cluster.labels(run), "annotations": made_by}
    fake.store.create("Namespace", {"metadata": meta})


def incomplete(run: str, namespace: str) -> str:
    command = f"status-ctl delete {run} -n {namespace}"
    return f"incomplete, unless it is just being created or deleted; {command} removes it"


def test_what_is_left_of_a_run_has_a_line(at_home: Home, fake: FakeKube) -> None:
    """Once each; of a run that stands, the plan and the namespace say nothing more."""
    fake.tokens.roles["person"] = (READ, REST)
    add_run(fake, "whole", "status-reporter-whole")
    for run in ("whole", "half"):
        add_plan(fake, run, f"status-reporter-{run}")
    for run in ("whole", "half", "begun"):
        add_namespace(fake, run)
    add_plan(fake, "shared")
    code, out, err = at_home.run("runs", "-A", "-o", "json")

    assert (0, "") == (code, err)
    assert [
        ("shared", incomplete("shared", "default")),
        ("begun", incomplete("begun", "status-reporter-begun")),
        ("half", incomplete("half", "status-reporter-half")),
        ("whole", "its aggregator has no Pod"),
    ] == [(each["name"], each["detail"]) for each in json.loads(out)["items"]]
    assert [] == [
        entry.path
        for entry in fake.requests("GET", "/configmaps")
        if "PartialObjectMetadataList" not in entry.headers["accept"]
    ]


@pytest.mark.parametrize("run", ["half", "begun"])
def test_what_is_left_of_a_run_in_one_namespace(at_home: Home, fake: FakeKube, run: str) -> None:
    """Also if that is only the namespace itself."""
    fake.tokens.roles["person"] = (READ, REST)
    own = f"status-reporter-{run}"
    add_namespace(fake, run)
    if run == "half":
        add_plan(fake, run, own)
    _, out, _ = at_home.run("runs", "-n", own)

    assert [True] == [line.endswith(incomplete(run, own)) for line in out.splitlines()[1:]]


@pytest.mark.parametrize("kind", ["ConfigMap", "Namespace"])
def test_what_goes_already_is_not_called_incomplete(
    at_home: Home, fake: FakeKube, kind: str
) -> None:
    """Of a run that has a namespace of its own, that namespace goes with all that is in it."""
    fake.tokens.roles["person"] = (READ, REST)
    own = "status-reporter-half"
    add_plan(fake, "half", own)
    add_namespace(fake, "half")
    place = ("", own) if kind == "Namespace" else (own, "half")
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    fake.store.update(kind, *place, lambda found: found | {"metadata": found["metadata"] | going})
    _, out, _ = at_home.run("runs", "-A", "-o", "json")

    assert [("half", "is being deleted")] == [
        (each["name"], each["detail"]) for each in json.loads(out)["items"]
    ]


def test_what_is_left_of_a_run_can_be_deleted(at_home: Home, fake: FakeKube) -> None:
    """By the command that was shown, without a question."""
    fake.tokens.roles["person"] = fake.tokens.roles["admin"]
    add_plan(fake, "half", "status-reporter-half")
    for run in ("half", "begun"):
        add_namespace(fake, run)
    meta = {"name": "half-aggregator", "namespace": "status-reporter-half"}
    fake.store.create("Role", {"metadata": {**meta, "labels": labels("half")}})
    for run in ("half", "begun"):
        code, _, err = at_home.run("delete", run, "-n", f"status-reporter-{run}")

        assert 0 == code, err
        assert [] == standing(fake, run)


def test_there_are_none(at_home: Home, fake: FakeKube) -> None:
    """Nothing on standard output, and where else to look."""
    add_run(fake, "one", "status-reporter-one")

    assert (0, "", "status-ctl: no runs in namespace 'default'; -A lists all\n") == at_home.run(
        "runs"
    )


def test_no_right_to_see_them(at_home: Home, fake: FakeKube) -> None:
    """4: the API's words."""
    fake.tokens.roles["person"] = ()
    code, out, err = at_home.run("runs")

    assert (4, "") == (code, out)
    assert "cannot list resource" in err
