"""`status-ctl run --plugin cluster-snapshot`: its account, its rights, and their end."""

from collections.abc import Iterator

import pytest

from tests.blackbox.ctl.cluster import kubeconfig
from tests.blackbox.ctl.launched import Controllers, shown
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.starting import really
from tests.fakekube import Answer, FakeKube, Rule
from tests.fakekube.kinds import Kind

CLUSTER_WIDE = "status-reporter:status-reporter-first:first:snapshot"
OPTION = "--plugin-env=cluster-snapshot.SNAPSHOT_"


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="admin") as fake:
        fake.offered.serve(Kind("PodMetrics", "metrics.k8s.io", "pods"), [])
        yield fake


def run(at_home: Home, *more: str) -> tuple[int, str, str]:
    return at_home.run("run", "--plugin", "cluster-snapshot", "--name", "first", *more)


def granted(fake: FakeKube) -> list[str]:
    """Return what there is of the snapshot's rights: kind, namespace, name."""
    return sorted(
        " ".join(filter(None, (kind, each["metadata"].get("namespace"), each["metadata"]["name"])))
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
        for each in fake.store.find(kind, None)
        if "status-reporter.io/namespace" in each["metadata"].get("labels", {})
    )


def labels(namespace: str) -> dict[str, str]:
    """Return the labels of what the run `first` of a namespace has elsewhere."""
    return {"status-reporter.io/run": "first", "status-reporter.io/namespace": namespace}


def spaces(fake: FakeKube, *names: str) -> None:
    for name in names:
        fake.store.create("Namespace", {"metadata": {"name": name}})


def pairs(namespace: str, *, cluster: bool = True) -> list[str]:
    """Return the roles and bindings of the run `first` in namespace team-a and team-b."""
    name = f"status-reporter:{namespace}:first:snapshot"
    wide = [f"ClusterRole {name}", f"ClusterRoleBinding {name}"] if cluster else []
    inside = [f"{kind} team-{x} {name}" for kind in ("Role", "RoleBinding") for x in "ab"]
    return [*wide, *inside]


