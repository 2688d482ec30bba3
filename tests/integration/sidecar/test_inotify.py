"""Wake-ups from a real inotify: what wakes, what does not, and what happens where there is none."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from reporter.sidecar.inotify import DirectoryWatch

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="inotify is Linux's; elsewhere the poll does it"
)
HANG = 10.0


@pytest.fixture
def reasons():
    """What the watch has said about not watching."""
    return []


@pytest.fixture
def path(tmp_path):
    """The result file, in a directory that is there."""
    directory = tmp_path / "results"
    directory.mkdir()
    return directory / "adapter-result.json"


@pytest.fixture
def watch(path, reasons):
    """A watch on the directory of the result and the progress file."""
    watch = DirectoryWatch.open([path, path.with_name("progress.json")], reasons.append)
    yield watch
    watch.close()


def woken(watch):
    """Is there something to drain within the hang bound?"""
    return bool(select.select([watch], [], [], HANG)[0])


def silent(watch):
    """Is there nothing to drain now? Events of our own process are queued before the call ends."""
    return not select.select([watch], [], [], 0)[0]


def test_a_quiet_directory_wakes_nobody(watch, reasons):
    """Draining nothing is no work and no error."""
    assert (True, False, []) == (silent(watch), watch.drain(), reasons)


@pytest.mark.parametrize("name", ["adapter-result.json", "progress.json"])
def test_a_file_that_is_written_wakes(watch, path, name):
    """Both files, from the first byte."""
    path.with_name(name).write_text("{}")
    assert (True, True) == (woken(watch), watch.drain())
    assert (True, False) == (silent(watch), watch.drain())


def test_a_file_that_is_renamed_into_place_wakes(watch, path):
    """What we advise to authors; the temporary file is not ours."""
    temporary = path.with_name(".tmp")
    temporary.write_text("{}")
    assert not watch.drain()
    temporary.rename(path)
    assert watch.drain()


def test_a_writer_that_keeps_the_file_open_wakes(watch, path):
    """There is no CLOSE_WRITE until the adapter ends."""
    with path.open("w") as file:
        watch.drain()
        file.write("{}")
        file.flush()
        assert watch.drain()


def test_a_file_that_becomes_readable_wakes(watch, path):
    """A change of mode changes what the reporter may see."""
    path.touch()
    watch.drain()
    path.chmod(0o600)
    assert watch.drain()


def test_other_files_are_drained_but_do_not_matter(watch, path):
    """An adapter may keep its scratch files there."""
    path.with_name("adapter-result.json.tmp").write_text("x")
    path.with_name("adapter").write_text("x")
    assert (True, False, True) == (woken(watch), watch.drain(), silent(watch))


def test_a_chatty_writer_costs_one_event_between_two_drains(watch, path):
    """Equal events merge in the queue, so one short read has them all."""
    with path.open("wb", buffering=0) as file:
        watch.drain()
        for _ in range(1000):
            file.write(b"x")
        assert 100 > len(os.read(watch.fileno(), 65536))


def test_an_overflow_of_the_queue_counts_as_a_change(watch, path):
    """What was lost is unknown, so look."""
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    names = [path.with_name("a"), path.with_name("b")]
    for name in names:
        name.touch()
    assert not watch.drain()
    for number in range(limit + 100):
        os.utime(names[number % 2])
    assert watch.drain()


def test_a_directory_that_comes_later_is_watched_after_repair(tmp_path, reasons):
    """Until then the poll does it; that is not worth a word."""
    path = tmp_path / "later" / "r.json"
    watch = DirectoryWatch.open([path], reasons.append)
    assert not watch.repair()
    path.parent.mkdir()
    assert (True, False) == (watch.repair(), watch.repair())
    path.write_text("{}")
    assert (True, []) == (watch.drain(), reasons)
    watch.close()


@pytest.mark.parametrize(
    "take_away",
    [lambda directory: directory.rmdir(), lambda directory: directory.rename(f"{directory}.old")],
    ids=["deleted", "moved away"],
)
def test_a_directory_that_goes_is_watched_again_when_it_is_back(watch, path, take_away):
    """The loss itself is a change; the old directory does not matter any more."""
    take_away(path.parent)
    assert (True, False) == (watch.drain(), watch.repair())
    path.parent.mkdir()
    assert watch.repair()
    watch.drain()
    old = Path(f"{path.parent}.old")
    if old.exists():
        (old / path.name).write_text("{}")
        assert not watch.drain()
    path.write_text("{}")
    assert watch.drain()


def test_two_names_of_one_directory_share_a_watch(tmp_path, path):
    """The kernel knows the directory, not the path to it."""
    link = tmp_path / "link"
    link.symlink_to(path.parent)
    watch = DirectoryWatch.open([path, link / "progress.json"])
    assert not watch.repair()
    for name in (path.name, "progress.json"):
        path.with_name(name).write_text("{}")
        assert watch.drain()
    watch.close()


def test_a_directory_that_is_none_is_told_once(path, reasons):
    """Repair tries again and again, the log stays readable."""
    path.touch()
    watch = DirectoryWatch.open([path / "r.json"], reasons.append)
    assert not watch.repair()
    assert ["the directory cannot be watched: not a directory"] == reasons
    watch.close()


def no_library():
    """As on a system whose C library cannot be loaded."""
    raise OSError("no such library")


@pytest.mark.parametrize("load", [object, no_library], ids=["no inotify in it", "no library"])
def test_a_system_without_inotify_gives_a_reason_and_no_watch(path, reasons, load):
    """Polling goes on alone."""
    assert DirectoryWatch.open([path], reasons.append, load=load) is None
    assert 1 == len(reasons)
    assert reasons[0].startswith("no inotify on this system: ")


WITHOUT_DESCRIPTORS = """
import resource, sys
from pathlib import Path
from reporter.sidecar.inotify import DirectoryWatch
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
print(DirectoryWatch.open([Path("/tmp/r.json")], print, load=lambda: libc))
"""


def test_a_node_that_has_run_out_of_instances_gives_a_reason(tmp_path):
    """The kernel's EMFILE: 128 instances are shared by all containers of a user."""
    command = [sys.executable, "-c", WITHOUT_DESCRIPTORS]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert "no inotify: too many open files\nNone\n" == done.stdout
