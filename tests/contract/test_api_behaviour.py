"""What the API server does, held against the fake and against the real one.

What `tests/fakekube` claims to imitate has a test here; where the two differ, the fake is wrong.
"""

import json
import time
from typing import Any

import pytest

from tests.contract.servers import JOB, POD, Server
from tests.fakekube import Rule

THEN = "2030-01-01T12:00:00Z"
LATER = "2030-01-01T13:00:00Z"


def condition(kind: str = "Available", **fields: Any) -> dict[str, Any]:
    whole = {
        "type": kind,
        "status": "True",
        "reason": "AllGood",
        "message": "words",
        "lastProbeTime": THEN,
        "lastTransitionTime": THEN,
    }
    return whole | fields


def conditions(job: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = job["status"].get("conditions", [])
    return found


def types(job: dict[str, Any]) -> list[str]:
    return [found["type"] for found in conditions(job)]


def version(job: dict[str, Any]) -> str:
    return str(job["metadata"]["resourceVersion"])


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


def test_a_pod_is_read_by_name(api: Server) -> None:
    """A plain Pod."""
    api.create_pod()
    pod = api.call("GET", f"{api.pods}/{POD}").json

    assert ("Pod", "v1", POD) == (pod["kind"], pod["apiVersion"], pod["metadata"]["name"])


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


# Which patch (facts 1.1)


def test_patching_a_job_that_does_not_exist(api: Server) -> None:
    """404, and nothing is created."""
    reply = api.patch({"status": {"conditions": [condition()]}}, job="none")

    assert (404, "NotFound") == (reply.status, reply.reason)
    assert 404 == api.call("GET", f"{api.jobs}/none").status


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", None])
def test_a_patch_without_a_patch_content_type_is_refused(
    api: Server, content_type: str | None
) -> None:
    """What a client sends that forgot the header."""
    api.create_job()
    reply = api.patch({"status": {"conditions": [condition()]}}, content_type=content_type)

    assert (415, "UnsupportedMediaType") == (reply.status, reply.reason)


def test_a_charset_in_the_content_type_is_fine(api: Server) -> None:
    """Only the media type counts."""
    api.create_job()
    sort = "application/strategic-merge-patch+json; charset=utf-8"

    assert 200 == api.patch({"status": {"conditions": [condition()]}}, content_type=sort).status


# Strategic merge (1.2)


def test_the_first_condition(api: Server) -> None:
    """A Job without conditions gets a list."""
    before = api.create_job()
    assert [] == conditions(before)
    reply = api.patch_conditions(condition())

    assert 200 == reply.status
    assert [condition()] == conditions(reply.json)
    assert reply.json == api.job()
    assert int(version(reply.json)) > int(version(before))


def test_other_conditions_are_kept(api: Server) -> None:
    """One of another writer is neither changed nor dropped."""
    api.create_job()
    foreign = condition("Foreign", status="Unknown")
    api.patch_conditions(foreign)
    after = api.patch_conditions(condition()).json

    assert foreign in conditions(after)
    assert condition() in conditions(after)


def test_new_types_come_first_in_the_order_of_the_patch(api: Server) -> None:
    """Nobody may read conditions[0]."""
    api.create_job()
    api.patch_conditions(condition("A"))
    after = api.patch_conditions(condition("B"), condition("C")).json

    assert ["B", "C", "A"] == types(after)


def test_an_existing_condition_keeps_its_place(api: Server) -> None:
    """It is changed where it stands."""
    api.create_job()
    api.patch_conditions(condition("A"), condition("B"), condition("C"))
    after = api.patch_conditions(condition("B", status="False")).json

    assert ["A", "B", "C"] == types(after)
    assert condition("B", status="False") == conditions(after)[1]


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        (["N", "B"], ["N", "A", "B", "C"]),
        (["B", "N"], ["A", "B", "N", "C"]),
        (["C", "A"], ["B", "C", "A"]),
        (["C", "N", "A"], ["B", "C", "N", "A"]),
        (["N", "C", "M"], ["N", "A", "B", "C", "M"]),
    ],
    ids="".join,
)
def test_the_order_when_new_and_old_types_come_together(
    api: Server, patch: list[str], expected: list[str]
) -> None:
    """The patch's order holds; what it leaves out keeps its place before what followed it."""
    api.create_job()
    api.patch_conditions(condition("A"), condition("B"), condition("C"))
    after = api.patch_conditions(*(condition(kind, status="False") for kind in patch)).json

    assert expected == types(after)


