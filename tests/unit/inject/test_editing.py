"""Single changes of a text, and what cannot be changed in place."""

import pytest
import yaml

from reporter.inject import rendering
from reporter.inject.documents import UnreadableManifest, read, split
from reporter.inject.editing import Unplaced, edited
from reporter.inject.edits import Add, Put, Remove
from reporter.inject.files import joined
from reporter.inject.options import Wishes
from reporter.inject.stream import injected


@pytest.mark.parametrize(
    ("text", "edit", "expected"),
    [
        ("a: 1\n", Put(("b",), {"c": [1]}), "a: 1\nb:\n  c:\n  - 1\n"),
        ("a: 1 # x", Put(("b",), 2), "a: 1 # x\nb: 2"),
        ("a:\nb: 1\n", Put(("a",), [1]), "a: [1]\nb: 1\n"),
        ("a: ~\n", Put(("a",), 1), "a: 1\n"),
        ("a: {}\n", Put(("a", "b"), 1), 'a: {"b": 1}\n'),
        ("a: {b: 1}\n", Put(("a", "c"), "é"), 'a: {b: 1, "c": "é"}\n'),
        ("a:\n  # x\n  - b\n", Add(("a",), "c", first=True), "a:\n  - c\n  # x\n  - b\n"),
        ("a:\n- b\n# x\n", Add(("a",), "c"), "a:\n- b\n- c\n# x\n"),
        ("a: [b]\n", Add(("a",), "c", first=True), 'a: ["c", b]\n'),
        ("a: [ b ]\n", Add(("a",), "c", first=True), 'a: [ "c", b ]\n'),
        ("a: [ # x\n b]\n", Add(("a",), 1, first=True), "a: [1,  # x\n b]\n"),
        ("a: [b]\n", Remove(("a", 0)), "a: []\n"),
        ("a: [b, c]\n", Remove(("a", 0)), "a: [c]\n"),
        ("a: [b, c, d]\n", Remove(("a", 1)), "a: [b, d]\n"),
        ("a: {b: 1, c: 2}\n", Remove(("a", "b")), "a: {c: 2}\n"),
        ("a: 1\nb: 2\n", Remove(("a",)), "b: 2\n"),
        ("a: &x 1\nb: *x\n", Put(("c",), 2), "a: &x 1\nb: *x\nc: 2\n"),
    ],
)
def test_a_change(text, edit, expected):
    """Only its own characters; the value is what was meant."""
    assert expected == edited(read(text), [edit])


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("a: &x {b: 1}\nc: *x\n", Put(("a", "d"), 1)),
        ("x: &x\n  b: {}\na:\n  <<: *x\n", Put(("a", "b", "c"), 1)),
        ("a: 5\n", Put(("a",), 1)),
        ("? [a]\n: 1\nb: 2\n", Remove(("b", "c"))),
        ("- a: 1\n  b: 2\n", Remove((0, "a"))),
        ("a:\n- - b\n  - c\n", Remove(("a", 0, 0))),
        ("a:\n- b\n", Remove(("a", 0))),
        ("a: &x [1]\nb:\n- &y 1\n- *x\n", Add(("b",), 2)),
        ("a: 1\n", Add(("a",), 1)),
        ("a: 1\n", Put(("a", "b"), 1)),
        ("a:\n- - b\n", Add(("a", 0), 1, first=True)),
        ("", Put(("a",), 1)),
    ],
)
def test_what_cannot_be_changed_in_place(text, edit):
    """Refused, so that nothing is spoilt."""
    with pytest.raises(Unplaced):
        edited(read(text), [edit])


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a: 1\nb: [\n", 3, "invalid YAML"),
        ("a: &a [*a]\n", 1, "aliases that repeat too much"),
        ("[" * 200 + "]" * 200, 1, "nested more than 100 levels deep"),
        ("- " * 50_000, 1, "nested more than 100 levels deep"),
        ("a: \x00", 1, "invalid YAML"),
        (
            "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + "".join(
                f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n"
                for a, b in zip("abcde", "bcdef", strict=True)
            ),
            1,
            "aliases that repeat too much",
        ),
    ],
    ids=[
        "half a list",
        "itself",
        "deep",
        "too deep for the stack",
        "a byte that is no text",
        "a million by aliases",
    ],
)
def test_what_is_no_document(text, line, why):
    """With its line, and at once."""
    with pytest.raises(UnreadableManifest, match=why) as found:
        read(text)

    assert line <= found.value.line


