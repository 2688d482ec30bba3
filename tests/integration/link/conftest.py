"""What every test of the link needs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from reporter.link import AggregatorClient, WorkerConfig
from tests.integration.link.fake_time import FakeTime


@pytest.fixture
def fake_time() -> FakeTime:
    """A clock that only waiting moves."""
    return FakeTime()


@pytest.fixture
def events() -> list[tuple[str, dict[str, object]]]:
    """What the clients of `connect` told."""
    return []


@pytest.fixture
def connect(
    fake_time: FakeTime, events: list[tuple[str, dict[str, object]]]
) -> Iterator[Callable[..., AggregatorClient]]:
    """Make a client on the fake clock, always rolling the longest wait but one; closed later."""
    with ExitStack() as stack:

        def make(config: WorkerConfig, **options: object) -> AggregatorClient:
            given: dict[str, object] = {
                "clock": fake_time.clock,
                "stop": fake_time,
                "sleep": fake_time.sleep,
                "rng": lambda: 0.999,
                "on_event": lambda name, facts: events.append((name, facts)),
            }
            client = AggregatorClient(config, **{**given, **options})  # type: ignore[arg-type]
            return stack.enter_context(client)

        yield make