def test_fields_left_out_survive(api: Server) -> None:
    """An old message stays."""
    api.create_job()
    api.patch_conditions(condition())
    after = api.patch_conditions({"type": "Available", "status": "False"}).json

    assert [condition(status="False")] == conditions(after)


def test_null_deletes_a_field(api: Server) -> None:
    """Texts go; times are shown as null."""
    api.create_job()
    api.patch_conditions(condition())
    after = api.patch_conditions(
        {"type": "Available", "reason": None, "message": None, "lastProbeTime": None}
    ).json

    left = condition(lastProbeTime=None)
    del left["reason"], left["message"]
    assert [left] == conditions(after)


def test_null_deletes_the_list(api: Server) -> None:
    """All conditions are gone."""
    api.create_job()
    api.patch_conditions(condition())
    after = api.patch({"status": {"conditions": None}}).json

    assert "conditions" not in after["status"]


def test_a_directive_deletes_one_condition(api: Server) -> None:
    """The others stay."""
    api.create_job()
    api.patch_conditions(condition("A"), condition("B"))
    after = api.patch_conditions({"type": "A", "$patch": "delete"}).json

    assert ["B"] == types(after)


def test_a_condition_without_type_is_a_server_error(api: Server) -> None:
    """500, though the request is what is wrong, where there is a list to merge with."""
    api.create_job()
    api.patch_conditions(condition())
    reply = api.patch_conditions({"status": "True"})

    assert 500 == reply.status
    assert "does not contain declared merge key: type" in reply.message


def test_a_first_condition_without_type(api: Server) -> None:
    """It is stored with an empty type: there was no list to merge with."""
    api.create_job()
    reply = api.patch_conditions({"status": "True"})

    assert 200 == reply.status
    assert [""] == types(reply.json)


def test_a_condition_with_only_a_type(api: Server) -> None:
    """An empty status is stored, times are null, texts are absent."""
    api.create_job()
    after = api.patch_conditions({"type": "Bare"}).json

    bare = {"type": "Bare", "status": "", "lastProbeTime": None, "lastTransitionTime": None}
    assert [bare] == conditions(after)


def test_an_identical_patch_is_no_write(api: Server) -> None:
    """The resourceVersion stays, whoever sends it."""
    api.create_job()
    body = {"metadata": {"annotations": {"a": "b"}}, "status": {"conditions": [condition()]}}
    first = api.patch(body).json
    second = api.patch(body, query="fieldManager=another").json

    assert version(first) == version(second) == version(api.job())


def test_a_changed_probe_time_alone_is_a_write(api: Server) -> None:
    """Times have to be kept stable."""
    api.create_job()
    first = api.patch_conditions(condition()).json
    second = api.patch_conditions(condition(lastProbeTime=LATER)).json

    assert version(first) != version(second)
    assert LATER == conditions(second)[0]["lastProbeTime"]
    assert THEN == conditions(second)[0]["lastTransitionTime"]


# Guards and what else is stored (1.4, 1.5)


def test_the_right_uid_and_version_pass(api: Server) -> None:
    """The request the reporter sends."""
    meta = api.create_job()["metadata"]
    guard = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    reply = api.patch({"metadata": guard, "status": {"conditions": [condition()]}})

    assert 200 == reply.status


def test_another_uid_is_invalid(api: Server) -> None:
    """422 with a cause on metadata.uid: it is another Job of that name."""
    api.create_job()
    body = {"metadata": {"uid": "other"}, "status": {"conditions": [condition()]}}
    reply = api.patch(body)

    assert (422, "Invalid") == (reply.status, reply.reason)
    assert {"metadata.uid"} == {cause["field"] for cause in reply.json["details"]["causes"]}
    assert "field is immutable" in reply.message
    assert [] == conditions(api.job())


