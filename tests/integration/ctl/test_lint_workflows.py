"""`status-ctl lint` on the Jobs that Argo's workflows have as texts."""

import json
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from tests.blackbox.ctl.scripted import Home
from tests.fakekube import FakeKube, Rule
from tests.unit.core.lint.manifests import Change, container, env, job, pod, spec

HEAD = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: checks-
  namespace: team
spec:
  templates:
  - name: one
    resource:
      action: create
"""
LINE = HEAD.count("\n") + 1  # that of `manifest:`
OWNER = "workflow.argoproj.io/checks-* (one)"


def workflow(folder: Path, value: dict | str, style: str = "|") -> str:
    """Write a workflow that creates an object; return the object's text."""
    text = value if isinstance(value, str) else yaml.safe_dump(value, sort_keys=False)
    inner = textwrap.indent(text, " " * 8)
    written = f"{style}\n{inner}" if style in ("|", ">") else json.dumps(text) + "\n"
    (folder / "flow.yaml").write_text(f"{HEAD}      manifest: {written}")
    return text


def asking(value: dict) -> dict:
    """The same with the label, and without a reporter."""
    pod(initContainers=[])(value)
    value["metadata"]["labels"] = {"status-reporter.io/inject": "native"}
    return value


def test_each_line_as_it_is_written(home: Home) -> None:
    """The finding is where the Job's own field is, and says whose it is."""
    value = job()
    spec(activeDeadlineSeconds=240)(value)
    text = workflow(home.folder, value)
    line = text[: text.index("activeDeadlineSeconds")].count("\n") + 1
    code, out, err = home.run("lint", "-f", "flow.yaml")

    assert 1 == code
    assert out.startswith(f"flow.yaml:{LINE + line}: error: The reporter waits 5m0s")
    assert f"    {OWNER}: Job team/nightly: spec.activeDeadlineSeconds\n" in out
    assert "status-ctl: 1 Job with a status reporter: 1 error, 0 warnings\n" == err


@pytest.mark.parametrize("style", [">", '"'])
def test_a_text_that_is_folded(home: Home, style: str) -> None:
    """Its lines are not those of the file: the line of the text is named."""
    value = job()
    spec(activeDeadlineSeconds=240)(value)
    # JSON stays JSON when its lines are folded.
    workflow(home.folder, json.dumps(value, indent=1), style)
    code, out, _ = home.run("lint", "-f", "flow.yaml")

    assert (1, True) == (code, out.startswith(f"flow.yaml:{LINE}: error: "))


@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_a_label_that_nobody_has_obeyed(home: Home, form: str) -> None:
    """In every form, with the owner's name."""
    workflow(home.folder, asking(job()))
    code, out, _ = home.run("lint", "-f", "flow.yaml", "-o", form)
    line = LINE + 7

    assert (1, True) == (code, "not-injected" in out)
    if form == "json":
        shown = json.loads(out)
        assert f"{OWNER}: Job team/nightly" == shown["jobs"][0]["object"]
        assert line == shown["findings"][0]["line"]
        assert [] == shown["unchecked"]
    elif form == "junit":
        (suite,) = ElementTree.fromstring(out.encode())
        assert f"{OWNER}: Job team/nightly" == suite[0].get("name")
    elif form == "github":
        assert out.startswith(f"::error file=flow.yaml,line={line},")


def test_what_argo_fills_in_is_taken_to_be_right(home: Home) -> None:
    """Names, variables and numbers; what stands beside them is checked."""
    value = job()
    env(MAX_WAIT_TIME_SECONDS="{{inputs.parameters.wait}}")(value)
    value["metadata"] |= {"name": "{{workflow.name}}", "namespace": "{{workflow.namespace}}"}
    plain = yaml.safe_dump(value, sort_keys=False)
    filled = plain.replace("600", "{{inputs.parameters.limit}}").replace(
        "backoffLimit: 0", "backoffLimit: {{=int(inputs.parameters['tries'])}}"
    )
    assert filled != plain
    workflow(home.folder, filled)
    assert (0, "") == home.run("lint", "--strict", "-f", "flow.yaml")[:2]

    workflow(home.folder, filled.replace("restartPolicy: Always", "restartPolicy: Never"))
    code, out, _ = home.run("lint", "-f", "flow.yaml")
    assert (1, 1) == (code, out.count("[form]"))
    assert f"    {OWNER}: Job team/{{{{workflow.name}}}}: spec.template.spec.init" in out


