"""When the loop reports an adapter that runs or does not start, on a clock of the test's own."""

from reporter.sidecar.publish import LoopOutcome
from tests.unit.sidecar.loop_world import World, running, stamp, waiting

# Row A


def test_a_running_adapter_is_reported_at_once() -> None:
    """One read, one write, and nothing more until something changes."""
    world = World()

    assert world.run(200) is None
    assert [(0.0, "A", False)] == world.history
    assert [(0.0, "GET"), (0.0, "PATCH")] == world.requests


def test_an_adapter_that_starts_soon_is_reported_once() -> None:
    """A container usually starts within two seconds after ours: one write instead of two."""
    world = World(adapter=waiting("PodInitializing"))
    world.at(1.0, lambda: world.adapter(running(stamp(1))))

    assert world.run(20) is None
    assert [(1.0, "A", False)] == world.history
    assert "Adapter container is running" == world.condition["message"]


def test_a_job_whose_image_is_pulled_first_asks_seven_times() -> None:
    """In ten minutes; with the one watch that lasts as long, the Event included, that is eight."""
    world = World(adapter=waiting("PodInitializing"), wait=3600.0)
    world.at(10.0, lambda: world.adapter(running(stamp(10))))
    world.at(600.0, world.result)
    world.at(600.1, world.end)

    assert LoopOutcome.FINAL is world.run()
    texts = [(2.0, "A", False), (32.0, "A", False)]
    assert texts == world.history[:2]
    assert ["GET", "PATCH", "GET", "PATCH", "GET", "PATCH", "POST"] == [
        m for _, m in world.requests
    ]


def test_progress_is_written_every_30_seconds_at_most() -> None:
    """However often it changes."""
    world = World(poll_interval=1000.0, wait=10_000.0)
    for second in range(1, 100):
        world.at(float(second), lambda n=second: world.progress(completed=n, total=100))

    assert world.run(100) is None
    assert [0.0, 30.0, 60.0, 90.0] == [at for at, _, _ in world.history]
    assert world.condition["message"].endswith("; 90 of 100 completed")


def test_row_a_is_not_written_where_it_is_not_wanted() -> None:
    """REPORT_RUNNING=false: one read, no write."""
    world = World(report_running=False)

    assert world.run(100) is None
    assert [] == world.history
    assert [(0.0, "GET")] == world.requests


def test_a_report_of_trouble_is_taken_back_even_then() -> None:
    """What was said has become wrong."""
    world = World(adapter=waiting("InvalidImageName"), report_running=False)
    world.at(50.0, lambda: world.adapter(running(stamp(50))))

    assert world.run(60) is None
    assert [(0.0, "W1", False), (50.0, "A", False)] == world.history
