"""The fixture `api`: the same few verbs on the fake and on the real API server."""

from collections.abc import Iterator

import pytest

from tests.contract.servers import FakeServer, RealServer, Server


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.cluster)])
def api(request: pytest.FixtureRequest) -> Iterator[Server]:
    """An API server with an empty namespace, and no Job controller's write under way."""
    if request.param == "fake":
        with FakeServer() as server:
            yield server
    else:
        with RealServer(request.getfixturevalue("controlplane")) as server:
            yield server
