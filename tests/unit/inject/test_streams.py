"""Manifests of all shapes, collected and made up: once, twice, and back again."""

import json

import pytest
import yaml

from reporter.common.kubernetes_yaml import LOADER, split
from reporter.inject.container import Wishes
from reporter.inject.editing import read
from reporter.inject.stream import injected, uninjected
from reporter.verdict.facts import Form
from tests.manifests.collected import NULLS, REWRITTEN, SHAPES, UNCHANGED
from tests.manifests.generated import COUNT, generated

CONTAINERS = [{"name": "main", "image": "x"}]
SPEC = {"template": {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}}
JSON_JOB = json.dumps({"apiVersion": "batch/v1", "kind": "Job", "spec": SPEC})
WISHES = {form: Wishes("registry.example/status-reporter:1", form) for form in Form}


def everything(labels):
    return True


def values(stream):
    return [read(piece).value for piece in split(stream.removeprefix("\ufeff"))]


def known(piece):
    """Return what others read: PyYAML makes two characters of one that JSON escapes."""
    return json.loads(piece) if piece.startswith("{") else yaml.load(piece, LOADER)


def without_nulls(value):
    """A key without a value says the same as none."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(
    ("form", "rights"), [(Form.NATIVE, True), (Form.CLASSIC, False)], ids=list(Form)
)
def test_a_collected_shape(name, form, rights):
    """Twice is once; back is the original, byte for byte; every other line is as it was."""
    stream = SHAPES[name]

    once = injected(stream, WISHES[form], everything, with_rights=rights)
    back = uninjected(once.text, everything)

    assert once.text == injected(once.text, WISHES[form], everything, with_rights=rights).text
    assert (name in UNCHANGED) == (once.text == stream)
    if name in REWRITTEN | NULLS:
        assert without_nulls(values(stream)) == without_nulls(values(back.text))
        return
    assert stream == back.text
    assert [] == [each for each in once.said if "rewritten" in each.what]


@pytest.mark.parametrize("seed", range(COUNT))
def test_a_generated_stream(seed):
    """The same for streams that nobody has thought of."""
    stream, wishes = generated(seed), WISHES[list(Form)[seed % 2]]

    once = injected(stream, wishes, everything, with_rights=seed % 3 == 0)

    assert [known(piece) for piece in split(stream)] == values(stream)
    assert once.text == injected(once.text, wishes, everything, with_rights=seed % 3 == 0).text
    assert stream == uninjected(once.text, everything).text
    assert [] == [each for each in once.said if "rewritten" in each.what]


def test_json_that_is_rewritten():
    """It is JSON still: its neighbour needs no marker."""
    odd = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": []}, "spec": SPEC}
    neighbour = {"apiVersion": "v1", "kind": "Pod"}

    once = injected(
        f"{json.dumps(odd)}\n{json.dumps(neighbour)}\n", WISHES[Form.NATIVE], everything
    )

    made, other = map(json.loads, once.text.splitlines())
    assert {"status-reporter.io/inject": "native"} == made["metadata"]["labels"]
    assert neighbour == other
    assert ["injected", "rewritten"] == [each.what.split()[0] for each in once.said]


def test_a_document_in_braces_that_is_rewritten():
    """It is no JSON, and ends with its marker still."""
    job = yaml.safe_dump(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"labels": []}, "spec": SPEC},
        default_flow_style=True,
        width=1000,
    )

    once = injected(f"{job}...\n{{kind: Pod}}\n", WISHES[Form.NATIVE], everything)

    made, other = values(once.text)
    assert {"status-reporter.io/inject": "native"} == made["metadata"]["labels"]
    assert {"kind": "Pod"} == other


@pytest.mark.parametrize("head", ["%YAML 1.2\n---\n", "# what follows\n", "\ufeff", "--- # x\n"])
def test_rights_before_what_begins_a_stream(head):
    """Documents stay documents, and it is taken back whole."""
    stream = head + yaml.safe_dump({"apiVersion": "batch/v1", "kind": "Job", "spec": SPEC})

    once = injected(stream, WISHES[Form.NATIVE], everything, with_rights=True)

    assert ["Role", "RoleBinding", "Job"] == [each["kind"] for each in values(once.text)]
    assert ["Role", "RoleBinding", "Job"] == [
        each["kind"] for each in yaml.load_all(once.text, LOADER)
    ]
    assert stream == uninjected(once.text, everything).text


@pytest.mark.parametrize(
    "rbac", ["{{ a }}: rbac.authorization.k8s.io\n", "- rbac.authorization.k8s.io\n"]
)
def test_rights_beside_what_is_no_object(rbac):
    """Nobody can tell whether it is a Role: it passes through."""
    stream = f"{JSON_JOB}\n---\n{rbac}"

    once = injected(stream, WISHES[Form.NATIVE], everything, with_rights=True)

    assert (True, True) == (once.with_rights, once.text.endswith(f"---\n{rbac}"))
    assert stream == uninjected(once.text, everything).text


@pytest.mark.parametrize(
    "stream",
    [f"{JSON_JOB}\n", f"{JSON_JOB}\n---\nkind: Pod\n", f"kind: Pod\n---\n{JSON_JOB}"],
    ids=["alone", "before YAML", "after YAML"],
)
def test_rights_before_json(stream):
    """It is YAML then, also for who reads nothing else."""
    once = injected(stream, WISHES[Form.NATIVE], everything, with_rights=True)

    kinds = [each["kind"] for each in yaml.load_all(once.text, LOADER)]
    assert ["Role", "RoleBinding", "Job"] == [each for each in kinds if each != "Pod"]
    assert once.text == injected(once.text, WISHES[Form.NATIVE], everything, with_rights=True).text
    assert stream == uninjected(once.text, everything).text


def test_rights_among_json_without_markers():
    """As `jq '.items[]'` writes it, and reads it."""
    stream = f'{{"kind": "Pod"}}\n{JSON_JOB}\n'

    once = injected(stream, WISHES[Form.NATIVE], everything, with_rights=True)

    kinds = [json.loads(line)["kind"] for line in once.text.splitlines()]
    assert ["Pod", "Role", "RoleBinding", "Job"] == kinds
    assert stream == uninjected(once.text, everything).text


@pytest.mark.parametrize(
    "part", ["name: x", "template: null", "template: 5", "template: {spec: {template: {}}}"]
)
def test_a_job_set_that_is_not_finished(part):
    """It is told what its part lacks; nothing ends."""
    stream = (
        f"apiVersion: jobset.x-k8s.io/v1\nkind: JobSet\nspec: {{replicatedJobs: [{{{part}}}]}}\n"
    )

    once = injected(stream, WISHES[Form.NATIVE], everything)

    assert (stream, stream) == (once.text, uninjected(stream, everything).text)
    assert ["restartPolicy is missing"] == [each.what[14:38] for each in once.said]


@pytest.mark.parametrize("out", [set(), {"first"}, {"first", "second"}], ids=len)
def test_rights_stay_for_jobs_that_keep_their_reporter(out):
    """Two Jobs of one account; a selector that means neither changes nothing."""
    named = [
        {**json.loads(JSON_JOB), "metadata": {"name": name, "labels": {"which": name}}}
        for name in ("first", "second")
    ]
    stream = yaml.safe_dump_all(named)
    once = injected(stream, WISHES[Form.NATIVE], everything, with_rights=True).text

    back = uninjected(once, lambda labels: labels.get("which") in out).text

    kinds = [value["kind"] for value in values(back)]
    assert (["Role", "RoleBinding"] if len(out) < 2 else []) + ["Job", "Job"] == kinds
    if not out:
        assert once == back
