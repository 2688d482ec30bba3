"""The published schemas are valid, shipped, and say what the decoders do."""

import json

import pytest
from jsonschema import Draft202012Validator

from reporter.common import schema
from reporter.verdict.adapter_files import (
    PROGRESS_FIELDS,
    RESULT_FIELDS,
    decode_progress,
    decode_result,
)
from reporter.verdict.facts import Progress, ResultPayload

NAMES = ("result.v1", "progress.v1")


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_valid_draft_2020_12(name):
    """Against the metaschema, and with the identity they are published under."""
    Draft202012Validator.check_schema(schema.load(name))
    assert f"https://status-reporter.io/schemas/{name}.json" == schema.load(name)["$id"]


@pytest.mark.parametrize("name", NAMES)
def test_everything_in_a_schema_is_described(name):
    """The schema is the documentation an author's editor shows."""
    parts = [schema.load(name), *schema.load(name)["properties"].values()]
    assert [] == [part for part in parts if not part.get("description")]


def test_the_decoders_know_the_members_of_their_schemas():
    """No member is published that nobody reads, and none is read that is not published."""
    assert RESULT_FIELDS == tuple(schema.load("result.v1")["properties"])
    assert PROGRESS_FIELDS == tuple(schema.load("progress.v1")["properties"])


def test_the_published_examples_are_valid():
    """What we show to authors is accepted."""
    results = [decode_result(json.dumps(e).encode()) for e in schema.load("result.v1")["examples"]]
    assert [
        ResultPayload(True, "ValidationPassed", "All 12 checks passed"),
        ResultPayload(False, "MissingPermissions", "2 of 12 checks failed"),
    ] == results
    (progress,) = schema.load("progress.v1")["examples"]
    expected = Progress("checking quotas", 12, 5, ("dns",), ())
    assert expected == decode_progress(json.dumps(progress).encode())


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_of_a_schema_has_its_words(name):
    """A rule or type without a text of ours would end in a crash instead of a cause."""
    loaded = schema.load(name)
    parts = list(loaded["properties"].values())
    parts += [part["items"] for part in parts if "items" in part]
    told = {"description", "examples", "items"}
    assert {"required"} >= loaded.keys() - {"$schema", "$id", "title", "type", "properties", *told}
    for part in parts:
        for rule in part.keys() - told:
            assert "must be" in schema.TEXTS[rule](part[rule])
