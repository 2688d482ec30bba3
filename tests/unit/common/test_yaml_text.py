"""API objects as YAML: for any reader a string stays a string, in kubectl's style."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reporter.common.yaml_text import block, scalar, to_yaml

# Lone surrogates are no text; the product replaces them before anything is shown.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | TEXT
OBJECTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("AllDone", "AllDone"),
        ("3 of 3 steps done", "3 of 3 steps done"),
        ("True", '"True"'),
        ("no", '"no"'),
        ("2024-05-06T07:08:09Z", '"2024-05-06T07:08:09Z"'),
        ("12", '"12"'),
        ("0x1F", '"0x1F"'),
        ("1e3", '"1e3"'),
        ("12:30:45", '"12:30:45"'),
        (".inf", '".inf"'),
        ("", '""'),
        ("exited with code 1: Error", "'exited with code 1: Error'"),
        ('{"a":1}', "'{\"a\":1}'"),
        ("it's: so", "'it''s: so'"),
        ("# no comment", "'# no comment'"),
        ("a #b", "'a #b'"),
        ("- no list", "'- no list'"),
        ("*alias", "'*alias'"),
        ("---", '"---"'),
        ("ends with:", "'ends with:'"),
        ("two\nlines", '"two\\u000alines"'),
        ("Prüfung läuft", "Prüfung läuft"),
        (True, "true"),
        (None, "null"),
        (7, "7"),
        ({}, "{}"),
        ([], "[]"),
    ],
)
def test_a_scalar_is_quoted_only_where_a_reader_needs_it(value, expected):
    """Plain where that is safe, double quotes for what looks like another type, else single."""
    assert expected == scalar(value)
    assert value == yaml.safe_load(scalar(value))


def test_a_job_looks_as_kubectl_prints_it():
    """Sorted keys, lists at the indentation of their key, quoted times."""
    job = {
        "kind": "Job",
        "apiVersion": "batch/v1",
        "status": {
            "conditions": [
                {"type": "Available", "status": "True", "lastProbeTime": "2024-05-06T07:08:09Z"},
                {"type": "Other", "status": "False", "list": [["x"], []]},
            ]
        },
    }

    expected = """\
apiVersion: batch/v1
kind: Job
status:
  conditions:
  - lastProbeTime: "2024-05-06T07:08:09Z"
    status: "True"
    type: Available
  - list:
    - - x
    - []
    status: "False"
    type: Other
"""
    assert expected == to_yaml(job)
    assert job == yaml.safe_load(expected)


@given(OBJECTS)
def test_any_object_is_read_back_as_it_was(value):
    """Whatever stands in an object: a YAML reader finds the same."""
    assert value == yaml.safe_load(to_yaml(value))


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"b": [1, {"c": "x\ny\n"}, [2, [3]], "p\nq"], "d": {}, "e": []}},
        {"a": "x\n\ny", "b": " x\n", "c": "x \ny", "d": "x\n\n", "e": "\n", "f": "é\nü\n"},
        {"1": "1", "yes": "no", "a: b": "- c", "": None, "t": [True, None, 1.5]},
        [],
    ],
)
@pytest.mark.parametrize("inset", [False, True])
def test_what_is_written_as_people_do_is_read_as_the_same(value, inset):
    assert value == yaml.safe_load("\n".join((*block(value, inset=inset), "")))
