"""The result file on a real file system: whatever an adapter can put there."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reporter.sidecar.files import (
    MOST_ENTRIES,
    QUIET_NS,
    Content,
    ResultFile,
    Unchanged,
    Unreadable,
    content_of,
    names_in,
    read_bounded,
)
from reporter.verdict.adapter_files import MAX_RESULT_BYTES
from reporter.verdict.facts import (
    FileAbsent,
    FileIdentity,
    FileInvalid,
    FileReadFailed,
    FileValid,
    ResultPayload,
    Searched,
)

SUCCESS = b'{"status": "success", "reason": "R", "message": "m"}'
FAILURE = b'{"status": "failure", "reason": "R", "message": "m"}'
HANG = 20.0

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux's /proc")


@pytest.fixture
def path(tmp_path):
    """Where the result is expected."""
    return tmp_path / "adapter-result.json"


@pytest.fixture
def open_directory():
    """A short-named directory that every user may enter."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def identity(path):
    """What `stat` says about the name itself."""
    found = path.lstat()
    return FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def cause(path):
    """Why the look says that this is no result; its identity is always that of the name."""
    look = ResultFile(path).look()
    assert isinstance(look, FileInvalid)
    assert identity(path) == look.identity
    return look.cause


def test_a_valid_result_is_read(path):
    """The decoded result and the file it came from."""
    path.write_bytes(SUCCESS)
    expected = FileValid(ResultPayload(True, "R", "m"), identity(path))
    assert expected == ResultFile(path).look()


def test_no_file_is_absent(path):
    """Nor is one in a volume that is mounted later an error."""
    assert FileAbsent() == ResultFile(path).look()
    assert FileAbsent() == ResultFile(path.parent / "later" / "result.json").look()


def test_a_half_written_file_is_invalid_until_it_is_complete(path):
    """The next look finds the rest."""
    results = ResultFile(path)
    path.write_bytes(SUCCESS[:20])
    assert isinstance(results.look(), FileInvalid)
    path.write_bytes(SUCCESS)
    assert isinstance(results.look(), FileValid)


def bound(path):
    """A socket, by a name that is short enough for one."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)


def linked_to_a_result(path):
    other = path.with_name("other.json")
    other.write_bytes(SUCCESS)
    path.symlink_to(other)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("a named pipe (FIFO)", os.mkfifo),  # a naive open would hang for ever
        ("a directory", os.mkdir),
        ("a symbolic link", linked_to_a_result),
        ("a symbolic link", lambda path: path.symlink_to("nowhere")),
        ("a socket", bound),
    ],
)
def test_what_is_no_regular_file_is_refused(path, kind, make, monkeypatch):
    """Another file's content never gets into the condition, and nobody waits."""
    monkeypatch.chdir(path.parent)
    make(path)

    assert f"the file is {kind}, not a regular file" == cause(path)


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero", "/dev/tty"])
def test_a_device_is_refused(device):
    """An endless one too, and one that may not be there for this process."""
    look = ResultFile(Path(device)).look()
    assert "the file is a device, not a regular file" == look.cause


def test_a_file_of_exactly_the_size_cap_is_read(path):
    """The last allowed byte is allowed; a sparse file of a terabyte costs nothing."""
    path.write_bytes(SUCCESS.ljust(MAX_RESULT_BYTES))
    assert isinstance(ResultFile(path).look(), FileValid)
    for size in (MAX_RESULT_BYTES + 1, 1 << 40):
        os.truncate(path, size)
        assert f"the file is larger than {MAX_RESULT_BYTES} bytes" == cause(path)


def test_a_directory_that_is_a_file_is_invalid(tmp_path):
    """The path leads through something that is no directory."""
    (tmp_path / "file").touch()
    look = ResultFile(tmp_path / "file" / "r.json").look()
    cause = "the file is in a directory that cannot be opened: not a directory"
    assert FileInvalid(cause, None) == look


def volume(tmp_path, monkeypatch):
    """A volume mounted at `run/my volume`, which the path `var/run/my volume` leads to."""
    mounted = tmp_path / "run" / "my volume"
    mounted.mkdir(parents=True)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "run").symlink_to(tmp_path / "run")
    table = tmp_path / "mountinfo"
    shown = str(mounted).replace(" ", "\\040")
    table.write_text(f"20 1 0:5 / / rw - ext4 a rw\n21 20 0:6 / {shown} rw - tmpfs b rw\n")
    monkeypatch.setattr("reporter.sidecar.files.MOUNTS", table)
    return tmp_path / "var" / "run" / "my volume"


