"""How the API server creates and deletes objects of any kind: the fake and the real one."""

import json
import uuid
from typing import Any

import pytest

from tests.contract.servers import Reply, Server
from tests.fakekube import Rule

JSON = {"Content-Type": "application/json"}
CONTAINER = {"name": "c", "image": "example/c:1"}
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
LABELS = {"example.com/run": "r"}


def path(api: Server, plural: str, group: str = "", *, namespace: str | None = "") -> str:
    root = f"/apis/{group}/v1" if group else "/api/v1"
    if namespace is None:
        return f"{root}/{plural}"
    return f"{root}/namespaces/{namespace or api.namespace}/{plural}"


def create(api: Server, where: str, body: dict[str, Any], query: str = "", **kw: Any) -> Reply:
    return api.call("POST", where + query, json.dumps(body).encode(), JSON, **kw)


def delete(api: Server, where: str, **options: Any) -> Reply:
    body = {"kind": "DeleteOptions", "apiVersion": "v1"} | options
    return api.call("DELETE", where, json.dumps(body).encode(), JSON)


def named(name: str, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": LABELS}} | rest


RBAC = "rbac.authorization.k8s.io"
SORTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ConfigMap": ("configmaps", "", {"data": {"a": "b"}, "immutable": True}),
    "Secret": ("secrets", "", {"data": {"a": "Yg=="}}),
    "Service": ("services", "", {"spec": {"clusterIP": "None"}}),
    "ServiceAccount": ("serviceaccounts", "", {"automountServiceAccountToken": False}),
    "Pod": ("pods", "", {"spec": {"containers": [CONTAINER]}}),
    "Job": ("jobs", "batch", {"spec": {"backoffLimit": 0, "template": TEMPLATE}}),
    "Role": ("roles", RBAC, {"rules": []}),
    "RoleBinding": (
        "rolebindings",
        RBAC,
        {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "r"}, "subjects": []},
    ),
    "NetworkPolicy": ("networkpolicies", "networking.k8s.io", {"spec": {"podSelector": {}}}),
    "PersistentVolumeClaim": (
        "persistentvolumeclaims",
        "",
        {
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "none",
            }
        },
    ),
}


@pytest.mark.parametrize("kind", SORTS)
def test_an_object_is_created_once(api: Server, kind: str) -> None:
    """201 with what the server fills in; the second time 409 AlreadyExists."""
    plural, group, rest = SORTS[kind]
    if kind == "Pod":
        api.create_pod("other")  # its account is there now
    where = path(api, plural, group)
    made = create(api, where, named("x", **rest))
    again = create(api, where, named("x", **rest))

    assert (201, kind, "x") == (made.status, made.json["kind"], made.json["metadata"]["name"])
    meta = made.json["metadata"]
    assert meta["uid"]
    assert meta["resourceVersion"]
    assert api.namespace == meta["namespace"]
    assert (409, "AlreadyExists") == (again.status, again.reason)
    assert meta["uid"] == api.call("GET", f"{where}/x").json["metadata"]["uid"]
    listed = api.call("GET", f"{where}?labelSelector=example.com/run=r").json
    assert (f"{kind}List", ["x"]) == (
        listed["kind"],
        [one["metadata"]["name"] for one in listed["items"]],
    )


def test_a_dry_run_leaves_nothing(api: Server) -> None:
    """The answer is that of a creation."""
    where = path(api, "configmaps")
    made = create(api, where, named("x"), "?dryRun=All")

    assert (201, "x") == (made.status, made.json["metadata"]["name"])
    assert 404 == api.call("GET", f"{where}/x").status
    create(api, where, named("x"))
    assert 409 == create(api, where, named("x"), "?dryRun=All").status


def test_a_namespace_that_is_not_there(api: Server) -> None:
    """404 that names the namespace."""
    token = api.cluster_token()
    reply = create(api, path(api, "configmaps", namespace="no-such"), named("x"), token=token)

    assert (404, "NotFound") == (reply.status, reply.reason)
    assert "no-such" in reply.message


@pytest.mark.parametrize("body", [named("Not A Name"), {"metadata": {}}])
def test_a_name_that_is_none(api: Server, body: dict[str, Any]) -> None:
    """422 on metadata.name."""
    reply = create(api, path(api, "configmaps"), body)

    assert (422, "Invalid") == (reply.status, reply.reason)
    assert {"metadata.name"} == {cause["field"] for cause in reply.json["details"]["causes"]}


def test_the_wrong_kind(api: Server) -> None:
    """400."""
    body = named("x") | {"kind": "Secret", "apiVersion": "v1"}

    assert 400 == create(api, path(api, "configmaps"), body).status


def test_a_namespace_is_created_and_shown_without_one(api: Server) -> None:
    """As every object of the whole cluster."""
    name, token = f"made-{uuid.uuid4().hex[:8]}", api.cluster_token()
    made = create(api, path(api, "namespaces", namespace=None), named(name), token=token)

    assert (201, "Namespace", name) == (
        made.status,
        made.json["kind"],
        made.json["metadata"]["name"],
    )
    assert "namespace" not in made.json["metadata"]
    where = f"{path(api, 'namespaces', namespace=None)}/{name}"
    assert 200 == api.call("DELETE", where, token=token).status


def test_creating_needs_its_right(api: Server) -> None:
    """A name in the rule does not count: the server has not read it yet."""
    for role, rule in {
        "reader": Rule(("get",), ("configmaps",)),
        "named": Rule(("get", "create"), ("configmaps",), names=("x",)),
    }.items():
        reply = create(api, path(api, "configmaps"), named("x"), token=api.token(role, (rule,)))

        assert (403, "Forbidden") == (reply.status, reply.reason)
        assert 'cannot create resource "configmaps"' in reply.message


