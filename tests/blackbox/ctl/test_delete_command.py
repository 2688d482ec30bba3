"""`status-ctl delete` against the fake API server: in what order, what stays, and when it asks."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.blackbox.ctl.cluster import LABEL
from tests.blackbox.ctl.launched import RUN_LABEL, shown, standing
from tests.blackbox.ctl.scripted import Home
from tests.fakekube import Answer, FakeKube, make_job, make_pod
from tests.fakekube.kinds import Kind

OWN = "status-reporter-first"
OURS = {"app.kubernetes.io/name": "status-aggregator"}
DONE = shown("complete", retrieved_at="2030-01-01T12:00:00Z")
KINDS = (
    "ConfigMap",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Service",
    "NetworkPolicy",
    "Job",
    "PersistentVolumeClaim",
    "Secret",
)


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server and its administrator."""
    with FakeKube(role="admin") as fake:
        yield fake


def meta(name: str, namespace: str, run: str = "first", **more: Any) -> dict[str, Any]:
    labels = {"labels": {RUN_LABEL: run}}
    return {"metadata": {"name": name, "namespace": namespace, **labels, **more}}


def add_run(
    fake: FakeKube,
    annotations: dict[str, str] | None = None,
    *,
    run: str = "first",
    namespace: str = OWN,
) -> None:
    """Put a run there: its objects, the aggregator's Pod, and a Job with its Pod."""
    owned = {}
    for kind in KINDS:
        made = meta(run, namespace, run)
        if kind == "Job":
            made["metadata"]["labels"] |= OURS
        owned[kind] = fake.store.create(kind, made)["metadata"]["uid"]
    add_pod(fake, f"{run}-x", run, namespace, owned["Job"], annotations or {})
    job = make_job(f"{run}-quota-1", namespace)
    job["metadata"] |= {"labels": {RUN_LABEL: run}, "uid": f"{run}-quota"}
    fake.create_job(job)
    add_pod(fake, f"{run}-quota-1-x", run, namespace, f"{run}-quota", {})


def add_pod(
    fake: FakeKube, name: str, run: str, namespace: str, owner: str, annotations: dict[str, str]
) -> None:
    pod = make_pod(make_job(namespace=namespace), name=name, annotations=annotations)
    aggregator = {**LABEL, **OURS} if name == f"{run}-x" else {}
    pod["metadata"] |= {"labels": {RUN_LABEL: run, **aggregator}, "uid": name}
    pod["metadata"]["ownerReferences"] = [{"uid": owner}]
    fake.create_pod(pod)


def add_namespace(fake: FakeKube, run: str = "first") -> None:
    """The namespace that a run has made for itself."""
    created = {"annotations": {"status-reporter.io/created-by-run": run}}
    fake.store.create("Namespace", meta(f"status-reporter-{run}", "", run, **created))


def deleted(fake: FakeKube) -> list[str]:
    return [entry.path.split("/")[-2] for entry in fake.requests("DELETE") if entry.status == 200]


def having_theirs(fake: FakeKube) -> None:
    fake.store.create("ConfigMap", {"metadata": {"name": "theirs", "namespace": OWN}})


def having_a_widget(fake: FakeKube) -> None:
    """Of a kind that this command does not know; views and what is owned do not count."""
    widget = {"metadata": {"name": "theirs", "namespace": OWN}}
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "theirs", "uid": "w"}
    part = {"metadata": {"name": "part", "namespace": OWN, "ownerReferences": [owner]}}
    fake.offered.lasting.add("example.com")
    fake.offered.serve(Kind("Widget", "example.com", "widgets"), [widget])
    fake.offered.serve(Kind("PodMetrics", "metrics.k8s.io", "pods"), [widget])
    fake.store.create("Secret", part)