def test_its_rights_come_and_go_with_the_run(
    at_home: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """They carry run and namespace; another run's stay, also if it has the same name."""
    fake.store.create("ClusterRole", {"metadata": {"name": "other", "labels": labels("elsewhere")}})
    code, _, err = run(at_home)
    made = granted(fake)
    account = fake.store.get("ServiceAccount", "status-reporter-first", "first-snapshot")
    fake.update_pod(
        "first-x7d2k",
        lambda pod: pod["metadata"].update(annotations=shown("passed")),
        "status-reporter-first",
    )
    gone, _, after = at_home.run("delete", "first", "--yes")

    assert (0, 0) == (code, gone), err + after
    assert [
        "ClusterRole other",
        f"ClusterRole {CLUSTER_WIDE}",
        f"ClusterRoleBinding {CLUSTER_WIDE}",
    ] == made
    assert "first" == account["metadata"]["labels"]["status-reporter.io/run"]
    assert "its account may list" in err
    assert ["ClusterRole other"] == granted(fake)


def test_rights_in_chosen_namespaces_come_and_go_with_the_run(
    at_home: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """A run of that name in a chosen namespace keeps its rights, and leaves those of the other."""
    spaces(fake, "team-a", "team-b")
    theirs = {"name": "theirs", "namespace": "team-b", "labels": labels("team-a")}
    fake.store.create("Role", {"metadata": theirs})
    lock = {"name": "first", "namespace": "team-a", "labels": {**labels("team-a")}}
    fake.store.create("ConfigMap", {"metadata": lock})
    code, _, err = run(at_home, "-n", "default", f"{OPTION}NAMESPACES=team-a,team-b")
    made = granted(fake)
    other, _, said = at_home.run("delete", "first", "-n", "team-a", "--yes")
    left = granted(fake)
    gone, _, after = at_home.run("delete", "first", "-n", "default", "--yes")

    assert (0, 0, 0) == (code, other, gone), err + said + after
    assert sorted([*pairs("default"), "Role team-b theirs"]) == made
    assert pairs("default") == left
    assert [] == granted(fake)
    assert "namespaced resources in namespaces team-a, team-b only, and " in err


def test_a_chosen_namespace_that_is_not_there(at_home: Home, fake: FakeKube) -> None:
    """Each is named, before anything exists. The run's own will be there."""
    going = {"name": "team-b", "deletionTimestamp": "2030-01-01T12:00:00Z"}
    fake.store.create("Namespace", {"metadata": going})
    code, _, err = run(at_home, f"{OPTION}NAMESPACES=team-a,team-b,status-reporter-first")

    assert 2 == code
    assert "cluster-snapshot.SNAPSHOT_NAMESPACES: there is no namespace team-a\n" in err
    assert "cluster-snapshot.SNAPSHOT_NAMESPACES: namespace team-b is being deleted\n" in err
    assert "namespace status-reporter-first" not in err
    assert not fake.requests("POST")


def test_a_chosen_namespace_that_nobody_may_look_at(
    at_home: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """The dry run of its Role tells, and whether it may be granted there."""
    spaces(fake, "team-b")
    fake.fail(Answer(403), method="GET", path="/namespaces/team-a", times=None)
    fake.fail(Answer(403), method="POST", path="/namespaces/team-b/roles", times=None)
    code, _, err = run(at_home, f"{OPTION}NAMESPACES=team-a,team-b")

    assert 1 == code
    assert "  there is no namespace team-a\n" in err
    assert f"  role/{CLUSTER_WIDE} in namespace team-b: " in err
    assert [] == granted(fake)


def test_a_wrong_wish_is_a_usage_error(at_home: Home, fake: FakeKube) -> None:
    """Before anything exists."""
    code, _, err = run(at_home, f"{OPTION}SECRETS=all")

    assert 2 == code
    assert "cluster-snapshot.SNAPSHOT_SECRETS" in err
    assert not fake.requests("POST")


def test_a_definition_of_that_name_gets_no_rights(at_home: Home) -> None:
    """They belong to our own program, as --plugin starts it."""
    (at_home.folder / "mine.yaml").write_text(
        "apiVersion: status-reporter.io/v1\nkind: Plugin\nmetadata: {name: cluster-snapshot}\n"
        "spec:\n  driver: Job\n  contract: link\n  template:\n    spec:\n"
        "      containers: [{name: c, image: busybox}]\n"
    )
    code, out, err = at_home.run("run", "-f", "mine.yaml", "--name", "first", "--dry-run")

    assert 0 == code, err
    assert "ClusterRole" not in out
    assert "snapshot: cluster" not in out


def test_rights_that_may_not_be_granted(
    at_home: Home, fake: FakeKube, controllers: Controllers
) -> None:
    """Said before anything stays; nothing cluster-wide either."""
    fake.fail(Answer(403), method="POST", path="/clusterrolebindings", times=None)
    code, _, err = run(at_home)

    assert 1 == code
    assert f"clusterrolebinding/{CLUSTER_WIDE}: " in err
    assert [] == granted(fake)


@pytest.mark.parametrize(
    ("wished", "path", "count"),
    [((), "/clusterrole", 2), ((f"{OPTION}NAMESPACES=team-a,team-b",), "/namespaces/team-", 4)],
    ids=["cluster", "namespaces"],
)
def test_what_was_made_goes_when_the_rest_fails(
    at_home: Home,
    fake: FakeKube,
    controllers: Controllers,
    wished: tuple[str, ...],
    path: str,
    count: int,
) -> None:
    """The run's namespace takes nothing along that is not in it."""
    spaces(fake, "team-a", "team-b")
    fake.fail(Answer(403), method="POST", path="/jobs", where=really)
    code, _, err = run(at_home, *wished)

    made = [each for each in fake.requests("POST", path) if really(each)]

    assert (1, [201] * count) == (code, [each.status for each in made]), err
    assert [] == granted(fake)


def mere(at_home: Home, fake: FakeKube, *namespaces: str, knows_others: bool = True) -> None:
    """Become somebody who may do everything in these namespaces, and may know which others are."""
    groups = ("", "apps", "batch", "networking.k8s.io", "rbac.authorization.k8s.io")
    inside = Rule(("*",), ("*",), groups=groups, namespaces=namespaces)
    others = [Rule(("get",), ("namespaces",))] if knows_others else []
    fake.tokens.roles["mere"] = (inside, *others)
    fake.write_token(fake.token("mere"))
    kubeconfig(at_home.folder / ".kube" / "config", fake)


def test_people_with_rights_in_one_namespace_are_told_how_to_leave_out_what_needs_more(
    at_home: Home, fake: FakeKube
) -> None:
    """They have named no plugin: all built-in ones are meant."""
    mere(at_home, fake, "default")
    unseen, _, first = at_home.run("run", "-n", "default")
    code, _, second = at_home.run("run", "-n", "default", "--node", "node1")

    assert (4, 1) == (unseen, code), first + second
    assert "--node NAME,..., or choose other plugins with -f or --plugin" in first
    assert "; choose other plugins with -f or --plugin, or limit the snapshot" in second
    assert 1 == second.count("limit the snapshot")


def left_by(fake: FakeKube, run: str, elsewhere: str) -> None:
    """Put what is left of a run in namespace default: its plan, which says where else to look."""
    meta = {"name": run, "labels": {"status-reporter.io/run": run}}
    said = {"annotations": {"status-reporter.io/elsewhere": elsewhere}} if elsewhere else {}
    fake.store.create("ConfigMap", {"metadata": meta | said})


def test_people_without_a_sight_of_the_cluster_delete_other_runs(
    at_home: Home, fake: FakeKube
) -> None:
    """Only a run with rights in the whole cluster may leave any behind: that is said every time."""
    mere(at_home, fake, "default")
    left_by(fake, "plain", "")
    left_by(fake, "first", "*")
    codes = [at_home.run("delete", each, "-n", "default", "--yes") for each in ("plain", "first")]
    codes.append(at_home.run("delete", "first", "-n", "default", "--yes"))

    assert [0, 1, 1] == [code for code, _, _ in codes], codes
    assert all("clusterroles: " in err for _, _, err in codes[1:])


def test_people_with_rights_in_the_chosen_namespaces_delete_a_run(
    at_home: Home, fake: FakeKube
) -> None:
    """One that is gone has nothing left of it; one that they cannot see may have."""
    mere(at_home, fake, "default", "team-a")
    spaces(fake, "team-a", "team-b")
    for kind in ("Role", "RoleBinding"):
        meta = {"name": "rights", "namespace": "team-a", "labels": labels("default")}
        fake.store.create(kind, {"metadata": meta})
    left_by(fake, "first", "team-a,gone")
    code, _, err = at_home.run("delete", "first", "-n", "default", "--yes")
    left = granted(fake)
    left_by(fake, "first", "team-a,team-b")
    unseen, _, said = at_home.run("delete", "first", "-n", "default", "--yes")

    assert (0, []) == (code, left), err
    assert "Role 1, RoleBinding 1" in err
    assert 1 == unseen
    assert "  roles in namespace team-b: " in said


def test_people_who_see_only_their_namespaces_delete_a_run_when_one_of_them_is_gone(
    at_home: Home, fake: FakeKube
) -> None:
    """Their rights in it are gone with it: nobody tells them whether it exists."""
    mere(at_home, fake, "default", "team-a", knows_others=False)
    spaces(fake, "team-a")
    meta = {"name": "rights", "namespace": "team-a", "labels": labels("default")}
    fake.store.create("Role", {"metadata": meta})
    left_by(fake, "first", "team-a,gone")
    careful, _, said = at_home.run("delete", "first", "-n", "default")
    kept = fake.store.find("ConfigMap", "default")
    code, _, err = at_home.run("delete", "first", "-n", "default", "--yes")

    assert (1, 1) == (careful, len(kept)), said
    assert "if these namespaces no longer exist, use --yes to delete the run" in said
    assert (0, []) == (code, granted(fake)), err
    assert "  roles in namespace gone: cannot be seen: " in err
    assert [] == fake.store.find("ConfigMap", "default")


@pytest.mark.parametrize("wished", [(), (f"{OPTION}NAMESPACES=team-a,team-b",)])
def test_rights_are_found_when_the_namespace_of_the_run_is_gone(
    at_home: Home, fake: FakeKube, controllers: Controllers, wished: tuple[str, ...]
) -> None:
    """`kubectl delete namespace` takes the run, and not what it has elsewhere."""
    spaces(fake, "team-a", "team-b")
    made = run(at_home, *wished)
    before = granted(fake)
    fake.store.empty("status-reporter-first")
    fake.store.delete("Namespace", "", "status-reporter-first")
    shown_to, _, _ = at_home.run("logs", "first")
    code, _, err = at_home.run("delete", "first", "--yes")
    again, _, _ = at_home.run("delete", "first", "--yes")

    assert (0, 4, 0, 4) == (made[0], shown_to, code, again), made[2] + err
    assert before
    assert [] == granted(fake)
