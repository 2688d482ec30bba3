"""Snapshots of some namespaces: what they need no right to, and what becomes of them meanwhile."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from reporter.collect.snapshot.options import choose, read_options
from reporter.collect.snapshot.rights import rights, snapshot_objects
from reporter.errors import Forbidden
from tests.fakekube import Answer, FakeKube, Rule, make_job, make_pod
from tests.fakekube.api import target_of
from tests.integration.collect.scene import Take, on_request
from tests.kube_client import connect


def test_some_namespaces(fake: FakeKube, take: Take) -> None:
    """Chosen by their labels; what belongs to no namespace is there all the same."""
    fake.store.create("Namespace", {"metadata": {"name": "a", "labels": {"team": "x"}}})
    for space in ("a", "b"):
        meta = {"name": "m", "namespace": space}
        fake.store.create("ConfigMap", {"metadata": meta})
    taken = take(fake, namespace_selector="team=x")

    assert ["a"] == taken.index["namespaces"]
    assert "resources/ns/a/core_v1_configmaps.json" in taken.files
    assert "resources/cluster/core_v1_namespaces.json" in taken.files
    assert not any(name.startswith("resources/ns/b/") for name in taken.files)


def as_rules(found: dict[str, Any]) -> Iterator[Rule]:
    """Read a Role or a ClusterRole."""
    space = found["metadata"].get("namespace")
    for each in found["rules"]:
        names, groups = each.get("resourceNames", ()), each["apiGroups"]
        only = () if space is None else (space,)
        yield Rule(
            tuple(each["verbs"]), tuple(each["resources"]), tuple(names), tuple(groups), only
        )


def grant(fake: FakeKube, **variables: str) -> list[Rule]:
    """Give the snapshot the account that `status-ctl run` would; return its rules."""
    options, _ = read_options({f"SNAPSHOT_{name.upper()}": v for name, v in variables.items()})
    api = connect(fake)
    with closing(api):
        found = api.discover()
    granted = rights(choose(found.resources, options).chosen, options)
    made = snapshot_objects("first", "default", granted)
    rules = [
        rule for each in made if each["kind"] in {"Role", "ClusterRole"} for rule in as_rules(each)
    ]
    fake.tokens.roles["snapshot"] = rules
    fake.write_token(fake.token("snapshot"))
    fake.journal.clear()
    return rules


Right = tuple[str, str, str, str]


def granted_rights(rules: list[Rule]) -> set[Right]:
    """Return group, resource, verb and place of each; a right to one namespace is in that."""
    return {
        (group, resource, verb, place)
        for rule in rules
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
        for place in rule.namespaces or rule.names or ("",)
    }


def used_rights(fake: FakeKube) -> set[Right]:
    found = set()
    for entry in fake.requests("GET"):
        target = target_of(entry.path)
        if target is not None:
            plural = "/".join(filter(None, (target.resource, target.subresource)))
            own = target.name or "" if plural == "namespaces" else target.namespace
            found.add((target.group, plural, "get" if target.name else "list", own))
    return found


def spread(fake: FakeKube, *spaces: str) -> None:
    """Put a Pod that says something, a ConfigMap and a Secret into each namespace."""
    for space in spaces:
        fake.store.create("Namespace", {"metadata": {"name": space}})
        fake.create_pod(make_pod(make_job("j", space), name="pod", uid=f"pod-{space}"))
        fake.store.logs[space, "pod", "adapter"] = b"said\n"
        for kind in ("ConfigMap", "Secret"):
            fake.store.create(kind, {"metadata": {"name": "m", "namespace": space}})


@pytest.mark.parametrize("resources", ["", "pods,secrets,configmaps"], ids=["all", "namespaced"])
def test_chosen_namespaces_need_no_right_in_others(
    fake: FakeKube, take: Take, resources: str
) -> None:
    """The roles are enough, none of their rights is in vain, and Secrets elsewhere are refused."""
    spread(fake, "a", "b", "theirs")
    wished = {"namespaces": "b,a", "secrets": "metadata", "pod_logs": "true"}
    rules = grant(fake, resources=resources, **wished)
    taken = take(fake, resources=resources, **wished)
    used = used_rights(fake)
    api = connect(fake)
    with closing(api):
        for space in ("theirs", None):
            with pytest.raises(Forbidden):
                api.list_page("Secret", space)

    assert (True, []) == (taken.index["complete"], taken.index["namespaceErrors"]), taken.index
    assert granted_rights(rules) == used
    assert (2, 2) == (taken.said("pods")["count"], taken.said("secrets")["count"])
    assert 2 == taken.index["podlogs"]["count"]
    assert not [name for name in taken.files if "theirs" in name.split("/")]
    assert bool(resources) is all(rule.namespaces for rule in rules)


def drop(fake: FakeKube, space: str, *, left: bool = False) -> None:
    """Delete a namespace, or just the Role in it."""
    if not left:
        fake.store.delete("Namespace", "", space)
        fake.store.empty(space)
    rules = fake.tokens.roles["snapshot"]
    fake.tokens.roles["snapshot"] = [each for each in rules if space not in each.namespaces]


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ("", "it was deleted"),
        ("pods,configmaps", 'it was deleted, or the snapshot\'s Role in it: namespaces "a" is'),
    ],
    ids=["all", "namespaced"],
)
def test_a_namespace_that_is_deleted_meanwhile(
    fake: FakeKube, take: Take, resources: str, why: str
) -> None:
    """It is told once, not of every resource, and the others have all that is theirs."""
    spread(fake, "a", "b")
    grant(fake, resources=resources, namespaces="a,b")
    in_it = lambda entry: entry.path.startswith("/api/v1/namespaces/a/")  # noqa: E731
    on_request(fake, in_it, lambda: drop(fake, "a"), times=1)
    taken = take(fake, resources=resources, namespaces="a,b", pod_logs="true")
    (told,) = taken.index["namespaceErrors"]

    assert ("a", False) == (told["namespace"], taken.index["complete"])
    assert told["error"].startswith(why)
    assert not [each for each in taken.index["resources"] if "error" in each]
    assert ["pod"] == [each["metadata"]["name"] for each in taken.list("ns/b/core_v1_pods.json")]


def test_a_namespace_that_is_on_its_way_out(fake: FakeKube, take: Take) -> None:
    """Its objects go first, and nothing is refused: what is there may not be all."""
    spread(fake, "a")
    grant(fake, namespaces="a")
    going = {"name": "a", "deletionTimestamp": "2030-01-01T12:00:00Z"}
    fake.store.update(
        "Namespace", "", "a", lambda found: {**found, "metadata": found["metadata"] | going}
    )
    taken = take(fake, namespaces="a")

    assert [{"namespace": "a", "error": "it is being deleted"}] == taken.index["namespaceErrors"]
    assert not taken.index["complete"]


def test_what_is_refused_in_one_namespace(fake: FakeKube, take: Take) -> None:
    """It is there: then each resource says so, and the other namespaces are read to their end."""
    spread(fake, "a", "b")
    grant(fake, namespaces="a,b", pod_logs="true")
    drop(fake, "a", left=True)
    taken = take(fake, namespaces="a,b", pod_logs="true")
    said = taken.said("configmaps")

    assert ([], False) == (taken.index["namespaceErrors"], taken.index["complete"])
    assert (1, True) == (said["count"], 'in the namespace "a"' in said["error"])
    assert (1, True) == (taken.index["podlogs"]["count"], "error" in taken.index["podlogs"])


def test_a_namespace_that_cannot_be_looked_at(fake: FakeKube, take: Take) -> None:
    """It is not taken for gone: what was refused there is said, and the last look counts."""
    spread(fake, "a")
    grant(fake, namespaces="a")
    drop(fake, "a", left=True)
    look = lambda entry: entry.path == "/api/v1/namespaces/a"  # noqa: E731
    looks = fake.fail(Answer(400), where=look, times=2)
    taken = take(fake, namespaces="a", resources="configmaps,pods")

    assert ([], 3) == (taken.index["namespaceErrors"], looks.seen)
    assert 2 == len([each for each in taken.index["resources"] if "error" in each])


def test_all_namespaces_are_gone(fake: FakeKube, take: Take) -> None:
    """A snapshot of nothing is a failure that says why."""
    grant(fake, resources="pods", namespaces="a")
    taken = take(fake, resources="pods", namespaces="a")

    assert taken.failure is not None
    assert "namespace a: it was deleted" in taken.failure.text


def test_a_cap_that_is_reached_in_the_first_namespace(fake: FakeKube, take: Take) -> None:
    """What would still fit from the others does not make the resource look complete."""
    for space, name, size in (("a", "1", 600), ("a", "2", 600), ("b", "1", 1)):
        meta = {"name": f"m{name}", "namespace": space}
        fake.store.create("ConfigMap", {"metadata": meta, "data": {"x": "y" * size * 1024}})
    taken = take(fake, resources="configmaps", namespaces="a,b", resource_mib="1")

    assert "resource size limit reached" == taken.said("configmaps")["truncated"]
    assert not taken.index["complete"]