def test_a_stale_version_is_a_conflict(api: Server) -> None:
    """409, and the write in between is kept."""
    stale = version(api.create_job())
    api.patch_conditions(condition("Foreign"))
    body = {"metadata": {"resourceVersion": stale}, "status": {"conditions": [condition()]}}
    reply = api.patch(body)

    assert (409, "Conflict") == (reply.status, reply.reason)
    assert JOB == reply.json["details"]["name"]
    assert ["Foreign"] == types(api.job())


def test_a_stale_version_also_refuses_a_patch_that_would_change_nothing(api: Server) -> None:
    """Compare-and-swap compares first."""
    stale = version(api.create_job())
    api.patch_conditions(condition())
    body = {"metadata": {"resourceVersion": stale}, "status": {"conditions": [condition()]}}

    assert 409 == api.patch(body).status


def test_a_stale_version_comes_before_another_uid(api: Server) -> None:
    """A Job that was made anew is seen as a conflict first, when both guards fail."""
    stale = version(api.create_job())
    api.patch_conditions(condition())
    body = {"metadata": {"resourceVersion": stale, "uid": "other"}}

    assert 409 == api.patch(body).status


def test_a_malformed_version_is_a_server_error(api: Server) -> None:
    """500 and not 400."""
    api.create_job()

    assert 500 == api.patch({"metadata": {"resourceVersion": "abc"}}).status


def test_another_name_in_the_body_is_refused(api: Server) -> None:
    """400: the name of the object does not match the URL."""
    api.create_job()

    assert 400 == api.patch({"metadata": {"name": "other"}}).status


def test_annotations_come_with_the_condition(api: Server) -> None:
    """Stored in one write; null deletes one, others stay."""
    api.create_job()
    body = {"metadata": {"annotations": {"a": "1", "b": "2"}}}
    first = api.patch(body | {"status": {"conditions": [condition()]}}).json
    second = api.patch({"metadata": {"annotations": {"a": None}}}).json

    annotations = first["metadata"]["annotations"]
    assert ("1", "2") == (annotations["a"], annotations["b"])
    assert [condition()] == conditions(first)
    assert "a" not in second["metadata"]["annotations"]
    assert "2" == second["metadata"]["annotations"]["b"]


def test_labels_are_stored_and_spec_is_not(api: Server) -> None:
    """The status path takes metadata along and ignores the spec."""
    before = api.create_job()
    after = api.patch({"metadata": {"labels": {"x": "y"}}, "spec": {"suspend": True}}).json

    assert "y" == after["metadata"]["labels"]["x"]
    assert before["spec"] == after["spec"]


# Validation (1.5)


@pytest.mark.parametrize(
    "patch",
    [
        {"typo": 1},
        {"metadata": {"typo": "x"}},
        {"status": {"typo": 1}},
        {"status": {"conditions": [condition(typo="x")]}},
        {"status": {"conditions": [condition(observedGeneration=1)]}},
    ],
    ids=lambda patch: json.dumps(patch)[:40],
)
def test_an_unknown_field(api: Server, patch: dict[str, Any]) -> None:
    """Strict refuses and repeats the patch, Warn is the default and says so, Ignore is silent."""
    api.create_job()
    strict = api.patch(patch)
    warned = api.patch(patch, query="fieldManager=test")
    ignored = api.patch(patch, query="fieldValidation=Ignore")

    assert (422, "Invalid") == (strict.status, strict.reason)
    assert "strict decoding error: unknown field" in strict.message
    assert 200 == warned.status
    assert "unknown field" in warned.headers["Warning"]
    assert (200, None) == (ignored.status, ignored.headers.get("Warning"))


def test_a_duplicate_field(api: Server) -> None:
    """Strict refuses it."""
    api.create_job()
    body = b'{"status": {"conditions": [{"type": "A", "status": "True", "status": "False"}]}}'
    reply = api.patch(body)

    assert 422 == reply.status
    assert "strict decoding error" in reply.message


