"""Fixtures of the tests of the Kubernetes client."""

from collections.abc import Iterator

import pytest

from tests.fakekube import FakeKube, make_job, make_pod
from tests.integration.kube.connecting import JOB


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube() as fake:
        fake.create_pod(make_pod(fake.create_job(make_job(JOB)), name="pod"))
        yield fake