def having_what_the_cluster_owns(fake: FakeKube) -> None:
    """A kind of the owner's name in the namespace is another group's: the owner is not here."""
    owner = {"apiVersion": "management.example.com/v3", "kind": "Cluster", "name": "fleet"}
    made = {"name": "theirs", "namespace": OWN, "ownerReferences": [{**owner, "uid": "c"}]}
    fake.store.create("Secret", {"metadata": made})
    fake.offered.lasting.add("cluster.example.com")
    fake.offered.serve(Kind("Cluster", "cluster.example.com", "clusters"), [])


def having_a_broken_group(fake: FakeKube) -> None:
    fake.offered.broken["custom.example.com"] = "v1"


def having_a_forbidden_kind(fake: FakeKube) -> None:
    fake.fail(Answer(403), method="GET", path="/deployments", times=None)


class TestRemoves:
    """Everything of the run, and nothing else."""

    def test_the_aggregator_first_and_the_plan_last(self, at_home: Home, fake: FakeKube) -> None:
        """So that nobody creates behind its back, and nobody takes the name too early."""
        add_namespace(fake)
        add_run(fake, DONE)
        code, _, err = at_home.run("delete", "first")

        assert 0 == code, err
        assert ["pods", "jobs"] == deleted(fake)[:2]
        assert ["configmaps", "namespaces"] == deleted(fake)[-2:]
        assert [] == standing(fake, "first")
        assert "run first deleted from namespace status-reporter-first: ConfigMap 1, " in err

    def test_jobs_with_their_pods(self, at_home: Home, fake: FakeKube) -> None:
        """A Job that is deleted without a policy leaves them behind."""
        add_run(fake, DONE)
        at_home.run("delete", "first")

        asked = fake.requests("DELETE", "/jobs/")
        assert ["Background"] * 2 == [entry.json["propagationPolicy"] for entry in asked]

    def test_nothing_of_another_run_beside_it(self, at_home: Home, fake: FakeKube) -> None:
        add_run(fake, DONE, namespace="default")
        add_run(fake, DONE, run="second", namespace="default")
        before = standing(fake, "second")
        code, _, err = at_home.run("delete", "run/first", "-n", "default")

        assert 0 == code, err
        assert [] == standing(fake, "first")
        assert before == standing(fake, "second")

    def test_the_run_that_other_commands_show_too(self, at_home: Home, fake: FakeKube) -> None:
        """Of two with one name it is the one in the current namespace."""
        add_namespace(fake)
        add_run(fake, shown("running", final=False))
        add_run(fake, DONE, namespace="default")
        shown_final = json.loads(at_home.run("status", "first", "-o", "json")[1])["final"]
        code, _, err = at_home.run("delete", "first")

        assert (0, True) == (code, shown_final), err
        assert "deleted from namespace default" in err
        own = "status-reporter-first"
        assert "first" == fake.store.get("ConfigMap", own, "first")["metadata"]["name"]

    def test_what_a_run_still_creates_meanwhile(self, at_home: Home, fake: FakeKube) -> None:
        """The aggregator comes when nobody looks for it any more. Who has the name next stays."""
        add_run(fake, DONE, namespace="default")
        drawn = {"annotations": {"status-reporter.io/creation": "5e1f"}}
        other = {"annotations": {"status-reporter.io/creation": "77aa"}}
        fake.store.update(
            "ConfigMap", "default", "first", lambda plan: plan["metadata"].update(drawn)
        )

        def creates(_: Any) -> bool:
            for kind in ("Job", "Role"):
                fake.store.create(kind, meta("first", "default", **drawn))
            fake.store.create("Service", meta("first", "default", **other))
            return False

        fake.fail(Answer(), method="DELETE", path="/configmaps/first", where=creates)
        code, _, err = at_home.run("delete", "first")

        assert 0 == code, err
        assert ["Service/first"] == standing(fake, "first")

    def test_no_namespace_that_the_run_has_not_made(self, at_home: Home, fake: FakeKube) -> None:
        fake.store.create("Namespace", {"metadata": {"name": "team-a"}})
        add_run(fake, DONE, namespace="team-a")
        code, _, _ = at_home.run("delete", "first", "-n", "team-a")

        assert 0 == code
        assert "team-a" == fake.store.get("Namespace", "", "team-a")["metadata"]["name"]

    @pytest.mark.parametrize(
        ("prepare", "said"),
        [
            (having_theirs, "configmap/theirs is in it"),
            (having_a_widget, "widget/theirs is in it"),
            (having_what_the_cluster_owns, "secret/theirs is in it"),
            (having_a_broken_group, "cannot tell what else is in it: custom.example.com: "),
            (having_a_forbidden_kind, "cannot tell what else is in it: deployments.apps: "),
        ],
    )
    def test_a_namespace_in_which_somebody_else_lives_stays(
        self, at_home: Home, fake: FakeKube, prepare: Callable[[FakeKube], object], said: str
    ) -> None:
        """It says who; what cannot be seen may be somebody's."""
        add_namespace(fake)
        add_run(fake, DONE)
        prepare(fake)
        code, _, err = at_home.run("delete", "first")

        assert 1 == code
        assert f"  namespace/{OWN}: {said}" in err
        assert ["Namespace/" + OWN] == standing(fake, "first")
        assert not fake.requests("GET", "/metrics.k8s.io/v1/namespaces")

    def test_what_every_namespace_has_does_not_keep_it(self, at_home: Home, fake: FakeKube) -> None:
        """In Kubernetes, with Istio, and in OpenShift."""
        add_namespace(fake)
        add_run(fake, DONE)
        for given in (
            *("ServiceAccount/default", "ConfigMap/kube-root-ca.crt"),
            "ConfigMap/istio-ca-root-cert",
            *("ConfigMap/openshift-service-ca.crt", "ServiceAccount/builder"),
            *("ServiceAccount/deployer", "Secret/builder-dockercfg-x7d2k"),
            *("Secret/default-token-9qhzl", "RoleBinding/system:image-pullers"),
        ):
            kind, name = given.split("/")
            fake.store.create(kind, {"metadata": {"name": name, "namespace": OWN}})
        code, _, err = at_home.run("delete", "first")

        assert 0 == code, err
        assert [] == standing(fake, "first")

    def test_the_rest_of_a_deletion_that_was_interrupted(
        self, at_home: Home, fake: FakeKube
    ) -> None:
        """The plan has gone already, or all but the namespace."""
        add_namespace(fake)
        fake.store.create("Secret", meta("first-quota", OWN))
        assert 0 == at_home.run("delete", "first")[0]
        add_namespace(fake)
        assert 0 == at_home.run("delete", "first")[0]

        assert [] == standing(fake, "first")

    def test_in_spite_of_an_api_server_that_is_busy(self, at_home: Home, fake: FakeKube) -> None:
        add_run(fake, DONE)
        fake.fail(Answer(503), method="DELETE", times=3)
        fake.fail(Answer(429), method="GET", path="/secrets", times=2)
        code, _, err = at_home.run("delete", "first")

        assert 0 == code, err
        assert [] == standing(fake, "first")


