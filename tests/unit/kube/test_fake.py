"""FakeKube's own machinery: scripts, going away. The contract suite has its API."""

import threading
from collections.abc import Iterator

import pytest

from reporter.errors import KubeError
from reporter.kube.api import KubeApi
from tests.fakekube import Answer, FakeKube, Hang, make_job, make_pod
from tests.integration.kube.connecting import read, watch
from tests.kube_client import connect


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube() as fake:
        fake.create_pod(make_pod(fake.create_job(make_job()), name="pod"))
        yield fake


@pytest.fixture
def api(fake: FakeKube) -> Iterator[KubeApi]:
    api = connect(fake)
    yield api
    api.close()


def outcomes(api: KubeApi, count: int) -> list[str]:
    found = []
    for _ in range(count):
        try:
            api.get("Pod", "default", "pod")
            found.append("ok")
        except KubeError as error:
            found.append(error.failure)
    return found


@pytest.mark.parametrize(
    ("nth", "times", "expected"),
    [
        (1, 1, ["unavailable", "ok", "ok", "ok"]),
        (3, 1, ["ok", "ok", "unavailable", "ok"]),
        (2, 2, ["ok", "unavailable", "unavailable", "ok"]),
        (2, None, ["ok", "unavailable", "unavailable", "unavailable"]),
        (9, 1, ["ok"] * 4),
    ],
)
def test_a_fault_strikes_the_nth_fitting_request(
    fake: FakeKube, api: KubeApi, nth: int, times: int | None, expected: list[str]
) -> None:
    """`hits` tells whether it did: without a hit a run was clean."""
    script = fake.fail(Answer(503), method="GET", path="/pods/", nth=nth, times=times)

    assert expected == outcomes(api, 4)
    assert expected.count("unavailable") == script.hits


def test_it_goes_away_with_all_its_threads(api: KubeApi, fake: FakeKube) -> None:
    """Also with an open watch and a request that hangs; it comes back on the same port."""
    address = fake.server
    fake.fail(Hang(), method="GET", path="/jobs/")
    watch = threading.Thread(target=lambda: outcome_of_watch(api))
    hanging = threading.Thread(target=lambda: outcome_of_job(api))
    watch.start()
    hanging.start()
    fake.wait_for(lambda: len(fake.journal) == 2)
    fake.stop()
    watch.join()
    hanging.join()
    assert [] == [one for one in threading.enumerate() if one.name.startswith("fakekube")]

    fake.start()
    assert address == fake.server
    assert ["ok"] == outcomes(api, 1)


def outcome_of_watch(api: KubeApi) -> None:
    with pytest.raises(KubeError):
        list(watch(api))


def outcome_of_job(api: KubeApi) -> None:
    with pytest.raises(KubeError):
        read(api, timeout=60)
