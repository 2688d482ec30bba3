"""What is blanked, wherever it hides, and what is left as it is."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.collect.snapshot.redact import BLANK, redact, redact_text, secret_metadata

SECRET = "hunter2-PLANTED"
CONTAINER = {"name": "c", "env": [{"name": "A", "value": SECRET}, {"name": "B"}]}
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
LAUNCH = {"environment": {"plugin": {"A": SECRET}, "list": [f"A={SECRET}", "B"]}}
HIDDEN: list[Any] = [
    {"spec": {"containers": [CONTAINER], "initContainers": [CONTAINER]}},
    {"spec": {"template": {"spec": {"ephemeralContainers": [CONTAINER]}}}},
    {"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}}},
    {"data": {"spec": {"template": {"spec": {"containers": [CONTAINER]}}}}},
    {"spec": {"values": {"extraEnvVars": {"A": SECRET, "key": SECRET, "name": SECRET}}}},
    {"spec": {"env": [f"A={SECRET}"]}},
    {"spec": {"env": f"A={SECRET}"}},
    {"spec": {"env": json.dumps({"A": SECRET})}},
    {"spec": {"env": [{"A": SECRET}]}},
    {"metadata": {"annotations": {"kubernetes.io/change-cause": f"set env x A={SECRET}"}}},
    {"kind": "SecretList", "items": [{"data": {"a": SECRET}}, {"stringData": {"b": SECRET}}]},
    {"spec": {"components": [{"properties": {"env": [{"name": "A", "value": SECRET}]}}]}},
    {"spec": {"definitions": {"environment": {"A": SECRET}, "extraEnv": [f"A={SECRET}"]}}},
    {"spec": {"properties": {"env": {"type": SECRET}, "envs": {"items": SECRET}}}},
    {"spec": {"properties": {"env": {"a": {"type": SECRET}}}}},
    LAUNCH,
    {"data": {"launch.json": json.dumps(LAUNCH)}},
    {"data": {"launch.json": " \n" + json.dumps([LAUNCH])}},
    {"metadata": {"annotations": {APPLIED: SECRET}}},
    {"metadata": {"annotations": {"example.com/last-applied": SECRET}}},
    {"spec": {"template": {"metadata": {"annotations": {"kapp.k14s.io/original": SECRET}}}}},
    {"metadata": {"annotations": {"x": json.dumps({"a": json.dumps(CONTAINER)})}}},
    {"items": [{"kind": "Secret", "data": {"a": SECRET}, "stringData": {"b": SECRET}}]},
    {"kind": "Secret", "data": SECRET, "stringData": [SECRET]},
    {"items": [{"kind": "Secret", "data": {"a": {"b": [SECRET]}}}]},
    {"kind": "SecretList", "items": SECRET},
    {"kind": "SecretList", "items": {"a": {"data": SECRET}}},
    {"kind": "SecretList", "items": [SECRET]},
    {"data": {"a": "\ufeff" + json.dumps({"kind": "Secret", "data": {"a": SECRET}})}},
    {"data": {"a": "\n\ufeff \ufeff" + json.dumps({"env": {"A": SECRET}})}},
    {"spec": {"env": "\ufeff" + json.dumps({"A": SECRET})}},
    {"data": {"a": f'{{"kind":"Secret","data":{{"a":"{SECRET}"}},"data":{{}}}}'}},
    {"data": {"a": f'{{"kind":"Secret","kind":"ConfigMap","data":{{"a":"{SECRET}"}}}}'}},
    {"data": {"a": f'[{{"kind":"SecretList","items":["{SECRET}"],"kind":"Secret"}}]'}},
    {"data": {"a": f'{{"env":{{"A":"{SECRET}","A":"","B":null}}}}'}},
    {"data": {"a": f'{{"x":{{"value":"{SECRET}","value":null}}}}'}},
    {"data": {"a": f'{{"kind":"Secret","data":{{"a":"{SECRET}"'}},
    {"data": {"a": f'{{"kind" : "Secret","data":{{"a":"{SECRET}"}}}}\n{{}}'}},
    {"data": {"a": json.dumps([{"kind": "Secret", "data": {"a": SECRET}}, "x" * 2**20])}},
    {
        "data": {
            "a": json.dumps(
                [json.dumps([json.dumps([json.dumps({"kind": "Secret", "a": SECRET})])])]
            )
        }
    },
    {"spec": {"url": f"https://user:{SECRET}@host/path"}},
    {"spec": {"url": f"postgres://user:p/{SECRET}/@host"}},
    {"spec": {"args": [f"--url=redis://:{SECRET}@host:6379/0", "x"]}},
    {"spec": {"url": f"https://{SECRET}@host"}},
    {"data": {"config": f"a: b\nurl: 'amqp://u:{SECRET}@h'\nc: d"}},
    {"spec": {"url": f"https://host/o?X-Amz-Signature={SECRET}&x=1"}},
    {"spec": {"url": f"https://host/o?a=1&access_token={SECRET}#x"}},
]


@pytest.mark.parametrize("hidden", HIDDEN, ids=lambda hidden: json.dumps(hidden)[:60])
def test_a_secret_is_nowhere_left(hidden: Any) -> None:
    """And blanking again changes nothing more."""
    found = copy.deepcopy(hidden)
    blanked = redact(found)

    assert SECRET not in json.dumps(found)
    assert BLANK in json.dumps(found)
    assert blanked > 0
    settled = copy.deepcopy(found)
    redact(found)
    assert settled == found


KEPT: list[Any] = [
    {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
    {"env": {"A": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}}},
    {"env": [{"name": "A", "value": ""}, 7], "environment": {"A": None}},
    {"env": "production", "environment": "", "envs": [{"name": "A"}, {"A": {"b": "c"}}, {}]},
    {"kind": "SecretList", "items": [{"data": None, "stringData": ""}, {"data": {}}]},
    {"kind": "SecretList", "items": None},
    {"data": {"a": '{"kind": "ConfigMap", "x": 1', "b": '{"a": 1, "b": 1}', "c": "\ufeff{}"}},
    {"properties": {"env": {"description": "variables", "type": "array"}}},
    {"properties": {"env": {"type": "array", "items": {"type": "object", "default": [1]}}}},
    {"definitions": {"env": {"$ref": "#/definitions/x"}, "envs": {"properties": {"a": {}}}}},
    {"properties": {"env": {"anyOf": [{"type": "string"}]}, "envs": True}},
    {"properties": {"env": {"type": ["array", "null"]}, "x": {"enum": ["a"]}}},
    {"status": {"imageID": "docker-pullable://busybox@sha256:0123", "x": "a@b", "y": "a=b"}},
    {"url": "https://host:8443/path/@scope?page=2", "json": '{"a": 1}', "no": "{json"},
    {"kind": "Secret", "metadata": {"name": "s"}},
    {"a": ["", 1, None, True, 1.5]},
    "text",
]


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: json.dumps(kept)[:60])
def test_what_is_no_secret_stays(kept: Any) -> None:
    """References, schemas, digests of images, ports, and JSON without any secret."""
    found = copy.deepcopy(kept)

    assert (0, kept) == (redact(found), found)


def test_json_in_json_ends_somewhere() -> None:
    """Too deep, and too long to be looked into; what is in it is looked at as text all the same."""
    text = f"https://u:{SECRET}@host"
    for _ in range(6):
        text = json.dumps([text])
    large = {"data": {"a": json.dumps([f"https://u:{SECRET}@host", "x" * 2**20])}}
    redact(large)
    deep = {"data": {"a": text}}
    redact(deep)

    assert SECRET not in json.dumps(large)
    assert SECRET not in json.dumps(deep)


def test_a_secret_keeps_its_metadata_alone() -> None:
    """Whatever a server sends; annotations keep their names."""
    metadata = {"name": "s", "annotations": {APPLIED: SECRET}, "managedFields": [{}]}
    kept, blanked = secret_metadata({"metadata": metadata, "data": {"a": SECRET}})

    assert {"name": "s", "annotations": {APPLIED: BLANK}} == kept["metadata"]
    assert ({"apiVersion", "kind", "metadata"}, 1) == (set(kept), blanked)
    assert ({}, 0) == (secret_metadata({"metadata": 7})[0]["metadata"], 0)


def test_a_text_of_a_log() -> None:
    """All of its URLs are looked at."""
    line = f"GET https://a:{SECRET}@h/1 then https://b:{SECRET}@h/2?token={SECRET}"

    assert (
        f"GET https://{BLANK}@h/1 then https://{BLANK}@h/2?token={BLANK}",
        3,
    ) == redact_text(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["env", "kind", "data", "annotations", "value", "name", "x"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def test_names_that_are_urls() -> None:
    """As registries are in a configuration for them; no member is lost by it."""
    auths = {"https://u:p@a/": 1, "https://v:q@a/": {"x": 2}, "https://b/": 3, "c": 4}
    text = {"config.json": json.dumps({"auths": auths})}
    redact(text)

    blanked = "https://[redacted]@a/"
    assert {"auths": {blanked: 1, f"{blanked}*": {"x": 2}, "https://b/": 3, "c": 4}} == json.loads(
        text["config.json"]
    )


@given(JSON)
def test_any_value_is_blanked_once(value: Any) -> None:
    """It never raises, stays JSON, and is settled after the first time."""
    redact(value)
    settled = copy.deepcopy(value)
    redact(value)

    assert settled == value


@pytest.mark.parametrize("text", ["://" * 50_000, "a://b:c" * 40_000, "x://?token" * 30_000])
def test_a_hostile_text_costs_little(text: str) -> None:
    """It has no credential, and looking for one takes no time worth speaking of."""
    assert redact_text(text + "@=")[0]