class TestStays:
    """What is left is named with the reason."""

    def test_what_may_not_be_deleted(self, at_home: Home, fake: FakeKube) -> None:
        """The plan stays then: the run is still there."""
        add_run(fake, DONE)
        fake.fail(Answer(403, said="webhook says no"), method="DELETE", path="/secrets", times=None)
        code, _, err = at_home.run("delete", "first", "--timeout", "2s")

        assert 1 == code
        assert "status-ctl: something of run first is left:\n" in err
        assert "  secret/first: webhook says no\n" in err
        assert ["ConfigMap/first", "Secret/first"] == standing(fake, "first")

    def test_what_a_finalizer_keeps(self, at_home: Home, fake: FakeKube) -> None:
        add_run(fake, DONE)
        held = {"finalizers": ["example.com/hold"], "deletionTimestamp": "2030-01-01T12:00:00Z"}
        fake.store.update(
            "Secret", OWN, "first", lambda found: {**found, "metadata": found["metadata"] | held}
        )
        code, _, err = at_home.run("delete", "first", "--timeout", "4s")

        assert 1 == code
        assert "  secret/first: waits for its finalizers (example.com/hold)" in err

    def test_what_may_not_even_be_listed(self, at_home: Home, fake: FakeKube) -> None:
        """At once: asking again gives nobody a right."""
        add_run(fake, DONE)
        fake.fail(Answer(403), method="GET", path="/roles", times=None)
        began = time.monotonic()
        code, _, err = at_home.run("delete", "first")

        assert 1 == code
        assert "  roles: " in err
        assert time.monotonic() - began < 60
        assert "ConfigMap/first" in standing(fake, "first")