def test_a_right_for_the_whole_cluster(api: Server) -> None:
    """The refusal says where."""
    token = api.token("reader", (Rule(("get",), ("configmaps",)),))
    reply = api.call("GET", path(api, "nodes", namespace=None), token=token)

    assert 403 == reply.status
    assert reply.message.endswith('in API group "" at the cluster scope')


def test_a_namespace_is_read_with_a_right_in_it(api: Server) -> None:
    """It counts as an object in itself; another one is refused, whether it is there or not."""
    create(api, path(api, "namespaces", namespace=None), named(api.namespace))
    rule = Rule(("get",), ("namespaces",), namespaces=(api.namespace,))
    token = api.token("looker", (rule,))
    where = path(api, "namespaces", namespace=None)
    own, other = (api.call("GET", f"{where}/{n}", token=token) for n in (api.namespace, "none"))

    assert (200, 403) == (own.status, other.status)
    assert other.message.endswith('in API group "" in the namespace "none"')


def test_deleting_with_the_right_uid(api: Server) -> None:
    """409 Conflict for another one, which stays; then it is gone, and a second time 404."""
    where = path(api, "configmaps")
    uid = create(api, where, named("x")).json["metadata"]["uid"]
    other = delete(api, f"{where}/x", preconditions={"uid": str(uuid.uuid4())})
    assert (409, "Conflict") == (other.status, other.reason)
    assert "UID" in other.message
    gone = delete(api, f"{where}/x", preconditions={"uid": uid}, propagationPolicy="Background")

    assert (200, "Status", "Success") == (gone.status, gone.json["kind"], gone.json["status"])
    assert 404 == delete(api, f"{where}/x").status


def test_a_watch_sees_creation_and_deletion(api: Server) -> None:
    """From the version of a list on, with the labels that it asks for."""
    where = path(api, "configmaps")
    listed = api.call("GET", f"{where}?labelSelector=example.com/run=r").json
    version = listed["metadata"]["resourceVersion"]
    watch = api.watch(
        f"timeoutSeconds=10&resourceVersion={version}&labelSelector=example.com/run=r", path=where
    )
    create(api, where, {"metadata": {"name": "other"}})
    create(api, where, named("x"))
    delete(api, f"{where}/x")
    seen = [watch.event() for _ in range(2)]

    assert [("ADDED", "ConfigMap", "x"), ("DELETED", "ConfigMap", "x")] == [
        (kind, found["kind"], found["metadata"]["name"]) for kind, found in seen
    ]


def test_a_jobs_pods_are_labelled(api: Server) -> None:
    """By its name and uid, beside the template's own labels."""
    made = create(
        api,
        api.jobs,
        named("x", spec={"template": {"metadata": {"labels": LABELS}, **TEMPLATE}}),
    )
    labels = made.json["spec"]["template"]["metadata"]["labels"]

    assert (LABELS | {"batch.kubernetes.io/job-name": "x"}).items() <= labels.items()
    assert made.json["metadata"]["uid"] == labels["batch.kubernetes.io/controller-uid"]


def test_what_may_be_done_is_told(api: Server) -> None:
    """To everybody who asks about himself."""
    token = api.token("reader", (Rule(("get",), ("configmaps",)),))
    where = path(api, "selfsubjectaccessreviews", "authorization.k8s.io", namespace=None)
    asked = {"namespace": api.namespace, "group": "", "resource": "configmaps"}
    found = [
        create(api, where, {"spec": {"resourceAttributes": asked | {"verb": verb}}}, token=token)
        for verb in ("get", "create")
    ]

    assert [(201, True), (201, False)] == [
        (each.status, each.json["status"]["allowed"]) for each in found
    ]


def test_what_an_account_may_do_is_told(api: Server) -> None:
    """To who may ask about others in the namespace."""
    token = api.token("reader", (Rule(("get",), ("configmaps",)),))
    where = path(api, "localsubjectaccessreviews", "authorization.k8s.io")
    asked = {"namespace": api.namespace, "group": "", "resource": "configmaps"}
    user = f"system:serviceaccount:{api.namespace}:reader"
    found = [
        create(
            api,
            where,
            {
                "metadata": {"namespace": api.namespace},
                "spec": {"user": user, "resourceAttributes": asked | {"verb": verb}},
            },
            token=asker,
        )
        for verb, asker in (("get", None), ("create", None), ("get", token))
    ]

    assert [201, 201, 403] == [each.status for each in found]
    assert [True, False] == [each.json["status"]["allowed"] for each in found[:2]]


def test_a_log_that_is_not_there(api: Server) -> None:
    """No such Pod, no such container; none yet where no node has the Pod."""
    pod = api.create_unscheduled_pod()["metadata"]["name"]
    where = f"{api.pods}/{pod}/log"

    assert 404 == api.call("GET", f"{api.pods}/no-such/log").status
    wrong = api.call("GET", f"{where}?container=other")
    assert (400, "BadRequest") == (wrong.status, wrong.reason)
    assert "container other is not valid for pod" in wrong.message
    assert 204 == api.call("GET", f"{where}?container=adapter").status


def test_the_version_is_told_to_everybody(api: Server) -> None:
    """Also to who may do nothing else."""
    reply = api.call("GET", "/version", token=api.token("nothing"))

    assert 200 == reply.status
    assert reply.json["gitVersion"].startswith("v1.")


def test_names_of_roles_may_have_colons(api: Server) -> None:
    """They are any part of a path; names of other objects are not."""
    body = named("status-reporter:a:b:c", rules=[])

    assert 201 == create(api, path(api, "roles", RBAC), body, "?dryRun=All").status
    assert 422 == create(api, path(api, "configmaps"), named("a:b"), "?dryRun=All").status
