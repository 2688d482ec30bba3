"""deploy/chart through the real Helm and past the real API server."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import binaries
from tests.bed.controlplane import ControlPlane

pytestmark = pytest.mark.cluster
PROGRAMS = ("helm",)

ROOT = Path(__file__).resolve().parents[3]
IMAGE = "registry.example.org/team/status-reporter"
PLAN = {"run": "run-1", "plugins": [{"name": "e2e"}]}
OF_THE_OPERATOR = {"PodMonitor", "PrometheusRule", "ServiceMonitor"}
Object = dict[str, Any]


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The path of the chart as `make chart` packs it."""
    folder = tmp_path_factory.mktemp("chart")
    subprocess.run([sys.executable, ROOT / "scripts" / "pack_chart.py", folder], check=True)
    return str(folder / "status-reporter-chart.tgz")


def helm(*arguments: str, values: Object | None = None) -> subprocess.CompletedProcess[str]:
    """What Helm says; it is told of the version, which it cannot ask a server for."""
    given = yaml.safe_dump(values or {})
    command = [str(binaries.program("helm")), *arguments, "--kube-version", "1.34.4"]
    command += ["--values", "-"]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=False)


def rendered(chart: str, namespace: str, values: Object) -> list[Object]:
    """Every object of a release."""
    done = helm("template", "ours", chart, "--namespace", namespace, values=values)
    assert (0, "") == (done.returncode, done.stderr)
    return [each for each in yaml.safe_load_all(done.stdout) if each]


IMAGES = {"repository": IMAGE, "tag": "1.2.3"}
AGGREGATOR = {
    "image": IMAGES,
    "aggregator": {"enabled": True, "plan": PLAN, "storage": {"size": "1Gi"}},
}


def for_the_cluster(namespace: str) -> Object:
    """Values that turn on all that a cluster needs once."""
    return {
        "image": IMAGES,
        "namespaces": [namespace],
        "aggregateToAdmin": True,
        "reaper": {"enabled": True},
        "monitoring": {"enabled": True, "labels": {"release": "prometheus"}},
    }


def both(chart: str, namespace: str, jobs: str) -> list[Object]:
    """Every object of the two releases that have everything between them."""
    cluster = rendered(chart, namespace, for_the_cluster(jobs))
    return cluster + rendered(chart, namespace, AGGREGATOR)


def plain(found: Object) -> tuple[str, str, Object]:
    """Kind, name and the rest without what a release decides."""
    text = yaml.safe_dump({k: v for k, v in found.items() if k != "metadata"}, sort_keys=True)
    rest = yaml.safe_load(text.replace(f"{IMAGE}:1.2.3", "status-reporter").replace("1Gi", "10Gi"))
    for subject in rest.get("subjects", []):
        subject.pop("namespace", None)
    return found["kind"], found["metadata"]["name"], rest


def test_the_chart_has_what_kustomize_applies(chart: str) -> None:
    """The same objects, but for image, namespace, labels and the size of the volume."""
    made = [plain(each) for each in both(chart, "ours", "jobs")]
    with tarfile.open(chart) as tar:
        taken = [
            plain(each)
            for member in tar
            if "/files/" in member.name and member.name.endswith(".yaml")
            for each in yaml.safe_load_all(tar.extractfile(member) or b"")
        ]
    ours = [each for each in made if each[0] != "ConfigMap"]

    def by_name(objects: list[tuple[str, str, Object]]) -> list[tuple[str, str, Object]]:
        return sorted(objects, key=lambda each: each[:2])

    assert by_name(taken) == by_name(ours)
    assert {"status-aggregator-plan", "status-reporter-dashboard"} == {
        name for kind, name, _ in made if kind == "ConfigMap"
    }


def test_what_it_renders_is_accepted(
    controlplane: ControlPlane, namespace: str, chart: str
) -> None:
    """Valid to the letter, in the release's namespace, without a Pod security warning."""
    controlplane.kubectl(
        "label", "namespace", namespace, "pod-security.kubernetes.io/warn=restricted"
    )
    found = both(chart, namespace, namespace)
    known = [each for each in found if each["kind"] not in OF_THE_OPERATOR]
    apply = ("apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors")

    answer = controlplane.kubectl(*apply, "--filename", "-", input=yaml.safe_dump_all(known))

    assert len(known) == len(answer.splitlines())
    assert {namespace} == {
        each["metadata"]["namespace"] for each in found if not each["kind"].startswith("Cluster")
    }
    assert {"prometheus"} == {
        each["metadata"]["labels"]["release"] for each in found if each["kind"] in OF_THE_OPERATOR
    }