def test_a_refused_patch_is_repeated_in_the_message(api: Server) -> None:
    """All of it: a log has to cut it."""
    api.create_job()
    reply = api.patch_conditions(condition(typo="x", message="y" * 5000))

    assert "y" * 5000 in reply.message


@pytest.mark.parametrize(
    "wrong",
    [{"status": True}, {"reason": 5}, {"message": ["x"]}, {"lastProbeTime": 7}],
    ids=str,
)
def test_a_field_of_another_type(api: Server, wrong: dict[str, Any]) -> None:
    """422."""
    api.create_job()

    assert 422 == api.patch_conditions(condition(**wrong)).status


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"",
        b"\xef\xbb\xbf{}",
        b'{"status": {"active": NaN}}',
        b'{"metadata": {"annotations": {"a": "\n"}}}',
        b"{} {}",
    ],
    ids=repr,
)
def test_what_is_no_json_is_a_bad_request(api: Server, body: bytes) -> None:
    """400: cut off, empty, with a byte order mark, NaN, a raw control character, two values."""
    api.create_job()
    reply = api.patch(body)

    assert (400, "BadRequest") == (reply.status, reply.reason)


def test_a_body_over_three_mebibytes(api: Server) -> None:
    """413."""
    api.create_job()
    reply = api.patch_conditions(condition(message="x" * (3 * 1024 * 1024 + 1)))

    assert (413, "RequestEntityTooLarge") == (reply.status, reply.reason)


def test_an_object_too_large_for_the_store(api: Server) -> None:
    """A message of 1.2 MB is stored, 1.6 MB is a server error."""
    api.create_job()

    assert 200 == api.patch_conditions(condition(message="x" * 1_200_000)).status
    reply = api.patch_conditions(condition(message="x" * 1_600_000))
    assert 500 == reply.status
    assert "request is too large" in reply.message


# What is not checked (1.6)


@pytest.mark.parametrize(
    "odd",
    [
        {"status": "Maybe"},
        {"status": ""},
        {"reason": "with spaces"},
        {"reason": "r" * 5000},
        {"message": "m" * 40_000},
        {"message": "\x00\x1b\x07\u202e"},
        {"type": "with spaces"},
        {"type": ""},
        {"type": "suspended"},
        {"lastTransitionTime": "2099-01-01T00:00:00Z"},
    ],
    ids=lambda odd: repr(odd)[:40],
)
def test_odd_values_are_stored_as_they_are(api: Server, odd: dict[str, Any]) -> None:
    """The server does not know what a condition should look like."""
    api.create_job()
    reply = api.patch_conditions(condition() | odd)

    assert 200 == reply.status
    assert [condition() | odd] == conditions(reply.json)


@pytest.mark.parametrize("field", ["reason", "message"])
def test_an_empty_text_is_not_shown(api: Server, field: str) -> None:
    """The field is absent afterwards."""
    api.create_job()
    after = api.patch_conditions(condition(**{field: ""})).json

    assert field not in conditions(after)[0]


@pytest.mark.parametrize(
    ("raw", "stored"),
    [(rb"\ud800", "\ufffd"), (b"\xff", "\ufffd"), (rb"\ud83d\ude00", "\U0001f600")],
    ids=["lone surrogate", "invalid UTF-8", "pair"],
)
def test_text_that_cannot_be_stored(api: Server, raw: bytes, stored: str) -> None:
    """It becomes the replacement character."""
    api.create_job()
    body = b'{"status": {"conditions": [{"type": "A", "message": "' + raw + b'"}]}}'
    after = api.patch(body).json

    assert stored == conditions(after)[0]["message"]


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00.987654Z", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00+00:00", "2030-01-01T12:00:00Z"),
        ("2030-01-01T12:00:00+02:00", "2030-01-01T10:00:00Z"),
        (None, None),
    ],
)
def test_times_are_stored_in_utc_and_whole_seconds(
    api: Server, sent: str | None, stored: str | None
) -> None:
    """Any RFC 3339 time with an offset is fine."""
    api.create_job()
    after = api.patch_conditions(condition(lastTransitionTime=sent)).json

    assert stored == conditions(after)[0]["lastTransitionTime"]


