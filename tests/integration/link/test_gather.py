"""From done file to delivery, in a time that only passes when somebody waits."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from reporter.link.gather import GatherFailure
from reporter.link.messages import Outcome
from tests.archives.tars import contents
from tests.integration.link.world import World
from tests.nested import nest


@pytest.fixture
def world(tmp_path: Path) -> World:
    (tmp_path / "results").mkdir()
    return World(tmp_path / "results")


@contextlib.contextmanager
def unprivileged(world: World) -> Iterator[None]:
    """Be somebody to whom modes mean something."""
    world.results.chmod(0o777)
    for above in list(world.results.parents)[:-2]:
        above.chmod(0o755)
    world.config()  # what it imports only root may read here
    import_module("reporter.link.tree_archive")
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_result_goes_out_once_after_the_delay(world: World) -> None:
    """W1: the done file is seen at the first look, and after the delay the result goes out."""
    (world.results / "a.json").write_bytes(b'{"a": 1}')
    world.done(f"{world.results}/a.json\n")

    delivery = world.gather(done_file_delay=5.0)

    (put,) = world.puts
    assert (5.2, "a.json", "application/json", b'{"a": 1}') == (
        put.at,
        put.name,
        put.content_type,
        put.body,
    )
    assert delivery.delivered


@pytest.mark.parametrize(
    ("delay", "done", "stopped", "early", "late"),
    [
        pytest.param(5.0, {7199.5: "a.txt"}, None, 7204.5, 7205.5, id="a plugin of hours"),
        pytest.param(None, {0.1: "a.txt"}, None, 1.1, 1.5, id="a quick plugin"),
        pytest.param(None, {1.0: "a.txt"}, None, 2.0, 2.4, id="one of a second"),
        pytest.param(None, {5.0: "a.txt"}, None, 6.0, 6.7, id="one of five seconds"),
        pytest.param(None, {9.0: "a.txt"}, None, 10.0, 11.1, id="one of nine seconds"),
        pytest.param(0.0, {0.0: "a.txt"}, None, 0.2, 0.2, id="no delay"),
        pytest.param(5.0, {0.0: "", 4.0: "a.txt"}, None, 5.2, 5.2, id="read after the delay"),
        pytest.param(None, {103.0: "a.txt"}, 100.0, 103.0, 103.5, id="soon after a signal"),
        pytest.param(5.0, {0.0: "a.txt"}, 2.5, 2.5, 2.5, id="a signal during the delay"),
        pytest.param(None, {0.0: "a.txt"}, 0.0, 0.2, 0.2, id="a signal before the first look"),
        pytest.param(None, {3.0: "", 3.3: "a.txt"}, 0.0, 3.3, 3.8, id="half a file after a signal"),
    ],
)
def test_when_a_result_goes_out(
    world: World,
    delay: float | None,
    done: dict[float, str],
    stopped: float | None,
    early: float,
    late: float,
) -> None:
    """W1, W7, W8, W12: after its delay; a look comes up to a tenth of the plugin's time late.

    After a signal looks come five times a second, and nothing is waited for but an empty done file.
    """
    (world.results / "a.txt").write_bytes(b"-")
    deeds: list[tuple[float, Callable[[], object]]] = [
        (at, partial(world.done, text)) for at, text in done.items()
    ]
    if stopped is not None:
        deeds.append((stopped, world.stop))
    for at, deed in deeds:
        if at:
            world.at(at, deed)
        else:
            deed()

    delivery = world.gather(done_file_delay=delay)

    assert ["a.txt"] == [put.name for put in world.puts]
    assert early <= world.puts[0].at <= late
    assert delivery.delivered


class TestWithoutADelayThatWasSet:
    """The result is read when it and the done file have not changed for a second."""

    def test_a_plugin_that_still_writes(self, world: World) -> None:
        """It says that it is done too early, and goes on for three seconds."""
        result = world.results / "a.txt"
        result.write_bytes(b"")
        world.done("a.txt")
        for at in range(6):
            world.at(at / 2 + 0.5, lambda at=at: result.write_bytes(b"-" * (at + 1)))

        world.gather()

        (put,) = world.puts
        assert b"------" == put.body
        assert 4.0 <= put.at <= 4.4

    def test_a_result_that_comes_after_the_done_file(self, world: World) -> None:
        world.done("a.txt")
        world.at(3.0, lambda: (world.results / "a.txt").write_bytes(b"-"))

        world.gather()

        (put,) = world.puts
        assert "a.txt" == put.name
        assert 4.0 <= put.at <= 4.4

    def test_another_path_meanwhile(self, world: World) -> None:
        """A path that is written in pieces may begin with that of another file."""
        for name in ("a", "a.txt"):
            (world.results / name).write_bytes(name.encode())
        world.done("a")
        world.at(0.9, lambda: world.done("a.txt"))

        world.gather()

        assert [b"a.txt"] == [put.body for put in world.puts]

    @pytest.mark.parametrize("what", ["a directory", "a file that grows for ever", "nothing"])
    def test_five_seconds_are_enough(self, world: World, what: str) -> None:
        """What a directory holds may change unseen; who never stops has had its time."""
        result = world.results / "a"
        world.done("a")
        if what == "a directory":
            result.mkdir()
        elif what != "nothing":
            for at in range(40):
                world.at(at / 4, lambda at=at: result.write_bytes(b"-" * at))

        world.gather()

        (put,) = world.puts
        assert 5.0 < put.at <= 5.4
        assert (what == "nothing") == bool(put.error)

    def test_a_signal_ends_the_wait(self, world: World) -> None:
        (world.results / "a").mkdir()
        world.done("a")
        world.at(0.5, world.stop)

        world.gather()

        (put,) = world.puts
        assert 0.5 <= put.at <= 0.75


def test_what_the_aggregator_says_is_what_comes_of_it(world: World) -> None:
    """W5: gather adds nothing to the client's verdict."""
    (world.results / "a.txt").write_bytes(b"-")
    world.done("a.txt")
    world.outcome = Outcome.REFUSED

    assert Outcome.REFUSED is world.gather().outcome