def test_a_release_is_installed_changed_and_removed(
    controlplane: ControlPlane, namespace: str, chart: str
) -> None:
    """On the real API server; a namespace that is missing is said, and nothing stays."""
    release = ["ours", "--namespace", namespace, "--kubeconfig", str(controlplane.kubeconfig)]
    program = str(binaries.program("helm"))

    def install(values: Object) -> str:
        done = subprocess.run(
            [program, "upgrade", "--install", *release, chart, "--values", "-"],
            input=yaml.safe_dump(values),
            capture_output=True,
            text=True,
            check=False,
        )
        assert 0 == done.returncode, done.stderr
        return done.stdout

    def there() -> set[str]:
        label = "app.kubernetes.io/managed-by=Helm"
        kinds = "serviceaccounts,roles,rolebindings,deployments,clusterroles,clusterrolebindings"
        words = ("--namespace", namespace, "--selector", label, "--output", "name")
        found = controlplane.kubectl("get", kinds, *words).split()
        return {each.rpartition("/")[2] for each in found}

    reaper = {"image": IMAGES, "reaper": {"enabled": True}}
    try:
        install(reaper)
        assert {"status-reaper"} == there()
        said = install(reaper | {"namespaces": ["nowhere", namespace]})
        assert {"status-reaper", "status-reporter"} == there()
        assert f"Jobs may have a reporter in: {namespace}." in said
        assert (
            "These namespaces do not exist or are being deleted, so they were skipped: nowhere."
            in said
        )
    finally:
        subprocess.run([program, "uninstall", *release], capture_output=True, check=True)
    assert set() == there()


def test_helm_finds_nothing_to_criticise(chart: str) -> None:
    """With the defaults, which ask for nothing, and with all of it."""
    for values in ({}, for_the_cluster("jobs"), AGGREGATOR):
        done = helm("lint", "--strict", chart, values=values)
        assert 0 == done.returncode, done.stdout
    assert [] == rendered(chart, "ours", {})


def test_an_image_by_its_digest(chart: str) -> None:
    """It stands instead of the tag."""
    digest = f"sha256:{'0' * 64}"
    values = {"image": IMAGES | {"digest": digest}, "reaper": {"enabled": True}}
    (deployment,) = (
        each for each in rendered(chart, "ours", values) if each["kind"] == "Deployment"
    )

    assert [f"{IMAGE}@{digest}"] == [
        each["image"] for each in deployment["spec"]["template"]["spec"]["containers"]
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"reaper": {"enabled": True}}, "at '/image/repository': minLength"),
        ({"image": {"repository": "a/b:1.0"}}, "at '/image/repository': 'a/b:1.0' does not match"),
        ({"reaper": {"enabled": "yes"}}, "at '/reaper/enabled': got string, want boolean"),
        ({"monitoring": {"enable": True}}, "additional properties 'enable' not allowed"),
        ({"namespaces": ["Bad_Name"]}, "at '/namespaces/0': 'Bad_Name' does not match pattern"),
        (
            {"image": {"repository": "a/b"}, "aggregator": {"enabled": True}},
            "at '/aggregator/plan': missing properties 'run', 'plugins'",
        ),
        ({"image": {"digest": "0" * 64}}, "at '/image/digest': '000"),
        (AGGREGATOR | {"reaper": {"enabled": True}}, "need two releases in two namespaces"),
    ],
)
def test_wrong_values_are_named(chart: str, values: Object, said: str) -> None:
    """Before anything is applied, with the place."""
    done = helm("template", "ours", chart, values=values)

    assert (1, "") == (done.returncode, done.stdout)
    assert said in done.stderr


def test_the_folder_of_the_chart_as_it_is_in_the_repository() -> None:
    """Half a chart, which would install nothing, is refused."""
    values = {"image": IMAGES, "reaper": {"enabled": True}}
    done = helm("template", "ours", str(ROOT / "deploy" / "chart"), values=values)

    assert (1, "") == (done.returncode, done.stdout)
    assert "the chart is not packed: install what `make chart` makes of it" in done.stderr
