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
from tests.fakekube import Answer, FakeKube, Reset, Rule, make_job, make_pod, waiting

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


@pytest.mark.parametrize("word", ["running", "post-processing", "complete", "failed"])
def test_the_status_is_read_with_one_request(fake: FakeKube, api: KubeApi, word: str) -> None:
    """K1 to K3: the annotation's object, with the Pod."""
    add(fake, "any", NEW, status(word))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.OK, "any") == outcome(reading)
    assert reading.status is not None
    assert word == reading.status["status"]
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


@pytest.mark.parametrize("container", ["waiting", "not waiting"])
def test_a_pod_that_does_not_run(fake: FakeKube, api: KubeApi, container: str) -> None:
    """K4: the Pod is returned; trouble with an image is named, nothing of it has to be there."""
    state = waiting("ImagePullBackOff") if container == "waiting" else None
    add(fake, "one", NEW, status("running"), phase="Pending", adapter_state=state)
    reading = read_run_status(api, "default")

    assert (ReadOutcome.POD_NOT_RUNNING, "one") == outcome(reading)
    assert "Pending" in reading.detail
    assert (container == "waiting") == ("ImagePullBackOff" in reading.detail)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ReadOutcome.NO_STATUS),
        ("{", ReadOutcome.BAD_STATUS),
        ("", ReadOutcome.BAD_STATUS),
        ("[]", ReadOutcome.BAD_STATUS),
    ],
)
def test_an_annotation_that_is_no_status(
    fake: FakeKube, api: KubeApi, value: str | None, expected: ReadOutcome
) -> None:
    """K4: missing, or not JSON; the Pod is returned."""
    add(fake, "one", NEW, value)

    assert (expected, "one") == outcome(read_run_status(api, "default"))


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


def test_a_server_that_is_away(fake: FakeKube, api: KubeApi) -> None:
    """K4: unreachable."""
    fake.stop()

    assert (ReadOutcome.UNREACHABLE, None) == outcome(read_run_status(api, "default"))


# K5: which Pod


def test_the_new_label_wins(fake: FakeKube, api: KubeApi) -> None:
    """K5: over one of an older run, without a word."""
    add(fake, "a-old", OLD, status("failed"))
    add(fake, "new", NEW, status("running"))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.OK, "new") == outcome(reading)
    assert "" == reading.warning


def test_only_the_old_label(fake: FakeKube, api: KubeApi) -> None:
    """K5: accepted."""
    add(fake, "old", OLD, status("complete"))

    assert (ReadOutcome.OK, "old") == outcome(read_run_status(api, "default"))


def test_only_the_name(fake: FakeKube, api: KubeApi) -> None:
    """The Pod `sonobuoy` without a label is one, too."""
    add(fake, "sonobuoy", {}, status("complete"))

    assert (ReadOutcome.OK, "sonobuoy") == outcome(read_run_status(api, "default"))


def test_several_pods(fake: FakeKube, api: KubeApi) -> None:
    """K5: the first by name, with a warning."""
    add(fake, "two", NEW, status("failed"))
    add(fake, "one", NEW, status("running"))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.OK, "one") == outcome(reading)
    assert "found 2 aggregators: default/one, default/two; showing default/one" == reading.warning


def test_a_job_whose_aggregator_was_evicted_often(fake: FakeKube, api: KubeApi) -> None:
    """Its Pods stay until the run is deleted, and their names are in no order."""
    labels = NEW | {"status-reporter.io/run": "r1"}
    for number in range(501):
        add(fake, f"r1-{number:05}", labels, created=BEFORE)
    add(fake, "r1-zzzzz", labels, status("running"))

    assert (ReadOutcome.OK, "r1-zzzzz") == outcome(read_run_status(api, "default", run="r1"))


def test_the_warning_stays_with_every_outcome(fake: FakeKube, api: KubeApi) -> None:
    """K5: also where the first of several says nothing."""
    add(fake, "one", NEW)
    add(fake, "two", NEW, status("running"))
    reading = read_run_status(api, "default")

    assert (ReadOutcome.NO_STATUS, "one") == outcome(reading)
    assert reading.warning