@pytest.mark.parametrize(
    "sent",
    [
        "2030-01-01T12:00:00",
        "2030-01-01",
        "2030-01-01 12:00:00Z",
        "2030-01-01T12:00:00+0000",
        "2030-01-01T12:00:00z",
        "2030-13-01T12:00:00Z",
        "",
        "now",
    ],
)
def test_other_times_are_refused(api: Server, sent: str) -> None:
    """422."""
    api.create_job()

    assert 422 == api.patch_conditions(condition(lastTransitionTime=sent)).status


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_a_job_cannot_be_ended_by_hand(api: Server, kind: str) -> None:
    """422: these follow from their target conditions."""
    api.create_job()

    assert 422 == api.patch_conditions(condition(kind)).status


@pytest.mark.parametrize("kind", ["FailureTarget", "SuccessCriteriaMet", "Suspended"])
def test_a_job_can_be_driven_by_reserved_types(api: Server, kind: str) -> None:
    """200: why a reporter has to refuse them itself."""
    api.create_job()

    assert 200 == api.patch_conditions(condition(kind)).status


@pytest.mark.parametrize("kind", ["FailureTarget", "SuccessCriteriaMet"])
def test_a_true_target_condition_cannot_be_turned_off(api: Server, kind: str) -> None:
    """422, changed or deleted."""
    api.create_job()
    api.patch_conditions(condition(kind))

    assert 422 == api.patch_conditions(condition(kind, status="False")).status
    assert 422 == api.patch_conditions({"type": kind, "$patch": "delete"}).status


@pytest.mark.parametrize(
    "kind", ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet", "Suspended"]
)
def test_reserved_types_may_be_false(api: Server, kind: str) -> None:
    """200 on a running Job."""
    api.create_job()

    assert 200 == api.patch_conditions(condition(kind, status="False")).status


# Rights (1.5, 1.7)

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


# Watching (2.1)


@pytest.mark.parametrize("query", ["", "resourceVersion=0"])
def test_a_watch_starts_with_the_present_state(api: Server, query: str) -> None:
    """ADDED with the whole Pod, then every change."""
    made = api.create_pod()
    watch = api.watch_pod(f"timeoutSeconds=10&{query}")
    kind, pod = watch.event()
    api.touch_pod("first")
    changed, after = watch.event()

    assert ("ADDED", made["metadata"]["uid"]) == (kind, pod["metadata"]["uid"])
    assert ("MODIFIED", "first") == (changed, after["status"]["message"])
    assert pod["kind"] == "Pod"


def test_a_watch_from_the_pods_own_version_waits_for_a_change(api: Server) -> None:
    """Nothing of what was before."""
    made = api.create_pod()
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={version(made)}")
    api.touch_pod("first")

    kind, pod = watch.event()
    assert ("MODIFIED", "first") == (kind, pod["status"]["message"])


def test_a_watch_from_an_earlier_version_catches_up(api: Server) -> None:
    """What happened in between comes first."""
    made = api.create_pod()
    api.touch_pod("first")
    api.touch_pod("second")
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={version(made)}")

    assert ["first", "second"] == [watch.event()[1]["status"]["message"] for _ in range(2)]


def test_the_servers_timeout_ends_the_stream_cleanly(api: Server) -> None:
    """After that many seconds, and the connection can be used again."""
    api.create_pod()
    started = time.monotonic()
    watch = api.watch_pod("timeoutSeconds=1")
    assert ["ADDED"] == [kind for kind, _ in watch.rest()]
    assert 0.9 < time.monotonic() - started < 5

    watch.connection.request(
        "GET", f"{api.pods}/{POD}", headers={"Authorization": f"Bearer {api.admin}"}
    )
    assert 200 == watch.connection.getresponse().status


