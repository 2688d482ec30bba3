"""GetStatus against an API server: which Pod is read, and what comes of everything in the way."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from reporter.errors import NoAggregatorPod
from reporter.kube.api import KubeApi
from reporter.run.annotation import STATUS_ANNOTATION
from reporter.run.pod_status import Reading
from reporter.run.view import ReadOutcome
from reporter.runctl.run_status import find_aggregator, read_run_status
from tests.fakekube import Answer, FakeKube, Reset, Rule, make_job, make_pod

NEW = {"sonobuoy-component": "aggregator"}
OLD = {"run": "sonobuoy-master"}
BEFORE = "2020-01-01T00:00:00Z"


def status(word: str) -> str:
    return json.dumps({"plugins": None, "status": word, "tar-info": {}})


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube(role="reader") as fake:
        reader = (Rule(("get", "list"), ("pods",)),)
        fake.tokens.roles["reader"] = reader
        yield fake


def add(
    fake: FakeKube,
    name: str,
    labels: dict[str, str] | None = None,
    value: str | None = None,
    **fields: Any,
) -> None:
    annotations = {} if value is None else {STATUS_ANNOTATION: value}
    made = make_pod(make_job(), name=name, annotations=annotations, **fields)
    made["metadata"]["labels"] = labels or {}
    fake.create_pod(made)


def outcome(reading: Reading) -> tuple[ReadOutcome, str | None]:
    """What happened, and the name of the Pod if one came along."""
    return reading.outcome, reading.pod["metadata"]["name"] if reading.pod else None


def test_the_status_is_read_with_one_request(fake: FakeKube, api: KubeApi) -> None:
    """K1 to K3: the annotation's object, with the Pod."""
    add(fake, "any", NEW, status("running"))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.OK, "any") == outcome(reading)
    assert reading.status is not None
    assert "running" == reading.status["status"]
    assert ("", "") == (reading.warning, reading.detail)
    assert 1 == len(fake.journal)


# K4: what is in the way


@pytest.mark.parametrize("namespace", ["default", "no-such-namespace"])
def test_no_pod_and_no_namespace(fake: FakeKube, api: KubeApi, namespace: str) -> None:
    """K4: not found; the text names where it was looked for."""
    add(fake, "other", {"app": "other"}, status("complete"))
    reading = read_run_status(api, namespace)

    assert (ReadOutcome.NOT_FOUND, None) == outcome(reading)
    with pytest.raises(NoAggregatorPod, match="no aggregator found in namespace"):
        find_aggregator(api, namespace)
    assert namespace in reading.detail


def test_listing_is_not_allowed(fake: FakeKube, api: KubeApi) -> None:
    """K4: forbidden, with the server's words, which say what is missing."""
    fake.write_token(fake.token("no-pods"))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.FORBIDDEN, None) == outcome(reading)
    assert "cannot list resource" in reading.detail


@pytest.mark.parametrize("fault", [Answer(500), Answer(401), Answer(429), Reset()], ids=str)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_the_server_does_not_answer(
    fake: FakeKube, api: KubeApi, fault: Answer | Reset, nth: int
) -> None:
    """K4: unreachable, whichever of the three requests fails."""
    fake.fail(fault, nth=nth, times=None)

    assert (ReadOutcome.UNREACHABLE, None) == outcome(read_run_status(api, "default"))


@pytest.mark.parametrize(
    ("pods", "found", "warning"),
    [
        ({"a-old": OLD, "new": NEW}, "new", ""),
        ({"old": OLD}, "old", ""),
        ({"sonobuoy": {}}, "sonobuoy", ""),
        (
            {"two": NEW, "one": NEW},
            "one",
            "found 2 aggregators: default/one, default/two; showing default/one",
        ),
    ],
    ids=["the new label wins", "only the old label", "only the name", "several"],
)
def test_which_pod_is_read(
    fake: FakeKube, api: KubeApi, pods: dict[str, dict[str, str]], found: str, warning: str
) -> None:
    """K5: the first by name of those with the newest label, with a warning."""
    for name, labels in pods.items():
        add(fake, name, labels, status("running"))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.OK, found) == outcome(reading)
    assert warning == reading.warning


def test_a_job_whose_aggregator_was_evicted_often(fake: FakeKube, api: KubeApi) -> None:
    """Its Pods stay until the run is deleted, and their names are in no order."""
    labels = NEW | {"status-reporter.io/run": "r1"}
    for number in range(501):
        add(fake, f"r1-{number:05}", labels, created=BEFORE)
    add(fake, "r1-zzzzz", labels, status("running"))

    assert (ReadOutcome.OK, "r1-zzzzz") == outcome(read_run_status(api, "default", run="r1"))
