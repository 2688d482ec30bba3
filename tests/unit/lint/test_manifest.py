"""Manifests: objects, the lines of their parts, and what cannot be read."""

import json

import pytest

from reporter.lint.manifest import MAX_BYTES, read_manifests

HEAD = "kind: Job\napiVersion: v1\n"
HEADED = '"kind": "Job", "apiVersion": "v1"'
JOB = """\
# a comment
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  template:
    spec:
      containers:
        - name: one
        - name: two
          image: x
"""


def lines(text, *places):
    (found,), mistakes = read_manifests(text.encode())
    assert [] == mistakes
    return [found.line(place) for place in places]


def test_lines_of_places():
    """A key counts from its name; what is not there is where it would be."""
    containers = ("spec", "template", "spec", "containers")

    assert [2, 5, 8, 10, 11, 10, 2] == lines(
        JOB,
        (),
        ("spec",),
        containers,
        (*containers, 1),
        (*containers, 1, "image"),
        (*containers, 1, "env"),
        ("status", "x"),
    )


def test_objects_of_a_list_count_in_its_document():
    """Fields are told from the object on."""
    text = f"kind: List\napiVersion: v1\nitems:\n- kind: Job\n  apiVersion: batch/v1\n---\n{JOB}"
    (first, second), mistakes = read_manifests(text.encode())

    assert [] == mistakes
    assert (4, "kind") == (first.line(first.place), first.field((*first.place, "kind")))
    assert 8 == second.line(())


def test_json_and_a_byte_order_mark():
    """JSON is YAML too."""
    (found,), mistakes = read_manifests(b'\xef\xbb\xbf{\n"kind": "Job",\n"apiVersion": "v1"}')

    assert [] == mistakes
    assert ("Job", 3) == (found.value["kind"], found.line(("apiVersion",)))


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("image: b\t# c", id="before a comment"),
        pytest.param("image:\tb", id="before the value"),
        pytest.param("image: b\t", id="at the end"),
        pytest.param("image: b\n \t", id="in a line of blanks"),
    ],
)
def test_a_tab_between_words(line):
    """Only indentation must be of spaces."""
    (found,), mistakes = read_manifests(f"{HEAD}{line}\n".encode())

    assert ([], "b") == (mistakes, found.value["image"])


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_with_escaped_characters(indent):
    """Beyond 16 bits JSON writes one character as two halves, which YAML does not know."""
    said = 'ok \U0001f600 \\ud83d\\ude00 "'
    value = {"kind": "Job", "apiVersion": "v1", "a": [said, "\ud83d"]}
    (found,), mistakes = read_manifests(json.dumps(value, indent=indent).encode())

    assert ([], value["a"]) == (mistakes, found.value["a"])


MERGED = """\
base: &base {image: x, env: [1, 2]}
other: &other {image: y, name: z}
kind: Job
apiVersion: v1
one:
  env: [3]
  <<: *base
two:
  <<: [*base, *other]
"""


def test_merge_keys():
    """Its own members win, then the earlier of those merged."""
    (found,), mistakes = read_manifests(MERGED.encode())

    assert [] == mistakes
    assert {"env": [3], "image": "x"} == found.value["one"]
    assert {"image": "x", "env": [1, 2], "name": "z"} == found.value["two"]
    assert [6, 1] == [found.line(("one", "env", 0)), found.line(("one", "image"))]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("# nothing\n---\n---\n", id="empty documents"),
        pytest.param("- 1\n", id="a list"),
        pytest.param("kind: 5\napiVersion: v1\n", id="a kind that is no text"),
        pytest.param("replicas: 1\nreplicas: 2\nx: !Ref y\n", id="values of something else"),
    ],
)
def test_what_is_no_object_is_left_out(text):
    """A directory may have files of any kind."""
    assert ([], []) == read_manifests(text.encode())


SKIPPED = """\
kind: List
apiVersion: v1
items:
- kind: Secret
  apiVersion: v1
  data: {key: !!binary aGk=}
- kind: Job
  apiVersion: batch/v1
  spec: {}
  spec: {}
---
kind: ConfigMap
apiVersion: v1
data: {a: x, a: y}
"""


