"""YAML as the Kubernetes tools read it, and streams that are cut into documents."""

import json

import pytest

from reporter.common.kubernetes_yaml import Document, split

MOST = 100_000
BOMB = "a: &a [1,1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcde", "bcdef", strict=True)
)
MERGES = "k0: &a0 {}\n" + "".join(
    f"k{at}: &a{at} {{<<: [*a{at - 1}, *a{at - 1}]}}\n" for at in range(1, 64)
)
_KEYS = "".join(f"  k{at}: 1\n" for at in range(1_000))
AGAIN = f"a: &a\n{_KEYS}b:\n  <<: [{','.join(['*a'] * 1_000)}]\n"
DEEP = "nested more than 100 levels deep"


def said(text):
    return [f"{each.line}: {each}" for each in Document(text, MOST).mistakes]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2026-01-01", "2026-01-01"),
        ("22:22", "22:22"),
        ("yes", True),
        ("0644", 420),
        ("0o644", "0o644"),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("off", False),
        ("-0x1F", -31),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("b\t# a tab before a comment", "b"),
        ("\tb", "b"),
        ("b\n \t", "b"),
    ],
)
def test_a_value(written, value):
    found = Document(f"a: {written}\n", MOST)

    assert ({"a": value}, []) == (found.value, found.mistakes)


def test_lines_of_places():
    """A key counts from its name; what is not there is where it would be."""
    found = Document("# x\na:\n  b:\n    - c\n    - c: 1\n      d: x\n", MOST, before=10)
    places = [(), ("a",), ("a", "b"), ("a", "b", 1), ("a", "b", 1, "d"), ("a", "b", 1, "e"), ("f",)]

    assert [12, 12, 13, 15, 16, 15, 12] == [found.line(each) for each in places]


MERGED = """\
base: &base {image: x, env: [1, 2]}
other: &other {image: y, name: z}
one:
  env: [3]
  <<: *base
two:
  <<: [*base, *other]
"""


def test_merge_keys():
    """Its own members win, then the earlier of those merged."""
    found = Document(MERGED, MOST)

    assert [] == found.mistakes
    assert {"env": [3], "image": "x"} == found.value["one"]
    assert {"image": "x", "env": [1, 2], "name": "z"} == found.value["two"]
    assert [4, 1] == [found.line(("one", "env", 0)), found.line(("one", "image"))]


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_with_escaped_characters(indent):
    """Beyond 16 bits JSON writes one character as two halves; one alone is no character."""
    value = {"😀": 1, "a": ['ok \U0001f600 \\ud83d\\ude00 "', "\ud83d\ud83d"]}
    found = Document(json.dumps(value, indent=indent), MOST)

    assert (value | {"a": [value["a"][0], "\ufffd\ufffd"]}, []) == (found.value, found.mistakes)


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        ("a: !x g\n", "g", "the tag '!x' is not supported"),
        ("a: !!int ''\n", "", "not a valid value of its tag"),
        ("a: !!bool maybe\n", "maybe", "not a valid value of its tag"),
        ("a: 1\na: 2\n", 2, "appears more than once"),
        ("a:\n  <<: 5\n", {}, "a merge key whose value is not a mapping"),
        ("a: {{ .Values.x }}\n", {"": None}, "a key that is not text"),
    ],
)
def test_a_mistake_in_a_document(text, value, why):
    """The rest of it can be read."""
    found = Document(text, MOST)

    assert ({"a": value}, [f"a: {why}"]) == (found.value, [str(each) for each in found.mistakes])


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        pytest.param(
            "a: 1\nb: [\n",
            "3: invalid YAML: while parsing a flow node did not find expected node content",
            id="half a list",
        ),
        pytest.param(
            "a: 'b'\n\t\n",
            "2: invalid YAML: while scanning for the next token found character '\\t' that cannot "
            "start any token",
            id="a line with a tab alone, which kubectl refuses too",
        ),
        pytest.param(
            "a: b\n\t\n",
            "2: invalid YAML: while scanning a plain scalar found a tab character that violates "
            "indentation",
            id="the same below a word",
        ),
        pytest.param(
            "a: &x 1\nb: &x 2\n",
            "2: invalid YAML: found duplicate anchor 'x'",
            id="an anchor twice",
        ),
        pytest.param(
            "a: é\nb: \x07",
            "2: invalid YAML: it has U+0007, which YAML forbids",
            id="control character",
        ),
        pytest.param("a: &a [*a]\n", f"1: {DEEP}", id="itself"),
        pytest.param("a: &a\n  <<: *a\n", f"1: {DEEP}", id="merged in itself"),
        pytest.param("[" * 200 + "]" * 200, f"1: {DEEP}", id="deep"),
        pytest.param("- " * 50_000, f"1: {DEEP}", id="too deep for the stack"),
        pytest.param(BOMB, f"1: more than {MOST} values", id="a million by aliases"),
        pytest.param(AGAIN, f"1: more than {MOST} values", id="the same keys merged in again"),
        pytest.param(MERGES, f"1: more than {MOST} values", id="merges of merges"),
    ],
)
def test_what_cannot_be_read(text, mistake):
    """One mistake, with its line, and at once."""
    assert (None, [mistake]) == (Document(text, MOST).value, said(text))


@pytest.mark.parametrize(
    "pieces",
    [
        [],
        ["a: |\n  ---\n...\n", "# x\n", "--- b\n----\n", "---"],
        ["%YAML 1.1\n---\na: 1\n", "---\nb: 1\n...\n", "%TAG ! x\n--- c\n", "--- d"],
        ["# x\r\n \n%YAML 1.1\n---\n", "---\n...\n", "# y\n%TAG ! x\n--- c\n", "--- d"],
        ["# a licence\r\n" * 10_000, "---\r\na: 1\r\n"],
        ['{"a": "}{"}\n', "{}", "{\n}\n", "---\n{}"],
        ["{a: 1} {b: 2}"],
    ],
)
def test_a_stream_is_cut_into_its_documents(pieces):
    """At its markers, and between JSON objects; nothing of it is lost."""
    assert pieces == split("".join(pieces))
