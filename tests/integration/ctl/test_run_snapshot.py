"""`status-ctl run --plugin cluster-snapshot`: its account, its rights, and their end."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.fakekube import Answer, FakeKube, Rule
from tests.fakekube.kinds import Kind
from tests.integration.ctl.cluster import kubeconfig
from tests.integration.ctl.launched import Controllers, shown
from tests.integration.ctl.scripted import Home

CLUSTER_WIDE = "status-reporter:status-reporter-first:first:snapshot"
OPTION = "--plugin-env=cluster-snapshot.SNAPSHOT_"


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube() as fake:
        fake.write_token(fake.token("admin"))
        fake.offered.serve(Kind("PodMetrics", "metrics.k8s.io", "pods"), [])
        yield fake


@pytest.fixture
def controllers(fake: FakeKube) -> Iterator[Controllers]:
    """What makes the accounts of a namespace and the aggregator's Pod."""
    with Controllers(fake) as controllers:
        yield controllers


@pytest.fixture
def there(home: Home, fake: FakeKube) -> Home:
    kubeconfig(home.folder / ".kube" / "config", fake)
    return home


def run(there: Home, *more: str) -> tuple[int, str, str]:
    return there.run("run", "--plugin", "cluster-snapshot", "--name", "first", *more)


def cluster_wide(fake: FakeKube) -> list[str]:
    """Return what there is of the snapshot's rights."""
    return [
        f"{kind} {each['metadata']['name']}"
        for kind in ("ClusterRole", "ClusterRoleBinding")
        for each in fake.store.find(kind, None)
    ]


def printed(there: Home, *more: str) -> dict[str, Any]:
    """Return what would be created, by kind and name."""
    code, out, err = run(there, "--dry-run", *more)
    assert 0 == code, err
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in yaml.safe_load_all(out)}


def test_its_rights_come_and_go_with_the_run(
    there: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """Cluster-wide ones carry run and namespace; another run's stay."""
    other = {"status-reporter.io/run": "first", "status-reporter.io/namespace": "elsewhere"}
    fake.store.create("ClusterRole", {"metadata": {"name": "other", "labels": other}})
    code, _, err = run(there)
    made = cluster_wide(fake)
    account = fake.store.get("ServiceAccount", "status-reporter-first", "first-snapshot")
    fake.update_pod(
        "first-0",
        lambda pod: pod["metadata"].update(annotations=shown("passed")),
        "status-reporter-first",
    )
    gone, _, after = there.run("delete", "first", "--yes")

    assert (0, 0) == (code, gone), err + after
    assert [
        "ClusterRole other",
        f"ClusterRole {CLUSTER_WIDE}",
        f"ClusterRoleBinding {CLUSTER_WIDE}",
    ] == made
    assert "first" == account["metadata"]["labels"]["status-reporter.io/run"]
    assert "its account may list" in err
    assert ["ClusterRole other"] == cluster_wide(fake)


def test_each_resource_is_named_and_secrets_are_not(there: Home) -> None:
    """The aggregator's Role has nothing of it; the plugin's Pod has the account."""
    made = printed(there)
    rules = made[f"ClusterRole/{CLUSTER_WIDE}"]["rules"]
    named = {
        (group, each) for rule in rules for group in rule["apiGroups"] for each in rule["resources"]
    }
    launch = json.loads(made["ConfigMap/first"]["data"]["launch.json"])
    (definition,) = launch["plugins"]

    assert named >= {("", "pods"), ("metrics.k8s.io", "pods"), ("apps", "deployments")}
    assert not any(each in {"*", "secrets"} for pair in named for each in pair)
    assert [["list"]] == [list(each) for each in {tuple(rule["verbs"]) for rule in rules}]
    assert ("first-snapshot", "cluster-snapshot") == (
        definition["spec"]["template"]["spec"]["serviceAccountName"],
        launch["snapshot"],
    )


def test_more_is_granted_only_where_it_is_asked_for_and_said(
    there: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """Each with what it means."""
    wished = [f"{OPTION}SECRETS=metadata", f"{OPTION}KUBELET=true", f"{OPTION}POD_LOGS=true"]
    made = printed(there, *wished)
    rules = made[f"ClusterRole/{CLUSTER_WIDE}"]["rules"]
    named = {each for rule in rules for each in rule["resources"]}
    fake.fail(Answer(403), method="POST", path="/configmaps")
    _, _, err = run(there, *wished)

    assert named >= {"secrets", "nodes/proxy", "pods/log"}
    assert all(words in err for words in ("reads their values", "runs commands in the Pods"))


@pytest.mark.parametrize("wished", [f"{OPTION}SECRETS=all", f"{OPTION}SECRET=metadata"])
def test_a_wrong_wish_is_a_usage_error(there: Home, fake: FakeKube, wished: str) -> None:
    """Before anything exists."""
    code, _, err = run(there, wished)

    assert 2 == code
    assert wished.removeprefix("--plugin-env=").partition("=")[0] in err
    assert not fake.requests("POST")


def test_a_definition_of_that_name_gets_no_rights(there: Home) -> None:
    """They belong to our own program, as --plugin starts it."""
    (there.folder / "mine.yaml").write_text(
        "apiVersion: status-reporter.io/v1\nkind: Plugin\nmetadata: {name: cluster-snapshot}\n"
        "spec:\n  driver: Job\n  contract: link\n  template:\n    spec:\n"
        "      containers: [{name: c, image: busybox}]\n"
    )
    code, out, err = there.run("run", "-f", "mine.yaml", "--name", "first", "--dry-run")

    assert 0 == code, err
    assert "ClusterRole" not in out
    assert "snapshot: cluster" not in out


def test_rights_that_may_not_be_granted(
    there: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """Said before anything stays; nothing cluster-wide either."""
    fake.fail(Answer(403), method="POST", path="/clusterrolebindings", times=None)
    code, _, err = run(there)

    assert 1 == code
    assert f"clusterrolebinding/{CLUSTER_WIDE}: " in err
    assert [] == cluster_wide(fake)


def test_what_was_made_goes_when_the_rest_fails(
    there: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """The namespace takes nothing along that belongs to the cluster."""
    really = lambda entry: "dryRun" not in entry.query  # noqa: E731
    fake.fail(Answer(403), method="POST", path="/statefulsets", where=really)
    code, _, err = run(there)

    made = [each for each in fake.requests("POST", "/clusterrole") if really(each)]

    assert (1, [201, 201]) == (code, [each.status for each in made]), err
    assert [] == cluster_wide(fake)


def test_people_without_a_sight_of_cluster_roles_delete_other_runs(
    there: Home, fake: FakeKube
) -> None:
    """Only a run that took a snapshot may leave any behind, and that is said."""
    everything = Rule(("*",), ("*",), groups=("", "apps", "batch", "networking.k8s.io"))
    roles = Rule(("*",), ("roles", "rolebindings"), groups=("rbac.authorization.k8s.io",))
    fake.tokens.roles["mere"] = (everything, roles)
    fake.write_token(fake.token("mere"))
    kubeconfig(there.folder / ".kube" / "config", fake)
    codes = []
    for name in ("plain", "first"):
        labels = {"status-reporter.io/run": name}
        fake.store.create("ConfigMap", {"metadata": {"name": name, "labels": labels}})
        if name == "first":
            meta = {"name": "first-snapshot", "labels": labels}
            fake.store.create("ServiceAccount", {"metadata": meta})
        codes.append(there.run("delete", name, "-n", "default", "--yes"))

    assert [0, 1] == [code for code, _, _ in codes], codes
    assert "clusterroles: " in codes[1][2]