def test_the_first_bookmark_says_that_the_start_is_over(api: Server) -> None:
    """It comes at once after the initial events, where bookmarks are allowed."""
    made = api.create_pod()
    watch = api.watch_pod("timeoutSeconds=2&allowWatchBookmarks=true")
    events = list(watch.rest())

    # A busy server may send another one before the end.
    assert ["ADDED", "BOOKMARK"] == [kind for kind, _ in events[:2]]
    assert {"BOOKMARK"} == {kind for kind, _ in events[1:]}
    bookmark = events[1][1]
    assert "true" == bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"]
    assert int(version(bookmark)) >= int(version(made))
    assert "Pod" == bookmark["kind"]
    assert "name" not in bookmark["metadata"]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_quiet_watch_hears_bookmarks(api: Server) -> None:
    """Every minute while any Pod of the cluster changes; where none does, some stay away."""
    api.create_pod()
    watch = api.watch_pod("timeoutSeconds=150&allowWatchBookmarks=true")
    assert watch.connection.sock is not None
    watch.connection.sock.settimeout(200)
    events = [kind for kind, _ in watch.rest()]

    assert ["ADDED", "BOOKMARK", "BOOKMARK"] == events[:3]
    assert {"BOOKMARK"} == set(events[1:])


def test_asking_for_initial_events_needs_a_version_match(api: Server) -> None:
    """422 without it."""
    reply = api.watch_pod("timeoutSeconds=1&sendInitialEvents=true").reply()

    assert (422, "Invalid") == (reply.status, reply.reason)


def test_a_version_that_is_too_old(api: Server) -> None:
    """200, an ERROR event of code 410, and the end."""
    made = api.create_pod()
    api.touch_pod("later")
    api.forget_versions()
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={version(made)}")
    assert 200 == watch.status
    ((kind, error),) = watch.rest()

    assert ("ERROR", "Status", 410, "Expired") == (
        kind,
        error["kind"],
        error["code"],
        error["reason"],
    )
    assert "too old resource version" in error["message"]


def test_a_version_from_the_future_is_silence(api: Server) -> None:
    """200 and nothing."""
    made = api.create_pod()
    future = int(version(made)) + 1_000_000
    watch = api.watch_pod(f"timeoutSeconds=10&resourceVersion={future}")

    assert 200 == watch.status
    assert watch.is_silent()


def test_a_pod_that_does_not_exist_is_silence(api: Server) -> None:
    """A watch opened after the deletion never says so."""
    watch = api.watch_pod("timeoutSeconds=10")

    assert 200 == watch.status
    assert watch.is_silent()


def test_deletion_is_an_event_with_the_last_state_and_no_end(api: Server) -> None:
    """The stream stays open until its timeout."""
    api.create_pod()
    api.touch_pod("last")
    watch = api.watch_pod("timeoutSeconds=10")
    assert "ADDED" == watch.event()[0]
    api.delete_pod()
    (marked, _), (kind, pod) = watch.event(), watch.event()

    assert ("MODIFIED", "DELETED") == (marked, kind)
    assert "last" == pod["status"]["message"]
    assert 0 == pod["metadata"]["deletionGracePeriodSeconds"]
    assert "deletionTimestamp" in pod["metadata"]
    assert watch.is_silent()


def test_other_pods_do_not_show_in_a_watch_by_name(api: Server) -> None:
    """The field selector holds for the initial events and for changes."""
    api.create_pod()
    watch = api.watch("timeoutSeconds=10&fieldSelector=metadata.name=none")
    api.touch_pod("first")

    assert watch.is_silent()


def test_watch_on_the_path_of_one_pod_is_a_plain_get(api: Server) -> None:
    """No stream."""
    api.create_pod()
    reply = api.call("GET", f"{api.pods}/{POD}?watch=true")

    assert (200, "Pod") == (reply.status, reply.json["kind"])


def test_a_list_by_name_has_one_pod(api: Server) -> None:
    """The field selector works there, too."""
    api.create_pod()
    reply = api.call("GET", f"{api.pods}?fieldSelector=metadata.name={POD}")

    assert "PodList" == reply.json["kind"]
    assert [POD] == [pod["metadata"]["name"] for pod in reply.json["items"]]