def test_a_link_above_the_mount_point_is_followed(tmp_path, monkeypatch):
    """Images have such links, as /var/run; the adapter cannot make one there."""
    path = volume(tmp_path, monkeypatch) / "r.json"
    path.write_bytes(SUCCESS)
    assert isinstance(ResultFile(path).look(), FileValid)


@pytest.mark.parametrize("below", ["link", "link/deep", "a/link"])
def test_no_link_on_the_volume_is_followed(tmp_path, monkeypatch, below):
    """The adapter could lead us to a file of our own, and to the names beside it."""
    mounted = volume(tmp_path, monkeypatch)
    (mounted / "a").mkdir()
    real = tmp_path / "real"
    (real / "deep").mkdir(parents=True)
    for link in (mounted / "link", mounted / "a" / "link"):
        link.symlink_to(real)
    for directory in (real, real / "deep"):
        (directory / "r.json").write_bytes(SUCCESS)
    results = ResultFile(mounted / below / "r.json")

    link = mounted / below.removesuffix("/deep")
    assert (
        FileInvalid(f"the file is behind a symbolic link, which is not followed: {link}", None)
        == results.look()
    )
    assert () == results.search().found


def test_without_a_mount_on_the_way_no_link_is_followed(tmp_path):
    """Also one that leads nowhere."""
    (tmp_path / "link").symlink_to("nowhere")
    look = ResultFile(tmp_path / "link" / "r.json").look()
    assert look.cause.startswith("the file is behind a symbolic link")


def test_a_directory_is_read_below_one_mount_after_another(tmp_path, monkeypatch):
    """`..` and a mount inside the mount are no links."""
    mounted = volume(tmp_path, monkeypatch)
    (mounted / "inner").mkdir()
    (mounted / "inner" / "r.json").write_bytes(SUCCESS)
    assert isinstance(ResultFile(mounted / "x" / ".." / "inner" / "r.json").look(), FileValid)


def test_a_system_that_does_not_show_its_mounts_follows_links(tmp_path, monkeypatch):
    """Only `status-ctl try` runs on such."""
    monkeypatch.setattr("reporter.sidecar.files.MOUNTS", tmp_path / "none")
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "r.json").write_bytes(SUCCESS)
    assert isinstance(ResultFile(tmp_path / "link" / "r.json").look(), FileValid)


AS_NOBODY = """
import os, sys
from pathlib import Path
from reporter.sidecar.files import ResultFile
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
results = ResultFile(Path(sys.argv[1]))
look = results.look()
print(type(look).__name__, getattr(look, "cause", ""), sep=": ")
print(*results.search().found)
"""


def look_as_nobody(path):
    """What a process without root's rights sees: the file, and what lies beside it.

    It may not write down its coverage either.
    """
    command = [sys.executable, "-c", AS_NOBODY, str(path)]
    environ = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=HANG, env=environ
    )
    assert "" == done.stderr
    return done.stdout.split("\n")[:2]


def test_a_file_that_may_not_be_read_is_told_with_its_mode(open_directory):
    """An adapter with umask 077 and another user: the mode is what its author must change."""
    path = open_directory / "r.json"
    path.write_bytes(SUCCESS)
    path.chmod(0o200)
    expected = "FileInvalid: the file cannot be opened: permission denied (mode 0200)"
    assert [expected, "r.json"] == look_as_nobody(path)
    path.chmod(0o644)
    assert "FileValid: " == look_as_nobody(path)[0]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (0o000, "FileInvalid: the file cannot be opened: permission denied"),  # not absent
        (0o111, "FileValid: "),  # its names cannot be listed, and nothing is raised
    ],
)
def test_a_directory_that_may_not_be_listed(open_directory, mode, expected):
    """Opening a known name needs the right to enter it, and no more."""
    for name in ("r.json", "other.json"):
        (open_directory / name).write_bytes(SUCCESS)
    open_directory.chmod(mode)
    try:
        assert [expected, ""] == look_as_nobody(open_directory / "r.json")
    finally:
        open_directory.chmod(0o755)


@linux_only
def test_a_read_error_is_told_by_its_name():
    """The first page of a process's memory gives EIO."""
    assert Unreadable("cannot be read: input/output error", passing=True) == read_bounded(
        Path(f"/proc/{os.getpid()}/mem"), 100
    )