def test_mistakes_of_objects_that_nobody_looks_at():
    """Left out, as the objects are; those of their neighbours are not."""
    found, mistakes = read_manifests(SKIPPED.encode())

    assert ["Secret", "Job", "ConfigMap"] == [each.value["kind"] for each in found]
    assert [(10, "items[1].spec")] == [(each.line, each.field) for each in mistakes]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        pytest.param(f'{{"a": 1,\n{HEADED}}}\n{{"b": 1,\n{HEADED}}}\n', [1, 3], id="as jq writes"),
        pytest.param(f"{{{HEADED}}}\n{{{HEADED}}}\n", [1, 2], id="one on each line"),
        pytest.param(f"{{{HEADED}}} {{{HEADED}}}", [1, 1], id="on one line"),
    ],
)
def test_json_objects_one_after_another(text, numbers):
    """Each is a document of its own, as for kubectl."""
    found, mistakes = read_manifests(text.encode())

    assert [] == mistakes
    assert numbers == [each.line(()) for each in found]


def test_json_that_ends_too_early():
    """What stands before is read."""
    found, (mistake,) = read_manifests(f'{{{HEADED}}}\n{{"kind": '.encode())

    assert 1 == len(found)
    assert 2 <= mistake.line


HELM = " (is this a Helm template? Use the output of `helm template`)"
DEEP = "".join(f"k{at}: &a{at} {{<<: [*a{at - 1}, *a{at - 1}]}}\n" for at in range(1, 64))


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        pytest.param(f"{HEAD}a: 1\na: 2\n", "4: a: appears more than once", id="a key twice"),
        pytest.param(
            f"{HEAD}a:\n  <<: 5\n",
            "3: a: a merge key whose value is not a mapping",
            id="merged text",
        ),
        pytest.param(
            f"{HEAD}a: &a\n  <<: *a\n", "1: nested more than 100 levels deep", id="merged in itself"
        ),
        pytest.param(
            f"{HEAD}a: {{{{ .Values.x }}}} y\n",
            f"3: invalid YAML: while parsing a block mapping did not find expected key{HELM}",
            id="a Helm template",
        ),
        pytest.param(
            f"{HEAD}a: {{{{ .Values.x }}}}\n",
            f"3: a: a key that is not text{HELM}",
            id="a value of a Helm template",
        ),
        pytest.param(
            f"{HEAD}a: '{{{{x}}}}'\n---\n{HEAD}a: '\n",
            "8: invalid YAML: while scanning a quoted scalar found unexpected end of stream",
            id="braces in another document",
        ),
        pytest.param(
            f"{HEAD}a: 'b'\n\t\n",
            "4: invalid YAML: while scanning for the next token found character '\\t' that cannot "
            "start any token",
            id="a line with a tab alone, which kubectl refuses too",
        ),
        pytest.param(
            f"{HEAD}a: b\n\t\n",
            "4: invalid YAML: while scanning a plain scalar found a tab character that violates "
            "indentation",
            id="the same below a word",
        ),
        pytest.param(
            f"{HEAD}a: &x 1\nb: &x 2\n",
            "4: invalid YAML: found duplicate anchor 'x'",
            id="an anchor twice",
        ),
        pytest.param(
            f"{HEAD}a: é\nb: \x07",
            "4: invalid YAML: it has U+0007, which YAML forbids",
            id="control character",
        ),
        pytest.param(
            f"{HEAD}a:\n{'- ' * 50_000}",
            "1: nested more than 100 levels deep",
            id="too deep for the stack",
        ),
        pytest.param("a: \xff", "", id="text in another encoding"),
        pytest.param(f"{HEAD}a0: &a0 {{}}\n{DEEP}", "", id="merges of merges"),
        pytest.param(HEAD + "#" * MAX_BYTES, f"1: larger than {MAX_BYTES} bytes", id="too large"),
    ],
)
def test_what_cannot_be_read(text, mistake):
    """One mistake, with its line."""
    data = text.encode("latin-1" if "\xff" in text else "utf-8")
    _, (found,) = read_manifests(data)

    assert 1 <= found.line <= 100
    assert mistake in ("", f"{found.line}: {found}")