def test_values_are_those_of_kubernetes_tools():
    """Dates and times are texts; a merge key gives what is not there already; tags are let be."""
    text = "a: 2026-01-01\nb: 22:22\nc: yes\nd: &d {x: 1, y: 2}\ne: {<<: *d, y: 3}\nf: !x g\n"
    many = "a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: [*a, *b, 5], z: 3}\n"

    assert {
        "a": "2026-01-01",
        "b": "22:22",
        "c": True,
        "d": {"x": 1, "y": 2},
        "e": {"x": 1, "y": 3},
        "f": "g",
    } == read(text).value
    assert {"x": 1, "y": 2, "z": 3} == read(many).value["c"]
    assert {"a": "", "b": "maybe"} == read("a: !!int ''\nb: !!bool maybe\n").value


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
def test_what_is_rendered_is_read_as_the_same(value, inset):
    """In blocks, whatever the texts hold."""
    assert value == yaml.safe_load("\n".join((*rendering.block(value, inset=inset), "")))


@pytest.mark.parametrize("last", ["volumes:", "initContainers: # none", "volumes: ~ # none"])
def test_a_key_without_a_value_at_the_end_gets_its_own(last):
    """As templates of charts leave it; what is added below must not come between."""
    text = (
        "# mine\napiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n"
        "    spec:\n      restartPolicy: Never\n      containers:\n      - name: main # why\n"
        f"        volumeMounts:\n      {last}\n"
    )

    made = injected(text, Wishes("i"), lambda labels: True)

    assert [] == [each for each in made.said if "rewritten" in each.what]
    assert made.text.startswith("# mine\n")
    assert "main # why" in made.text


def test_a_stream_is_cut_at_its_markers():
    """And nothing of it is lost."""
    stream = "%YAML 1.2\n---\na: |\n  ---\n...\n# x\n--- b\n----\n---"

    pieces = split(stream)

    assert ["%YAML 1.2\n", "---\na: |\n  ---\n...\n", "# x\n", "--- b\n----\n", "---"] == pieces
    assert [] == split("")


def test_files_become_one_stream():
    """With a marker between two, and a line break before it."""
    assert "a\n---\nb\n---\nc" == joined(["a", "b\n", "---\nc"])
    assert "" == joined(["", ""])
    assert "a\n---\nb" == joined(["a", "---\nb"])


def test_a_document_that_is_written_anew_keeps_what_stands_around_it():
    """Markers and the comments before it; its meaning."""
    job = (
        "# before\n--- # why\n&j\napiVersion: batch/v1\nkind: Job\nmetadata: {labels: &l {a: b}}\n"
        "spec: {template: {metadata: {labels: *l}, spec: "
        "{restartPolicy: Never, containers: [{name: m, image: i}]}}}\n...\n"
    )

    made = injected(job, Wishes("i"), lambda labels: True)

    assert made.text.startswith("# before\n---")
    assert made.text.endswith("\n...\n")
    assert ["the document"] == [each.shown for each in made.said if "rewritten" in each.what]
    assert {"a": "b"} == yaml.safe_load(made.text)["spec"]["template"]["metadata"]["labels"]


def test_rights_of_the_name_that_are_others():
    """Said, for the reporter could not write."""
    job = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: "
        "{restartPolicy: Never, containers: [{name: m, image: i}]}}}\n"
    )
    role = (
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
        "metadata: {name: status-reporter-default}\nrules: []\n"
    )

    made = injected(job + role, Wishes("i"), lambda labels: True, with_rights=True)

    assert ["Job", "Role", "RoleBinding"] == [
        each["kind"] for each in yaml.safe_load_all(made.text)
    ]
    what = "Role status-reporter-default is in the manifests, but not as the reporter needs it"
    assert what == made.said[-1].what
