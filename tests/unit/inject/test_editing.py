"""Single changes of a text, and what cannot be changed in place."""

import pytest
import yaml

from reporter.inject.container import Wishes
from reporter.inject.editing import Unplaced, edited, read
from reporter.inject.files import joined
from reporter.inject.stream import injected, uninjected


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("a: 1\n", {"a": 1, "b": {"c": [1]}}, "a: 1\nb:\n  c:\n  - 1\n"),
        ("a: 1 # x", {"a": 1, "b": 2}, "a: 1 # x\nb: 2"),
        ("a:\nb: 1\n", {"a": [1], "b": 1}, "a: [1]\nb: 1\n"),
        ("a: ~\n", {"a": 1}, "a: 1\n"),
        ("a: {}\n", {"a": {"b": 1, "c": 2}}, 'a: {"b": 1, "c": 2}\n'),
        ("a: {b: 1}\n", {"a": {"b": 1, "c": "é"}}, 'a: {b: 1, "c": "é"}\n'),
        ("a:\n  # x\n  - b\n", {"a": ["c", "b"]}, "a:\n  - c\n  # x\n  - b\n"),
        ("a:\n- b\n# x\n", {"a": ["b", "c", "d"]}, "a:\n- b\n- c\n- d\n# x\n"),
        ("a: [b]\n", {"a": ["c", "b"]}, 'a: ["c", b]\n'),
        ("a: [ b ]\n", {"a": ["c", "b", "d"]}, 'a: [ "c", b, "d" ]\n'),
        ("a: [ # x\n b]\n", {"a": [1, "b"]}, "a: [1,  # x\n b]\n"),
        (
            '{\n  "a": {\n    "b": 1\n  }\n}\n',
            {"a": {"b": 1, "c": {"d": 2}}},
            '{\n  "a": {\n    "b": 1,\n    "c": {\n      "d": 2\n    }\n  }\n}\n',
        ),
        ("a: [b]\n", {"a": []}, "a: []\n"),
        ("a: [b, c]\n", {"a": ["c"]}, "a: [c]\n"),
        ("a: [b, c, d]\n", {"a": ["b", "d"]}, "a: [b, d]\n"),
        ("a: {b: 1, c: 2}\n", {"a": {"c": 2}}, "a: {c: 2}\n"),
        ("a: 1\nb: 2\n", {"b": 2}, "b: 2\n"),
        ("a: &x 1\nb: *x\n", {"a": 1, "b": 1, "c": 2}, "a: &x 1\nb: *x\nc: 2\n"),
        ("a: 1\na: {b: 1}\n", {"a": {"b": 1, "c": 1}}, 'a: 1\na: {b: 1, "c": 1}\n'),
        (
            "a:\n  - b:\n      c: 1\n",
            {"a": [{"b": {"c": 1, "d": [1]}}]},
            "a:\n  - b:\n      c: 1\n      d:\n        - 1\n",
        ),
    ],
)
def test_a_change(text, value, expected):
    """Only its own characters; new lists stand as those around them."""
    assert expected == edited(read(text), value).text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1, "d": 1}, "c": {"b": 1}}),
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1, "d": 1}, "c": {"b": 1, "d": 1}}),
        ("x: &x\n  b: {}\na:\n  <<: *x\n", {"x": {"b": {}}, "a": {"b": {"c": 1}}}),
        ("x: &x\n  b: {}\na:\n  <<: *x\n", {"x": {"b": {}}, "a": {}}),
        ("a: &x 1\nb: # y\n  *x\n", {"a": 1, "b": 1, "c": 2}),
        ("a: 5\n", {"a": 1}),
        ("- a: 1\n  b: 2\n", [{"b": 2}]),
        ("a:\n- - b\n  - c\n", {"a": [["c"]]}),
        ("a: &x [1]\nb:\n- &y 1\n- *x\n", {"a": [1], "b": [1, [1], 2]}),
        ("a: 1\n", {"a": [1]}),
        ("a: 1\n", {"a": {"b": 1}}),
        ("a:\n- - b\n", {"a": [[1, "b"]]}),
        ("- name: x\n- name: y\n", [{"name": "w"}, {"name": "x"}, {"name": "y"}]),
        ("a: [b, c]\n", {"a": ["b", "x", "c"]}),
        ("a: [b, c]\n", {"a": ["x"]}),
        ("", {"a": 1}),
    ],
)
def test_what_cannot_be_changed_in_place(text, value):
    """Refused, so that nothing is spoilt."""
    with pytest.raises(Unplaced):
        edited(read(text), value)


JOB = """\
# before
apiVersion: batch/v1
kind: Job
metadata:
  name: j # its name
  # the end of metadata

# about the spec
spec:
  template:
    spec:
      restartPolicy: Never
      # first this
      initContainers:
        # why
        - name: init
          image: i
          command: ["sh", "-c",
                    "exit 0"]  # what
      containers:
        - name: main # why
          image: i
          # the end of main
      # then these
      volumes:
        - name: v
          emptyDir: {}

        # - name: disabled

  # the end of spec
---
# the next
kind: Other
"""


def test_comments_stay_beside_what_they_are_about():
    """What is added comes before the comments that follow, and before those of the first item."""
    once = injected(JOB, Wishes("i"), lambda labels: True).text
    lines = [line.strip() for line in once.splitlines()]

    def next_to(comment, *, below=1):
        return lines[lines.index(comment) + below]

    rest = iter(once.splitlines())
    assert all(line in rest for line in JOB.splitlines()), "each line as it was, in this order"
    assert "restartPolicy: Never" == next_to("# first this", below=-1)
    assert "- name: init" == next_to("# why")
    assert "# about the spec" == next_to("spec:", below=-1)
    assert "volumes:" == next_to("# then these")
    assert "kind: Other" == next_to("# the next")
    assert JOB == uninjected(once, lambda labels: True).text


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


def test_a_reporter_of_somebody_else_is_not_taken_out():
    job = JOB.replace("- name: init", "- name: status-reporter")

    made = uninjected(job, lambda labels: True)

    assert (job, ["unchanged: its reporter was not added by status-ctl inject"]) == (
        made.text,
        [each.what for each in made.said],
    )


def test_a_template_is_not_guessed_at():
    """Its braces read as a key that is no text; other documents with some are none of ours."""
    job = (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec:\n  template:\n    spec:\n"
        "      restartPolicy: Never\n      containers:\n      - name: m\n        image: {{ .x }}\n"
    )
    other = "---\nkind: JobOptions\na: {{ .x }}\n"

    made = injected(job + other, Wishes("i"), lambda labels: True)

    assert job + other == made.text
    assert [(10, True)] == [(each.line, each.failed) for each in made.said]
    assert made.said[0].what == (
        "unchanged: spec.template.spec.containers[0].image: a key that is not text (is this a "
        "Helm template? Use the output of `helm template`)"
    )
    assert [] == injected(job, Wishes("i"), lambda labels: "x" in labels).said


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

    assert ["RoleBinding", "Job", "Role"] == [
        each["kind"] for each in yaml.safe_load_all(made.text)
    ]
    what = (
        "Role status-reporter-default is in the manifests, but differs from what the reporter needs"
    )
    assert what == made.said[-1].what
