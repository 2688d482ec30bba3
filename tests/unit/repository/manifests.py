"""The manifests of deploy/, and the rights that requests need."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import yaml

from reporter.kube.api import KubeApi
from reporter.kube.resources import NEW_EVENT
from reporter.verdict.condition import Attempt, Statement, build_event
from reporter.verdict.rows import Report
from tests.fakekube import Entry, FakeKube, make_job, make_pod
from tests.kube_client import connect

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"


FORMS = {"native": "initContainers", "classic": "containers"}


def load(path: str) -> dict:
    """Read the one object of the file at PATH below deploy/."""
    return yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8"))


def whole_pods() -> Iterator[tuple[str, int, dict]]:
    """All Pod specs below deploy/ that are no patches: the file, which of it, the spec."""
    for path in sorted(DEPLOY.rglob("*.yaml")):
        name = path.relative_to(DEPLOY)
        # Components are patches; a chart's templates are YAML only when rendered.
        if name.parts[0] != "components" and name.parts[:2] != ("chart", "templates"):
            documents = yaml.safe_load_all(path.read_text(encoding="utf-8"))
            for number, pod in enumerate(pod for each in documents for pod in _pods(each)):
                yield str(name), number, pod


def _pods(value: object) -> Iterator[dict]:
    """The specs of the Pod templates within a value."""
    if isinstance(value, dict):
        template = value.get("template")
        spec = template.get("spec") if isinstance(template, dict) else None
        if isinstance(spec, dict) and "containers" in spec:
            yield spec
        for each in value.values():
            yield from _pods(each)
    elif isinstance(value, list):
        for each in value:
            yield from _pods(each)


def rights(role: dict) -> set[tuple[str, str, str]]:
    """List what a Role allows as (API group, resource, verb)."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(entry: Entry) -> tuple[str, str, str]:
    """Name the right that a request needs, as (API group, resource, verb)."""
    words = entry.path.strip("/").split("/")
    group = words[1] if words[0] == "apis" else ""
    _, _, resource, *rest = words[words.index("namespaces") :]
    name, *subresource = [*rest, ""]
    verb = {"GET": "get" if name else "list", "PATCH": "patch", "POST": "create"}[entry.method]
    return (
        group,
        "/".join([resource, *filter(None, subresource)]),
        "watch" if entry.is_watch else verb,
    )


Requests = tuple[Callable[[KubeApi], object], ...]


def watched(api: KubeApi) -> None:
    """Open a watch and read its first event."""
    with closing(api.watch("Pod", "default", field_selector="metadata.name=pod")) as watch:
        next(iter(watch))


EVENT = build_event(
    Statement(
        Report("R", "True", "AllGood", "fine"), True, Attempt("pod", "pod-uid", None, 0.0), {}, 0.0
    ),
    namespace="default",
    job_name="job",
    job_uid="uid",
    condition_type="Available",
)


SIDECAR: Requests = (
    lambda api: api.get("Pod", "default", "pod"),
    lambda api: api.get("Job", "default", "job", part="status"),
    lambda api: api.patch("Job", "default", "job", {"status": {}}, part="status"),
    watched,
    lambda api: api.create(NEW_EVENT, "default", EVENT),
)
AGGREGATOR: Requests = (
    lambda api: api.patch("Pod", "default", "pod", {"metadata": {}}, merge="json"),
)


def asked(requests: Requests) -> set[tuple[str, str, str]]:
    """Make the requests and list the rights they need."""
    with FakeKube(role="admin") as fake:
        job = fake.create_job(make_job("job"))
        fake.create_pod(make_pod(job, name="pod"))
        api = connect(fake)
        with closing(api):
            for request in requests:
                request(api)
        return {right(entry) for entry in fake.requests()}
