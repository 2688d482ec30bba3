"""The objects of manifests, the lines of their parts, and which mistakes are told."""

import pytest

from reporter.lint.manifest import MAX_BYTES, read_manifests

HEAD = "kind: Job\napiVersion: v1\n"
HEADED = '"kind": "Job", "apiVersion": "v1"'


def test_objects_of_a_list_count_in_its_document():
    """Fields are told from the object on."""
    text = f"kind: List\napiVersion: v1\nitems:\n- kind: Job\n  apiVersion: batch/v1\n---\n{HEAD}"
    (first, second), mistakes = read_manifests(text.encode())

    assert [] == mistakes
    assert (4, "kind") == (first.line(first.place), first.field((*first.place, "kind")))
    assert (7, 8) == (second.line(()), second.line(("apiVersion",)))


def test_json_and_a_byte_order_mark():
    """JSON is YAML too."""
    (found,), mistakes = read_manifests(b'\xef\xbb\xbf{\n"kind": "Job",\n"apiVersion": "v1"}')

    assert [] == mistakes
    assert ("Job", 3) == (found.value["kind"], found.line(("apiVersion",)))


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
    "text",
    [
        pytest.param(f'{{{HEADED}}}\n{{"kind": ', id="JSON that ends too early"),
        pytest.param(f"{HEAD}---\na: [\n---\n{HEAD}", id="in the middle"),
    ],
)
def test_a_document_that_cannot_be_read(text):
    """The others are."""
    found, (mistake,) = read_manifests(text.encode())

    assert text.count("Job") == len(found)
    assert 2 <= mistake.line


HELM = " (is this a Helm template? Use the output of `helm template`)"


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
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
            f"{HEAD}a: '{{{{x}}}}'\na: 1\n", "4: a: appears more than once", id="in another line"
        ),
        pytest.param(
            f"# by\u2028\n{HEAD}a: 0\na: 1\n",
            "6: a: appears more than once",
            id="behind a line break that is none elsewhere",
        ),
        pytest.param("a: 1\nb: \xff", "2: not UTF-8", id="text in another encoding"),
        pytest.param(HEAD + "#" * MAX_BYTES, f"1: larger than {MAX_BYTES} bytes", id="too large"),
    ],
)
def test_what_is_said(text, mistake):
    """One mistake, with its line."""
    data = text.encode("latin-1" if "\xff" in text else "utf-8")
    _, (found,) = read_manifests(data)

    assert mistake == f"{found.line}: {found}"
