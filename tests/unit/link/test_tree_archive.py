"""A directory as an archive: what is in it, what is not, what somebody who changes it can do."""

import io
import os
import socket
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reporter.link.tree_archive import pack, spool
from reporter.untar import Archive, Caps
from tests.nested import nest


def archive(path: Path, *exclude: Path, **options: Any) -> bytes:
    out = io.BytesIO()
    pack(path, out, exclude=exclude, **options)
    return out.getvalue()


def members(data: bytes) -> dict[str, bytes | None]:
    """Names in their order; the content of files, None for directories."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as tar:
        found: dict[str, bytes | None] = {}
        for member in tar:
            content = tar.extractfile(member)
            found[member.name] = content.read() if content else None
        return found


def test_relative_names_with_their_bytes(tmp_path: Path) -> None:
    """Neither the directory's own path nor `./` is in a name."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b/z.txt").write_bytes(b"z")
    (tmp_path / "b/empty").mkdir()
    (tmp_path / "a.bin").write_bytes(bytes(range(256)) * 3000)

    found = members(archive(tmp_path))

    assert {
        "a.bin": bytes(range(256)) * 3000,
        "b": None,
        "b/empty": None,
        "b/z.txt": b"z",
    } == found


def test_repeated_path_parts_stay(tmp_path: Path) -> None:
    """F16: `x/x/x.txt` in a directory that is itself called x."""
    inner = tmp_path / "x/x/x"
    inner.mkdir(parents=True)
    (inner / "x.txt").write_bytes(b"x")

    data = archive(tmp_path / "x")

    assert {"x": None, "x/x": None, "x/x/x.txt": b"x"} == members(data)


def test_only_the_full_path_leaves_something_out(tmp_path: Path) -> None:
    """W4, F16: a file of the same name further down belongs to the plugin.

    What is below an excluded directory has no place to be in.
    """
    (tmp_path / "sub").mkdir()
    (tmp_path / "cache/deep").mkdir(parents=True)
    (tmp_path / "cache/deep/file").write_bytes(b"-")
    for place in ("done", "results.tar.gz", "sub/done", "sub/results.tar.gz"):
        (tmp_path / place).write_bytes(place.encode())

    out = [tmp_path / name for name in ("done", "results.tar.gz", "cache")]
    data = archive(tmp_path, *out)

    assert {
        "sub": None,
        "sub/done": b"sub/done",
        "sub/results.tar.gz": b"sub/results.tar.gz",
    } == members(data)


def test_an_empty_directory_is_an_empty_archive(tmp_path: Path) -> None:
    """Aggregators accept it."""
    assert {} == members(archive(tmp_path))


