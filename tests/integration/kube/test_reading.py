"""Reading what nobody knew before, from FakeKube over TLS."""

from collections.abc import Iterator
from typing import Any

import pytest

from reporter.errors import Expired, Forbidden, InvalidRequest, TooLarge, Unavailable
from reporter.kube.api import KubeApi
from reporter.kube.reading import Ask, Page, Reading
from reporter.kube.resources import Resource
from tests.fakekube import Answer, FakeKube, Reset
from tests.fakekube.kinds import Kind

PODS = Resource("", "v1", "pods", "Pod", True)
SECRETS = Resource("", "v1", "secrets", "Secret", True)


@pytest.fixture
def reading(fake: FakeKube, api: KubeApi) -> Iterator[Reading]:
    fake.write_token(fake.token("admin"))
    for name in ("a", "b", "c", "d"):
        fake.store.create("ConfigMap", {"metadata": {"name": name}, "data": {"x": "y" * 2000}})
    found = api.reading()
    yield found
    found.close()


MAPS = Resource("", "v1", "configmaps", "ConfigMap", True)


def names(page: Page) -> list[str]:
    try:
        return [each["metadata"]["name"] for each in page]
    finally:
        page.close()


def test_page_by_page(reading: Reading) -> None:
    """Each says how to go on; the last one that it is the last."""
    first = reading.page(Ask(MAPS, limit=3))
    second: Any = None

    assert ["a", "b", "c"] == names(first)
    second = reading.page(Ask(MAPS, limit=3, more=first.more))
    assert (["d"], "") == (names(second), second.more)


def test_a_whole_list(fake: FakeKube, reading: Reading) -> None:
    """As many pages as it takes."""
    found = [each["metadata"]["name"] for each in reading.every(Ask(MAPS, limit=3))]

    assert (["a", "b", "c", "d"], 2) == (found, len(fake.requests("GET", "/configmaps")))


def test_pages_that_take_too_long(fake: FakeKube, reading: Reading) -> None:
    """The refusal brings along what goes on all the same."""
    first = reading.page(Ask(MAPS, limit=3))
    names(first)
    fake.store.create("Secret", {"metadata": {"name": "later"}})
    fake.store.compact()
    with pytest.raises(Expired) as refused:
        reading.page(Ask(MAPS, limit=3, more=first.more))

    assert ["d"] == names(reading.page(Ask(MAPS, limit=3, more=refused.value.more)))


def test_only_metadata(fake: FakeKube, reading: Reading) -> None:
    """A server that sends whole objects all the same is refused before the first of them."""
    fake.store.create("Secret", {"metadata": {"name": "s"}, "data": {"a": "Yg=="}})
    ask = Ask(SECRETS, "default", metadata_only=True)
    page = reading.page(ask)

    assert [{"kind", "apiVersion", "metadata"}] == [set(each) for each in page]
    page.close()
    whole = {"kind": "SecretList", "metadata": {}, "items": [{"metadata": {"name": "s"}}]}
    fake.fail(Answer(body=whole), path="/secrets")
    stubborn = reading.page(ask)
    with pytest.raises(Unavailable, match="whole objects"):
        next(iter(stubborn))
    stubborn.close()


def test_a_page_that_is_too_large(reading: Reading) -> None:
    """It is given up on the way; a smaller one fits, on a new connection."""
    with pytest.raises(TooLarge):
        reading.page(Ask(MAPS), most=4000)

    assert ["a"] == names(reading.page(Ask(MAPS, limit=1), most=4000))


def test_a_page_that_breaks_off_gives_nothing(fake: FakeKube, reading: Reading) -> None:
    """So that asking again gives no object twice."""
    fake.fail(Reset(), path="/configmaps")
    with pytest.raises(Unavailable):
        reading.page(Ask(MAPS))


def test_names_from_strangers_stay_in_their_place(fake: FakeKube, reading: Reading) -> None:
    """A group with a path in it leads nowhere else."""
    with pytest.raises(Forbidden):
        reading.page(Ask(Resource("../api", "v1", "pods", "Pod", True)))

    (asked,) = fake.requests("GET", "v1/pods")
    assert "/apis/..%2Fapi/v1/pods" == asked.path


def test_what_is_offered(fake: FakeKube, reading: Reading) -> None:
    """With two requests; a group whose server is away is noted, and the rest is there."""
    fake.offered.serve(Kind("PodMetrics", "metrics.k8s.io", "pods", version="v1beta1"), [])
    fake.offered.broken["broken.example.com"] = "v1"
    found = reading.discover()
    pods = [each for each in found.resources if each.plural == "pods"]

    assert ["pods", "pods.metrics.k8s.io"] == [each.name for each in pods]
    assert ["Pod", "PodMetrics"] == [each.kind for each in pods]
    assert [("broken.example.com", "v1")] == [(e.group, e.version) for e in found.troubles]
    assert 2 == len(fake.requests("GET", "/api"))


def test_a_server_that_knows_no_such_document(fake: FakeKube, reading: Reading) -> None:
    """It is too old, or a proxy asks it in its own way."""
    fake.fail(Answer(body={"kind": "APIGroupList", "groups": []}), path="/apis")
    with pytest.raises(InvalidRequest, match="has no aggregated discovery; Kubernetes has it"):
        reading.discover()