class TestAsks:
    """Before something is lost."""

    @pytest.mark.parametrize(
        ("annotations", "doubt"),
        [
            ({}, "its aggregator does not answer"),
            (shown("running", final=False), "it is still running"),
            (shown("complete"), "its results were not downloaded"),
            (shown("failed", retrieved_at=None), "its results were not downloaded"),
            (shown("complete", upload={"state": "failed"}), "its results were not downloaded"),
        ],
    )
    def test_nothing_is_deleted_without_a_yes(
        self, at_home: Home, fake: FakeKube, annotations: dict[str, str], doubt: str
    ) -> None:
        """A script says --yes."""
        add_run(fake, annotations)
        code, _, err = at_home.run("delete", "first")

        assert (1, f"run first was not deleted: {doubt}; use --yes to delete it anyway") == (
            code,
            err.strip().removeprefix("status-ctl: "),
        )
        assert [] == fake.requests("DELETE")
        assert 0 == at_home.run("delete", "first", "--yes")[0]
        assert [] == standing(fake, "first")

    def test_results_that_were_uploaded_need_no_yes(self, at_home: Home, fake: FakeKube) -> None:
        add_run(fake, shown("complete", upload={"host": "store", "state": "uploaded"}))

        assert 0 == at_home.run("delete", "first")[0]
        assert [] == standing(fake, "first")

    @pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
    def test_on_a_terminal_it_asks(
        self, at_home: Home, fake: FakeKube, typed: str, code: int
    ) -> None:
        add_run(fake, shown("complete"))
        found, out = at_home.terminal("delete", "first", typed=typed)

        assert code == found
        assert "Delete run first? Its results were not downloaded. [y/N]" in out
        assert (code == 0) == ([] == standing(fake, "first"))

    def test_a_run_whose_aggregator_is_gone_has_results_on_its_volume(
        self, at_home: Home, fake: FakeKube
    ) -> None:
        fake.store.create("ConfigMap", meta("first", "default"))
        fake.store.create("PersistentVolumeClaim", meta("first", "default"))
        code, _, err = at_home.run("delete", "first")

        assert 1 == code
        assert "its results are on a volume that would be deleted" in err

    def test_no_such_run(self, at_home: Home, fake: FakeKube) -> None:
        code, _, err = at_home.run("delete", "first")

        assert 4 == code
        assert (
            "status-ctl: run 'first' not found in namespace 'default' or 'status-reporter-first'\n"
        ) == err

    def test_a_namespace_that_is_not_shown_may_have_it(self, at_home: Home, fake: FakeKube) -> None:
        """Nobody says then that there is no such run."""
        fake.fail(
            Answer(403), path="/namespaces/status-reporter-first/configmaps/first", times=None
        )
        code, _, err = at_home.run("delete", "first")

        assert 4 == code
        assert "run 'first' not found in namespace 'default'\n" in err
        assert "no access to namespace status-reporter-first: " in err

    def test_no_such_name(self, at_home: Home) -> None:
        code, _, err = at_home.run("delete", "First")

        assert 2 == code
        assert "not a run name: 'First'" in err