def link_to_file(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def link_to_directory(path: Path) -> None:
    path.symlink_to("/etc")


def dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket has 108 bytes at most
        try:
            listener.bind(path.name)
        finally:
            os.chdir(here)


@pytest.mark.parametrize(
    "make", [link_to_file, link_to_directory, dangling_link, os.mkfifo, unix_socket]
)
def test_links_and_the_like_are_left_out(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """W4: nothing is followed, nothing is waited for."""
    (tmp_path / "sub").mkdir()
    make(tmp_path / "sub/odd")
    (tmp_path / "sub/good").write_bytes(b"good")

    data = archive(tmp_path)

    assert {"sub": None, "sub/good": b"good"} == members(data)


def test_files_of_ours_beside_the_tree(tmp_path: Path) -> None:
    """W11: the words of an error report; the plugin may have a file of that name too."""
    (tmp_path / "error.json").write_bytes(b"the plugin's own")

    data = archive(tmp_path, prefix="output/", beside={"error.json": b"ours"})

    assert {"error.json": b"ours", "output/error.json": b"the plugin's own"} == members(data)


def test_modes_are_plain(tmp_path: Path) -> None:
    """A directory of mode 000 would lock its reader out, an owner means nothing elsewhere."""
    (tmp_path / "tool").write_bytes(b"")
    (tmp_path / "tool").chmod(0o4711)
    (tmp_path / "secret").write_bytes(b"")
    (tmp_path / "secret").chmod(0o400)
    (tmp_path / "d").mkdir(mode=0o500)

    with tarfile.open(fileobj=io.BytesIO(archive(tmp_path)), mode="r:gz") as tar:
        found = {m.name: (m.mode, m.uid, m.uname) for m in tar}

    assert {"d": (0o755, 0, ""), "secret": (0o644, 0, ""), "tool": (0o755, 0, "")} == found


@pytest.mark.parametrize("name", [b"n" * 255, b"\xff\xfe", "\u00fc\u20ac".encode(), b"new\nline"])
def test_any_name_a_file_system_allows(tmp_path: Path, name: bytes) -> None:
    """Long names, names that are no UTF-8: another reader of tar sees the same bytes."""
    os.makedirs(os.fsencode(tmp_path) + b"/" + name)
    with open(os.fsencode(tmp_path) + b"/" + name + b"/" + name, "wb") as file:
        file.write(b"content")

    data = archive(tmp_path)
    (tmp_path / "out").mkdir()
    subprocess.run(["tar", "xz", "-C", str(tmp_path / "out")], input=data, check=True)

    with open(os.fsencode(tmp_path / "out") + b"/" + name + b"/" + name, "rb") as file:
        assert b"content" == file.read()


class Meddling(io.BytesIO):
    """Does something to the tree when the first bytes of a file arrive."""

    def __init__(self, deed: Callable[[], object]) -> None:
        super().__init__()
        self._deed: Callable[[], object] | None = deed

    def write(self, data: bytes) -> int:  # type: ignore[override]
        # gzip's own header comes in small pieces, before anything was looked at.
        if self._deed and len(data) > 1024:
            deed, self._deed = self._deed, None
            deed()
        return super().write(data)


def meddled(path: Path, deed: Callable[[], object]) -> dict[str, bytes | None]:
    out = Meddling(deed)
    pack(path, out)
    return members(out.getvalue())


def test_a_file_that_grows_is_cut_where_it_was(tmp_path: Path) -> None:
    """A log that somebody still writes must not break the archive."""
    noise = os.urandom(1 << 20)
    (tmp_path / "log").write_bytes(noise)

    def grow() -> None:
        with (tmp_path / "log").open("ab") as file:
            file.write(b"more")

    found = meddled(tmp_path, grow)

    assert {"log": noise} == found


def test_a_file_that_shrinks_is_filled_up(tmp_path: Path) -> None:
    """Its header has promised the bytes already."""
    (tmp_path / "log").write_bytes(os.urandom(1 << 20))

    found = meddled(tmp_path, lambda: os.truncate(tmp_path / "log", 0))

    content = found["log"]
    assert content is not None
    assert (1 << 20, b"\0" * 1024) == (len(content), content[-1024:])


def test_what_vanishes_meanwhile_is_left_out(tmp_path: Path) -> None:
    """Temporary files of somebody who is still at it."""
    (tmp_path / "a").write_bytes(os.urandom(1 << 20))
    (tmp_path / "b").write_bytes(b"b")
    (tmp_path / "c").write_bytes(b"c")

    assert ["a", "c"] == list(meddled(tmp_path, (tmp_path / "b").unlink))


def test_a_directory_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    """The plugin may change what it likes while it is read."""
    (tmp_path / "a").write_bytes(os.urandom(1 << 20))
    (tmp_path / "b").mkdir()
    (tmp_path / "b/own").write_bytes(b"own")
    (tmp_path.parent / "foreign").mkdir()
    (tmp_path.parent / "foreign/secret").write_bytes(b"secret")

    def swap() -> None:
        (tmp_path / "b").rename(tmp_path / "c")
        (tmp_path / "b").symlink_to(tmp_path.parent / "foreign")

    assert "b/secret" not in meddled(tmp_path, swap)


def test_directories_too_deep_inside_each_other_are_refused(tmp_path: Path) -> None:
    """Each level holds a descriptor; running out of them is no way to end."""
    nest(tmp_path, 300)
    before = len(os.listdir("/proc/self/fd"))

    with pytest.raises(OSError, match="nested directories"):
        archive(tmp_path)

    assert before == len(os.listdir("/proc/self/fd"))


def test_no_room_for_the_archive_is_an_error(tmp_path: Path) -> None:
    """Nothing is cut off in silence."""
    (tmp_path / "a").write_bytes(os.urandom(1 << 20))

    with (
        open("/dev/full", "wb", buffering=0) as out,
        pytest.raises(OSError, match="No space left"),
    ):
        pack(tmp_path, out)


def test_a_spool_where_the_system_has_no_place_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a read-only root: beside the results, where the plugin could write; nameless."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with spool(tmp_path) as file:
        file.write(b"x")
        place = Path(os.readlink(f"/proc/self/fd/{file.fileno()}"))

    assert tmp_path == place.parent
    assert [] == list(tmp_path.iterdir())


def test_what_compresses_too_well_is_no_bomb(tmp_path: Path) -> None:
    """An aggregator takes 96 MiB of zeros, as a damaged disk or a sparse file has them."""
    noise = os.urandom(2**20)
    (tmp_path / "a").write_bytes(noise)
    (tmp_path / "b").touch()
    os.truncate(tmp_path / "b", 96 * 2**20)
    (tmp_path / "c").write_bytes(noise)
    text = b"2026-01-01T00:00:00Z something has happened\n" * 100_000
    (tmp_path / "d").write_bytes(text)

    data = archive(tmp_path)

    read, found = Archive(io.BytesIO(data), len(data), Caps()), {}
    for member in read:
        (name,) = member.path
        kept = bytearray()
        for piece in read.content():
            kept += piece[: 2**23 - len(kept)]
        found[name] = (member.size, bytes(kept))
    assert {
        b"a": (2**20, noise),
        b"b": (96 * 2**20, bytes(2**23)),
        b"c": (2**20, noise),
        b"d": (len(text), text),
    } == found
    assert len(data) < 2 * len(noise) + 96 * 2**20 / 7


def test_files_of_ours_count_too_when_a_tree_compresses_well(tmp_path: Path) -> None:
    """An aggregator counts them: with exactly 64 MiB of zeros they decide."""
    (tmp_path / "a").touch()
    os.truncate(tmp_path / "a", 64 * 2**20)

    data = archive(tmp_path, beside={"error.json": b"{}"})

    assert 2 == sum(1 for _ in Archive(io.BytesIO(data), len(data), Caps()))