def test_a_directory_goes_out_as_an_archive(world: World) -> None:
    """W4, F16: relative names, a file that is called like the archive, no link, no done file."""
    (world.results / "sub").mkdir()
    (world.results / "sub/results.tar.gz").write_bytes(b"the plugin's own")
    (world.results / "sub/done").write_bytes(b"the plugin's own")
    (world.results / "a.txt").write_bytes(b"a")
    (world.results / "link").symlink_to("/etc/hostname")
    world.done(world.results)

    world.gather()

    (put,) = world.puts
    assert ("results.tar.gz", "application/gzip") == (put.name, put.content_type)
    assert {
        "a.txt": b"a",
        "sub/done": b"the plugin's own",
        "sub/results.tar.gz": b"the plugin's own",
    } == contents(put.body)
    assert ["a.txt", "done", "link", "sub"] == sorted(os.listdir(world.results))


def test_a_directory_that_only_its_plugin_can_write(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made by root, packed by a worker that is not, in a container with a read-only root."""
    monkeypatch.setattr(tempfile, "tempdir", str(world.results / "missing"))
    (world.results / "sub").mkdir()
    (world.results / "sub/a.txt").write_bytes(b"a")
    (world.results / "sub").chmod(0o555)
    world.done(world.results / "sub")

    with unprivileged(world):
        world.gather()

    (put,) = world.puts
    assert {"a.txt": b"a"} == contents(put.body)


def test_a_link_to_a_directory_that_the_worker_may_not_enter(world: World, tmp_path: Path) -> None:
    """Links are left out, wherever they lead."""
    (tmp_path / "closed").mkdir(mode=0o700)
    (world.results / "out").mkdir()
    (world.results / "out/a.txt").write_bytes(b"a")
    (world.results / "out/home").symlink_to(tmp_path / "closed")
    world.done(world.results / "out")
    (tmp_path / "closed").chmod(0o000)

    with unprivileged(world):
        world.gather()

    (put,) = world.puts
    assert {"a.txt": b"a"} == contents(put.body)


def test_a_directory_behind_a_link_of_the_mount(world: World, tmp_path: Path) -> None:
    """W4: the done file is left out by its full path, whatever way leads to it."""
    (tmp_path / "link").symlink_to(world.results)
    (world.results / "a.txt").write_bytes(b"a")
    world.done(tmp_path / "link")

    world.gather(results_dir=tmp_path / "link")

    assert {"a.txt": b"a"} == contents(world.puts[0].body)


def test_a_done_file_that_goes_away_during_the_delay(world: World) -> None:
    """W7: another sidecar took it; the next one counts, and only that."""
    (world.results / "second.txt").write_bytes(b"second")
    world.done("first.txt")
    world.at(3.0, (world.results / "done").unlink)
    world.at(60.0, lambda: world.done("second.txt"))

    world.gather()

    assert [("second.txt", b"second")] == [(put.name, put.body) for put in world.puts]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "empty_done_file"),
        ("missing.json", "no_result"),
    ],
)
def test_a_done_file_without_a_result(world: World, text: str, cause: str) -> None:
    """W9: the aggregator is told, and nothing was delivered."""
    world.done(text)

    delivery = world.gather()

    assert [cause] == [put.error[1] for put in world.puts if put.error]
    assert (Outcome.GAVE_UP, (world.puts[0].error or ("", ""))[0]) == (
        delivery.outcome,
        delivery.text,
    )


def test_a_result_that_may_not_be_read(world: World) -> None:
    """W19: its name tells the client which type a Sonobuoy aggregator is told."""
    (world.results / "a.tar.gz").write_bytes(b"-")
    (world.results / "a.tar.gz").chmod(0)
    world.done("a.tar.gz")

    with unprivileged(world):
        delivery = world.gather()

    (put,) = world.puts
    assert ("unreadable_result", "a.tar.gz") == ((put.error or ("", ""))[1], put.unreadable)
    assert not delivery.delivered


def test_a_directory_that_cannot_be_packed(world: World) -> None:
    """W19: an archive with a hole in it is none."""
    nest(world.results, 250)
    world.done(world.results)

    delivery = world.gather()

    (put,) = world.puts
    assert ("unreadable_result", "results.tar.gz") == ((put.error or ("", ""))[1], put.unreadable)
    assert not delivery.delivered


def test_a_signal_without_results(world: World) -> None:
    """W12: five seconds before the end of the grace period somebody is told."""
    world.at(100.0, world.stop)

    delivery = world.gather()

    (put,) = world.puts
    assert ("terminated before results", "terminated") == put.error
    assert 155.0 <= put.at < 155.5
    assert "terminated before results" == delivery.text
    assert not delivery.delivered


def test_a_signal_and_a_done_file_that_stays_empty(world: World) -> None:
    """W12: five seconds before the end of the grace period that is what is told."""
    world.done("")
    world.stop()

    world.gather()

    (put,) = world.puts
    assert ("the done file is empty", "empty_done_file") == put.error
    assert 55.0 <= put.at < 55.5


def test_a_plugin_that_has_failed(world: World) -> None:
    """W11: words and what there is of the output."""
    (world.results / "log.txt").write_bytes(b"so far")
    world.at(
        30.0, lambda: setattr(world, "failure", GatherFailure("exit 1", "failed", partial=True))
    )

    delivery = world.gather()

    (put,) = world.puts
    assert ("exit 1", "failed") == put.error
    assert b"so far" == contents(put.body)["output/log.txt"]
    assert (Outcome.GAVE_UP, "exit 1") == (delivery.outcome, delivery.text)


@pytest.mark.parametrize("linked", [False, True], ids=["not there", "a link to something else"])
def test_partial_output_that_cannot_be_packed(world: World, tmp_path: Path, linked: bool) -> None:
    """W11: then the words alone; a link could lead to this process's own key."""
    world.failure = GatherFailure("exit 1", "failed", partial=True)
    world.results.rmdir()
    if linked:
        (tmp_path / "secrets").mkdir()
        world.results.symlink_to("secrets")

    world.gather()

    assert [(("exit 1", "failed"), b"")] == [(put.error, put.body) for put in world.puts]


def test_a_done_file_counts_more_than_a_failure(world: World) -> None:
    """W11: whoever says where the result is has one."""
    (world.results / "a.txt").write_bytes(b"-")
    world.done("a.txt")
    world.failure = GatherFailure("exit 1", "failed", partial=True)

    assert world.gather().delivered