def failing(monkeypatch, path, number, *, directory=False):
    """Opening the file, or its directory, fails with that error."""
    real = os.open

    def fail(name, flags, *rest, **more):
        if bool(flags & os.O_DIRECTORY) is directory:
            raise OSError(number, os.strerror(number))
        return real(name, flags, *rest, **more)

    monkeypatch.setattr(os, "open", fail)


@pytest.mark.parametrize("directory", [False, True], ids=["file", "directory"])
@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EMFILE, errno.ETIMEDOUT])
def test_an_error_that_may_pass_says_nothing_about_the_file(path, monkeypatch, number, directory):
    """A file server restarts, descriptors run out: what was read before is kept."""
    path.write_bytes(SUCCESS)
    outcomes = []
    results = ResultFile(path, on_read=outcomes.append)
    with monkeypatch.context() as patched:
        failing(patched, path, number, directory=directory)
        unread = results.look()
        assert isinstance(unread, FileReadFailed)
        assert unread.before is None
        assert unread.cause.endswith(os.strerror(number).lower())
        assert ["unreadable"] == outcomes
    before = results.look()
    assert isinstance(before, FileValid)
    with monkeypatch.context() as patched:
        failing(patched, path, number, directory=directory)
        assert before == results.look().before
    path.write_bytes(b"{")
    assert isinstance(results.look(), FileInvalid)
    with monkeypatch.context() as patched:
        failing(patched, path, number, directory=directory)
        assert results.look().before is None


@pytest.mark.parametrize(
    "number", [errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO, errno.EXDEV, errno.ENAMETOOLONG]
)
def test_an_error_that_lasts_makes_the_file_invalid(path, monkeypatch, number):
    failing(monkeypatch, path, number)
    path.write_bytes(SUCCESS)
    look = ResultFile(path).look()

    assert (FileInvalid, identity(path)) == (type(look), look.identity)


@linux_only
def test_a_file_that_says_it_is_empty_is_read_to_the_limit_only():
    """Some file systems do not know the size: st_size is a hint."""
    path = Path(f"/proc/{os.getpid()}/status")
    assert Unreadable("is larger than 10 bytes", identity(path)) == read_bounded(path, 10)
    assert isinstance(read_bounded(path, 100_000), Content)


def test_a_known_file_is_not_read_again(path):
    """The caller's identity is compared on the open descriptor."""
    path.write_bytes(SUCCESS)
    known = identity(path)
    assert Content(SUCCESS, known) == read_bounded(path, 100)
    assert Unchanged() == read_bounded(path, 100, known)
    path.unlink()
    assert FileAbsent() == read_bounded(path, 100, known)


def test_a_file_that_never_stops_changing_is_torn_not_a_hang(path, monkeypatch):
    """A writer that is always quicker: every try is spoilt, and the look comes back."""
    path.write_bytes(SUCCESS.ljust(900_000))
    outcomes = []
    results = ResultFile(path, on_read=outcomes.append)
    read = os.read

    def spoilt(file, count):
        data = read(file, count)
        if len(data) >= 900_000:
            with path.open("ab") as writer:
                writer.write(b" ")
        return data

    with monkeypatch.context() as patched:
        patched.setattr(os, "read", spoilt)
        look = results.look()

    assert ["torn"] == outcomes
    assert FileInvalid("the file was changed while it was read", look.identity) == look
    assert isinstance(results.look(), FileValid)
    assert isinstance(read_bounded(path, MAX_RESULT_BYTES), Content)


class Readings:
    """A result file whose reads are counted, with a clock that is so far ahead of the file."""

    def __init__(self, path, ahead_ns):
        self.outcomes = []
        self.path = path
        self.ahead_ns = ahead_ns
        self.results = ResultFile(path, on_read=self.outcomes.append, clock=self.clock)

    def clock(self):
        return self.path.stat().st_ctime_ns + self.ahead_ns


def test_an_old_file_is_read_once(path):
    """Polling an unchanged file costs no decoding."""
    path.write_bytes(SUCCESS)
    readings = Readings(path, QUIET_NS + 1)
    first = readings.results.look()
    assert [first, first] == [readings.results.look(), readings.results.look()]
    assert ["valid"] == readings.outcomes


