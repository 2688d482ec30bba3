"""Fixtures of the integration tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reporter.common import log
from reporter.kube.api import KubeApi
from tests.aggregators import stores
from tests.fakekube import FakeKube
from tests.integration.scene import Scene, staged
from tests.kube_client import connect


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """A fake API server and a directory for the adapter's files; no reporter yet."""
    with log.capture() as logs, staged(tmp_path, logs) as scene:
        yield scene


@pytest.fixture
def api(fake: FakeKube) -> Iterator[KubeApi]:
    """Access to the API server of a test."""
    api = connect(fake)
    yield api
    api.close()


@pytest.fixture(scope="session", autouse=True)
def memory() -> Iterator[None]:
    """Leave nothing in it."""
    stores.prepare()
    yield
    stores.sweep()
