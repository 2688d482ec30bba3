"""What the API server does with reads and rights, held against the fake and against the real one.

What `tests/fakekube` claims to imitate has a test here; where the two differ, the fake is wrong.
"""

import json

import pytest

from tests.contract.conditions import condition
from tests.contract.servers import JOB, POD, Server
from tests.fakekube import Rule

# Reading


def test_the_status_path_gives_the_whole_job(api: Server) -> None:
    """Spec, uid and all: the right to read `jobs` is not needed."""
    api.create_job()
    whole = api.call("GET", f"{api.jobs}/{JOB}").json
    by_status = api.call("GET", f"{api.jobs}/{JOB}/status").json

    assert whole == by_status
    assert "template" in by_status["spec"]
    assert by_status["metadata"]["uid"]
    assert ("Job", "batch/v1") == (by_status["kind"], by_status["apiVersion"])


@pytest.mark.parametrize("what", ["pods", "jobs", "jobs/status"])
def test_what_does_not_exist_is_404_with_a_status(api: Server, what: str) -> None:
    """The answer is an object that names what was looked for."""
    paths = {
        "pods": f"{api.pods}/none",
        "jobs": f"{api.jobs}/none",
        "jobs/status": f"{api.jobs}/none/status",
    }
    reply = api.call("GET", paths[what])

    assert (404, "NotFound") == (reply.status, reply.reason)
    assert "Status" == reply.json["kind"]
    assert "none" == reply.json["details"]["name"]
    assert what.split("/", maxsplit=1)[0] == reply.json["details"]["kind"]


def test_an_unknown_path_is_forbidden(api: Server) -> None:
    """Rights come before existence: a 404 always names an object."""
    reply = api.call("GET", "/nothing")

    assert (403, "Forbidden") == (reply.status, reply.reason)
    assert 'cannot get path "/nothing"' in reply.message


# Rights

LEAST = (
    Rule(("get", "patch"), ("jobs/status",), (JOB,)),
    Rule(("get", "watch"), ("pods",)),
)


def test_the_least_rights(api: Server) -> None:
    """Reading and patching the one status, reading and watching Pods; nothing else."""
    api.create_job()
    api.create_pod()
    token = api.token("least", LEAST)
    body = json.dumps({"status": {}}).encode()
    merge = {"Content-Type": "application/strategic-merge-patch+json"}

    assert {
        "GET status": 200,
        "PATCH status": 200,
        "GET job": 403,
        "PATCH job": 403,
        "GET another status": 403,
        "GET pod": 200,
        "list pods": 403,
    } == {
        "GET status": api.call("GET", f"{api.jobs}/{JOB}/status", token=token).status,
        "PATCH status": api.patch({"status": {"conditions": [condition()]}}, token=token).status,
        "GET job": api.call("GET", f"{api.jobs}/{JOB}", token=token).status,
        "PATCH job": api.call("PATCH", f"{api.jobs}/{JOB}", body, merge, token).status,
        "GET another status": api.call("GET", f"{api.jobs}/none/status", token=token).status,
        "GET pod": api.call("GET", f"{api.pods}/{POD}", token=token).status,
        "list pods": api.call("GET", api.pods, token=token).status,
    }
    assert "ADDED" == api.watch_pod("timeoutSeconds=5", token).event()[0]


def test_a_named_job_that_is_gone_is_404(api: Server) -> None:
    """The right is by name, so its absence shows; of any other name nothing shows."""
    token = api.token("least", LEAST)

    assert 404 == api.call("GET", f"{api.jobs}/{JOB}/status", token=token).status
    assert 403 == api.call("GET", f"{api.jobs}/none/status", token=token).status


def test_the_go_reporters_rights(api: Server) -> None:
    """`jobs: get`, `jobs/status: get, update, patch`, `pods: get, list`: all but the watch."""
    api.create_job()
    api.create_pod()
    token = api.token("go-reporter")

    assert 200 == api.call("GET", f"{api.jobs}/{JOB}/status", token=token).status
    assert 200 == api.patch({"status": {"conditions": [condition()]}}, token=token).status
    assert 200 == api.call("GET", f"{api.pods}/{POD}", token=token).status
    assert 200 == api.call("GET", f"{api.pods}?limit=500", token=token).status
    watch = api.watch_pod("timeoutSeconds=5", token)
    assert (403, "Forbidden") == (watch.status, watch.reply().reason)


def test_names_in_the_rules_hold_for_a_watch(api: Server) -> None:
    """A watch with the field selector is one of that name; without it, it is one of all."""
    api.create_pod()
    token = api.token("one", (Rule(("get", "watch"), ("pods",), (POD,)),))

    assert 200 == api.watch_pod("timeoutSeconds=5", token).status
    assert 403 == api.watch("timeoutSeconds=5", token).status


def test_a_refusal_says_who_may_not_do_what(api: Server) -> None:
    """User, verb, resource, namespace."""
    token = api.token("no-pods")
    reply = api.call("GET", f"{api.pods}/{POD}", token=token)

    assert (403, "Forbidden") == (reply.status, reply.reason)
    user = f"system:serviceaccount:{api.namespace}:no-pods"
    assert (
        f'pods "{POD}" is forbidden: User "{user}" cannot get resource "pods" '
        f'in API group "" in the namespace "{api.namespace}"'
    ) == reply.message


def test_a_bad_token_and_none(api: Server) -> None:
    """401; and without one it is the anonymous user who may not."""
    bad = api.call("GET", f"{api.jobs}/{JOB}/status", token="bad")
    none = api.call("GET", f"{api.jobs}/{JOB}/status", token="")

    assert (401, "Unauthorized") == (bad.status, bad.reason)
    assert (403, "Forbidden") == (none.status, none.reason)
    assert "system:anonymous" in none.message