@pytest.mark.parametrize(
    "change",
    [
        container(name="{{inputs.parameters.name}}"),
        container(restartPolicy="{{inputs.parameters.policy}}"),
        container(resources={"limits": {"memory": "{{inputs.parameters.memory}}"}}),
        spec(parallelism="{{inputs.parameters.pods}}", activeDeadlineSeconds="{{a}}"),
        pod(terminationGracePeriodSeconds="{{inputs.parameters.grace}}"),
        pod(containers=[{"name": "{{inputs.parameters.adapter}}"}]),
        pod(serviceAccountName="{{inputs.parameters.account}}", restartPolicy="{{b}}"),
        env(REPORTER_FORM="{{inputs.parameters.form}}", RESULTS_PATH="{{p}}", POD_NAME="{{q}}"),
    ],
)
def test_any_part_that_argo_fills_in(home: Home, change: Change) -> None:
    """The rule that would look at it says nothing."""
    value = job()
    change(value)
    workflow(home.folder, value)

    assert (0, "") == home.run("lint", "--strict", "-f", "flow.yaml")[:2]


@pytest.mark.parametrize(
    ("named", "variables"),
    [
        ({"namespace": "{{inputs.parameters.place}}"}, {"JOB_NAMESPACE": "checks"}),
        ({"namespace": "{{workflow.namespace}}-b"}, {"JOB_NAMESPACE": "checks"}),
        ({"name": "{{inputs.parameters.name}}"}, {"JOB_NAME": "nightly"}),
    ],
)
def test_a_name_or_a_namespace_that_argo_fills_in(
    home: Home, named: dict[str, str], variables: dict[str, str]
) -> None:
    """What the reporter is told may be the same."""
    value = job()
    env(**variables)(value)
    value["metadata"] |= named
    workflow(home.folder, value)

    assert (0, "") == home.run("lint", "--strict", "-f", "flow.yaml")[:2]


@pytest.mark.parametrize("namespace", ["{{inputs.parameters.place}}", "{{workflow.namespace}}-b"])
def test_the_cluster_is_not_asked_about_a_namespace_that_argo_fills_in(
    at_home: Home, fake: FakeKube, namespace: str
) -> None:
    value = job()
    value["metadata"]["namespace"] = namespace
    workflow(at_home.folder, value)

    assert (0, "") == at_home.run("lint", "-f", "flow.yaml", "--cluster")[:2]
    assert [] == [each for each in fake.requests() if "reviews" in each.path]


def test_a_label_that_argo_fills_in(home: Home) -> None:
    """Nobody knows whether it asks for a reporter."""
    value = asking(job())
    value["metadata"]["labels"]["status-reporter.io/inject"] = "{{inputs.parameters.form}}"
    workflow(home.folder, value)

    assert (0, "") == home.run("lint", "--strict", "-f", "flow.yaml")[:2]


def test_a_job_without_a_reporter(home: Home) -> None:
    """Nobody has asked for one."""
    value = job()
    pod(initContainers=[])(value)
    workflow(home.folder, value)
    code, out, err = home.run("lint", "--strict", "-f", "flow.yaml")

    assert (0, "") == (code, out)
    assert "status-ctl: no Jobs with a status reporter found; 0 errors, 0 warnings\n" == err


@pytest.mark.parametrize("form", ["text", "json", "junit", "github"])
def test_no_yaml_without_its_values(home: Home, form: str) -> None:
    """Not checked, and that is told where it speaks of a reporter."""
    text = yaml.safe_dump(job()) + "{{inputs.parameters.more}}\n"
    workflow(home.folder, text)
    code, out, err = home.run("lint", "--strict", "-f", "flow.yaml", "-o", form)

    assert 0 == code
    assert err.endswith(
        "status-ctl: 1 manifest in Argo templates was not checked: not valid YAML until Argo fills "
        "in the placeholders\n"
    )
    if form == "json":
        assert [{"file": "flow.yaml", "object": OWNER}] == json.loads(out)["unchecked"]
    elif form == "junit":
        (suite,) = ElementTree.fromstring(out.encode())
        assert [OWNER] == [each.get("name") for each in suite if each.find("skipped") is not None]
    elif form == "github":
        assert 1 == out.count("::notice file=flow.yaml")

    workflow(home.folder, "kind: Service\n{{inputs.parameters.more}}\n")
    assert "not checked" not in home.run("lint", "-f", "flow.yaml")[2]


