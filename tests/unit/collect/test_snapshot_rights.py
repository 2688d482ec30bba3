"""What `status-ctl run` creates for a snapshot of the cluster, and where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reporter.collect.snapshot.rights import (
    Rights,
    prepared,
    snapshot_account,
    snapshot_objects,
    without_user,
)
from reporter.run import names
from reporter.runctl.objects import objects
from tests.plugin_definitions import YAML
from tests.plugin_launches import NAMESPACE, definition, options_of

NODES = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
NAME = f"status-reporter:{NAMESPACE}:r1:snapshot"


def rights(cluster: bool, *namespaces: str) -> Rights:
    return Rights((NODES,) if cluster else (), (PODS,) if namespaces else (), namespaces, 1, 1)


@pytest.mark.parametrize(
    ("granted", "places"),
    [
        (rights(True), {("ClusterRole", None)}),
        (rights(False, "a"), {("Role", "a")}),
        (rights(True, "a", NAMESPACE), {("ClusterRole", None), ("Role", "a"), ("Role", NAMESPACE)}),
        (Rights((NODES,), (), ("a",), 1, 0), {("ClusterRole", None)}),
    ],
    ids=["cluster", "namespace", "both", "no resource in namespaces"],
)
def test_each_role_is_bound_to_the_account_where_it_is(
    granted: Rights, places: set[tuple[str, str | None]]
) -> None:
    """All of it has the run's labels and says of which namespace the run is."""
    account, *made = snapshot_objects("r1", NAMESPACE, granted)
    found: dict[tuple[str, str | None], dict[str, Any]] = {
        (each["kind"], each["metadata"].get("namespace")): each for each in made
    }
    roles = {key for key in found if not key[0].endswith("Binding")}

    assert (snapshot_account("r1"), NAMESPACE) == (
        account["metadata"]["name"],
        account["metadata"]["namespace"],
    )
    assert places == roles
    assert found.keys() == roles | {(f"{kind}Binding", place) for kind, place in roles}
    for kind, place in roles:
        binding = found[f"{kind}Binding", place]
        assert [NODES if place is None else PODS] == found[kind, place]["rules"]
        assert (kind, NAME) == (binding["roleRef"]["kind"], binding["roleRef"]["name"])
        (subject,) = binding["subjects"]
        assert (snapshot_account("r1"), NAMESPACE) == (subject["name"], subject["namespace"])
    for each in made:
        assert NAME == each["metadata"]["name"]
        assert names.belongs(each, "r1", NAMESPACE)
        assert not names.belongs(each, "r1", "a")


@pytest.mark.parametrize(
    ("granted", "said"),
    [
        (rights(True, "a", NAMESPACE, "b"), "*,a,b"),
        (rights(False, "a"), "a"),
        (rights(False, NAMESPACE), None),
        (None, None),
    ],
)
def test_the_lock_on_the_name_says_where_else_the_run_is(
    granted: Rights | None, said: str | None
) -> None:
    """It is created first and deleted last."""
    extra = () if granted is None else snapshot_objects("r1", NAMESPACE, granted)
    first, *_ = objects(replace(options_of(definition(next(iter(YAML)))), extra=extra))

    assert "ConfigMap" == first["kind"]
    assert said == first["metadata"].get("annotations", {}).get(names.ELSEWHERE)


def test_the_plugin_gets_the_account_and_the_remarks() -> None:
    given = replace(definition(next(iter(YAML))), remarks=("before",))
    made = prepared(given, "r1", ["its rights"])

    assert snapshot_account("r1") == made.template["spec"]["serviceAccountName"]
    assert ("before", "its rights") == made.remarks


def test_where_the_platform_gives_users_the_plugin_names_none() -> None:
    given = definition(next(iter(YAML)))
    fixed = {"runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532}
    template = {**given.template, "spec": {**given.template["spec"], "securityContext": fixed}}
    made = without_user(replace(given, template=template)).template["spec"]

    assert {**given.template["spec"], "securityContext": {"runAsNonRoot": True}} == made


def test_a_plugin_of_that_name_from_a_file_may_name_none_either() -> None:
    """It is refused because of its name, beside whatever else is wrong."""
    given = definition(next(iter(YAML)))
    spec = {**given.template["spec"]}
    spec.pop("securityContext", None)
    made = without_user(replace(given, template={**given.template, "spec": spec}))

    assert {**spec, "securityContext": {}} == made.template["spec"]