@pytest.mark.parametrize("ahead_ns", [0, QUIET_NS, -10_000_000_000])
def test_a_young_file_is_read_again(path, ahead_ns):
    """Within one tick of the kernel's clock a file can change and keep its times."""
    path.write_bytes(SUCCESS)
    readings = Readings(path, ahead_ns)
    readings.results.look()
    readings.results.look()
    assert ["valid", "valid"] == readings.outcomes


def test_every_rewrite_is_seen_at_once(path):
    """In place, same size, as fast as possible: the look never shows the former content."""
    results = ResultFile(path)
    wrong = 0
    for number in range(500):
        path.write_bytes(SUCCESS if number % 2 else FAILURE)
        wrong += results.look().result.success != bool(number % 2)
    assert 0 == wrong


def test_outcomes_are_told_to_the_metrics(path):
    """One word for every look that read something."""
    outcomes = []
    results = ResultFile(path, on_read=outcomes.append)
    results.look()
    path.mkdir()
    results.look()
    path.rmdir()
    path.write_text("{")
    results.look()
    path.write_text(json.dumps({"status": "success"}))
    results.look()
    assert ["absent", "unreadable", "invalid", "valid"] == outcomes


def test_no_descriptor_is_left_open(path):
    """A look a second for a month must not run out of descriptors."""
    path.write_bytes(SUCCESS)
    results = ResultFile(path)
    results.look()
    before = os.dup(0)
    os.close(before)
    for prepare in (
        path.unlink,
        lambda: os.mkfifo(path),
        path.unlink,
        lambda: path.symlink_to("x"),
    ):
        prepare()
        results.look()
    after = os.dup(0)
    os.close(after)
    assert before == after


# What lies there instead of a result


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param([], (), id="nothing"),
        pytest.param(["result.json"], ("result.json",), id="another name"),
        pytest.param(
            ["z.txt", "b.json", "a.txt", "adapter-result.json.tmp", "y.txt"],
            ("adapter-result.json.tmp", "b.json", "a.txt"),
            id="those that resemble it first, three at most",
        ),
        pytest.param(["progress.json", "a"], ("a",), id="a file that is meant to be there"),
        pytest.param(["a\x1b[31m\n\u202eb"], ("a[31m b",), id="control characters"),
        pytest.param([b"\xff.json"], ("\ufffd.json",), id="no UTF-8"),
        pytest.param(["\x01"], ("?",), id="nothing that can be shown"),
        pytest.param(["\u00e4" * 100], ("\u00e4" * 32,), id="long"),
    ],
)
def test_names_that_lie_there_instead(path, names, expected):
    """Cleaned and cut, because whoever wrote them may be hostile."""
    for name in names:
        (path.parent / os.fsdecode(name)).touch()

    searched = ResultFile(path, others=[path.with_name("progress.json")]).search()
    assert Searched(str(path)[:256], expected) == searched


def test_a_huge_directory_is_not_read_to_its_end(path):
    """Three of its names are enough, and a thousand are looked at."""
    for number in range(1500):
        (path.parent / f"{number:04}").touch()

    assert 3 == len(ResultFile(path).search().found)
    assert 1000 == len(names_in(path.parent, MOST_ENTRIES))


def test_a_directory_that_is_not_there_or_is_none(path):
    """The path is told all the same."""
    assert Searched("/nowhere/a.json") == ResultFile(Path("/nowhere/a.json")).search()
    path.touch()
    assert () == ResultFile(path / "a.json").search().found


@pytest.mark.parametrize("now", [None, b"", b"{", FAILURE, SUCCESS.replace(b'"m"', b'"n"')])
def test_what_an_aggregator_is_given_says_what_the_verdict_says(path, now):
    """A file that has gone or has changed since is not sent in its name."""
    path.write_bytes(SUCCESS)
    verdict = ResultPayload(True, "R", "m")
    before = content_of(path, verdict)
    path.unlink()
    if now is not None:
        path.write_bytes(now)

    assert (SUCCESS, None) == (before, content_of(path, verdict))


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (FileNotFoundError, FileAbsent()),
        (PermissionError, Unreadable("cannot be opened: permission denied", None)),
    ],
)
def test_a_file_that_is_refused_and_then_goes(path, monkeypatch, error, found):
    """Why it was refused is asked of a name that may be gone, or forbidden, by then."""
    real = os.open

    def refuse(name, flags, *rest, **more):
        if name == path.name:
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(name, flags, *rest, **more)

    def stat(*_, **__):
        raise error(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        patched.setattr(os, "stat", stat)
        seen = read_bounded(path, 100)

    assert found == seen