@pytest.mark.parametrize(
    "expression",
    ["{{=toJson({'a': 1})}}", "{{=filter(xs, {# > 1})}}", "{{=\n  asInt(x)\n}}"],
    ids=["a dictionary", "a filter", "three lines"],
)
def test_an_expression_with_braces_or_of_several_lines(home: Home, expression: str) -> None:
    """No YAML before Argo has evaluated it, which is no mistake."""
    text = yaml.safe_dump(job()) + f"more: {expression}\n"
    workflow(home.folder, text)
    code, _, err = home.run("lint", "--strict", "-f", "flow.yaml")
    assert (0, True) == (code, "1 manifest in Argo templates was not checked" in err)

    workflow(home.folder, f"apiVersion: v1\nkind: ConfigMap\ndata: {expression}\n")
    code, _, err = home.run("lint", "--strict", "-f", "flow.yaml")
    assert (0, False) == (code, "not checked" in err)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("kind: Job\n  spec: 1\n", 2, "invalid YAML"),
        (
            "kind: Job\napiVersion: batch/v1\nspec: {}\n{{a}}: 1\n{{a}}: 2\n",
            5,
            "{{a}}: appears more than once",
        ),
    ],
    ids=["no YAML at all", "a key that appears twice"],
)
def test_what_argo_cannot_read_either(home: Home, text: str, line: int, words: str) -> None:
    """An error, on the text's own line."""
    workflow(home.folder, text)
    code, out, _ = home.run("lint", "-f", "flow.yaml")

    assert 1 == code
    assert out.startswith(f"flow.yaml:{LINE + line}: error: {OWNER}: ")
    assert words in out


def test_the_rights_are_those_in_the_workflows_namespace(home: Home) -> None:
    """A Job that names none is created there."""
    value = job()
    del value["metadata"]["namespace"]
    workflow(home.folder, value)
    account = value["spec"]["template"]["spec"]["serviceAccountName"]
    rights = []
    for namespace, name in (("team", "another"), ("elsewhere", account)):
        subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}
        kinds = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "r"}}
        kinds["metadata"] |= {"namespace": namespace}
        rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
        rights.append(kinds | {"kind": "Role", "rules": [rule]})
        rights.append(kinds | {"kind": "RoleBinding", "roleRef": role, "subjects": [subject]})
    (home.folder / "rbac.yaml").write_text(yaml.safe_dump_all(rights))
    code, out, _ = home.run("lint", "-f", "flow.yaml", "-f", "rbac.yaml")

    assert (1, 1) == (code, out.count("[missing-rights]"))


def test_every_template_that_inject_finds(home: Home) -> None:
    """What inject has changed has no finding left."""
    adapter = {"name": "check", "image": "busybox"}
    value = asking(job())
    pod(containers=[adapter])(value)
    del value["spec"]["template"]["spec"]["volumes"]
    workflow(home.folder, value)
    assert 1 == home.run("lint", "-f", "flow.yaml")[0]
    code, out, _ = home.run("inject", "-f", "flow.yaml", "--image", "registry.example.org/r:1")
    (home.folder / "made.yaml").write_text(out)

    assert 0 == code
    assert (0, "") == home.run("lint", "--strict", "-f", "made.yaml")[:2]


@pytest.mark.parametrize(
    ("account", "asked"),
    [("no-pods", {"system:serviceaccount:team:no-pods"}), ("{{inputs.parameters.a}}", set())],
)
def test_the_cluster_is_asked(at_home: Home, fake: FakeKube, account: str, asked: set[str]) -> None:
    """About an account that is known, in the workflow's namespace."""
    review = Rule(("create",), ("localsubjectaccessreviews",), groups=("authorization.k8s.io",))
    fake.tokens.roles["person"] = (review,)
    value = job()
    del value["metadata"]["namespace"]
    pod(serviceAccountName=account)(value)
    workflow(at_home.folder, value)
    code, out, _ = at_home.run("lint", "-f", "flow.yaml", "--cluster")

    assert asked == {json.loads(each.body)["spec"]["user"] for each in fake.requests()}
    assert (int(bool(asked)), bool(asked)) == (code, "[missing-rights]" in out)
