"""What a done file may say, and what is opened for it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reporter.link.done_file import LONGEST, NoResult, opened, seen


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def say(results: Path, text: str | bytes) -> None:
    (results / "done").write_bytes(text if isinstance(text, bytes) else text.encode())


def content(results: Path) -> tuple[str, bytes]:
    """Return name and bytes of the file that the done file names."""
    with opened(results) as target:
        assert target is not None
        assert not target.directory
        return target.name, target.opened.read_bytes()


def cause(results: Path) -> str:
    """Return why nothing can be sent."""
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(NoResult) as caught, opened(results):
        pass
    assert before == len(os.listdir("/proc/self/fd"))
    return caught.value.cause


@pytest.mark.parametrize(
    "written",
    ["{}/a.json", "{}/a.json\n", " \t{}/a.json \r\n\n", "{}//./a.json", "{}/sub/../a.json"],
)
def test_whitespace_around_the_path_does_not_matter(results: Path, written: str) -> None:
    """W1: `echo` writes a newline."""
    (results / "sub").mkdir()
    (results / "a.json").write_bytes(b"{}")
    say(results, written.format(results))

    assert ("a.json", b"{}") == content(results)


def test_a_relative_path_counts_from_the_results(results: Path) -> None:
    """Also when a file of that path exists elsewhere."""
    (results / "a.json").write_bytes(b"{}")
    say(results, "a.json")

    assert ("a.json", b"{}") == content(results)


def test_a_relative_path_that_is_not_there_counts_from_the_root(results: Path) -> None:
    """The plugin and we need not have the same working directory; ours is `/`."""
    (results / "a.json").write_bytes(b"{}")
    say(results, str(results / "a.json").lstrip("/"))

    assert ("a.json", b"{}") == content(results)


def test_a_directory(results: Path) -> None:
    """Its place decides whether the done file is excluded from it."""
    (results / "sub").mkdir()
    say(results, f"{results}/sub/")

    with opened(results) as target:
        assert target is not None
        assert (True, Path("sub"), "sub") == (target.directory, target.path, target.name)


def test_the_results_directory_itself(results: Path) -> None:
    """What most shell plugins name."""
    say(results, f"{results}")

    with opened(results) as target:
        assert target is not None
        assert (True, Path()) == (target.directory, target.path)


def test_a_link_inside_of_the_directory_is_resolved(results: Path) -> None:
    """`latest.json` goes by the name the plugin gave it."""
    (results / "run1").mkdir()
    (results / "run1/a.json").write_bytes(b"{}")
    (results / "latest.json").symlink_to("run1/a.json")
    say(results, f"{results}/latest.json")

    assert ("latest.json", b"{}") == content(results)


def test_links_above_the_directory_belong_to_the_mount(results: Path, tmp_path: Path) -> None:
    """Kubernetes mounts over links of images: /var/run for instance."""
    (tmp_path / "link").symlink_to(results)
    (results / "a.json").write_bytes(b"{}")
    say(results, f"{tmp_path}/link/a.json")

    assert ("a.json", b"{}") == content(tmp_path / "link")


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ("/etc/hostname", {}),
        ("/proc/self/environ", {}),
        ("/etc", {}),
        ("{}/..", {}),
        ("/", {}),
        ("../secret", {}),
        ("{}2/a", {}),
        ("{}/a", {"a": "/proc/self/environ"}),
        ("{}/a/environ", {"a": "/proc/self"}),
        ("{}/a", {"a": "../secret"}),
    ],
)
def test_what_lies_outside_is_not_opened(
    results: Path, written: str, links: dict[str, str]
) -> None:
    """W9: the plugin chooses the path, and our environment holds a private key."""
    (results.parent / "secret").write_bytes(b"secret")
    (results.parent / "results2").mkdir()
    (results.parent / "results2/a").write_bytes(b"secret")
    for name, target in links.items():
        (results / name).symlink_to(target)
    say(results, written.format(results))

    assert "foreign_path" == cause(results)


def test_results_that_are_replaced_meanwhile(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W9: a plugin that may rename them makes them a link to the root, where everything lies."""
    (results.parent / "secret").write_bytes(b"secret")
    say(results, f"{results.parent}/secret")
    read = os.read

    def swap(file: int, size: int) -> bytes:
        results.rename(results.parent / "own")
        results.symlink_to("/")
        return read(file, size)

    monkeypatch.setattr(os, "read", swap)

    assert "foreign_path" == cause(results)


@pytest.mark.parametrize(
    ("written", "links"),
    [
        ("{}/missing.json", {}),
        ("{}/a", {"a": "nowhere"}),
        ("{}/a", {"a": "b", "b": "a"}),
        ("{}/file/b", {}),
        ("{}/a\0b", {}),
        ("a\0b", {}),
        ("{}/" + "n" * 300, {}),
    ],
)
def test_what_is_not_there(results: Path, written: str, links: dict[str, str]) -> None:
    """W9: somebody has to be told, nobody else can know."""
    (results / "file").write_bytes(b"")
    for name, target in links.items():
        (results / name).symlink_to(target)
    say(results, written.format(results))

    assert "no_result" == cause(results)


@pytest.mark.parametrize("text", ["", "\n", " \t\r\n"])
def test_an_empty_done_file(results: Path, text: str) -> None:
    """W9: it names no result."""
    say(results, text)

    assert "empty_done_file" == cause(results)


def done_is_a_directory(results: Path) -> None:
    (results / "done").mkdir()


def done_is_a_link(results: Path) -> None:
    (results / "done").symlink_to("/proc/self/environ")


def done_is_a_fifo(results: Path) -> None:
    os.mkfifo(results / "done")


def done_is_huge(results: Path) -> None:
    say(results, "x" * (LONGEST + 1))


@pytest.mark.parametrize(
    "make", [done_is_a_directory, done_is_a_link, done_is_a_fifo, done_is_huge]
)
def test_a_done_file_that_is_none(results: Path, make: Callable[[Path], None]) -> None:
    """Nothing is followed and nothing is waited for: a link's text would go out as a path."""
    make(results)

    assert seen(results)
    assert "unreadable_done_file" == cause(results)


def test_a_result_that_is_neither_file_nor_directory(results: Path) -> None:
    """Opening a FIFO for reading must not wait for its writer."""
    os.mkfifo(results / "pipe")
    say(results, f"{results}/pipe")

    assert "unreadable_result" == cause(results)


def test_the_reason_is_one_bounded_line(results: Path) -> None:
    """It goes to logs and to the aggregator's pages."""
    say(results, b"/a\nb\x1b[31m\xff" + b"x" * 3000)

    with pytest.raises(NoResult) as caught, opened(results):
        pass

    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 512


def test_the_done_file_has_gone(results: Path) -> None:
    """W7: another sidecar took it between two looks."""
    with opened(results) as target:
        assert target is None


def test_no_results_directory_yet(tmp_path: Path) -> None:
    """The plugin may make it."""
    assert not seen(tmp_path / "later")
    with opened(tmp_path / "later") as target:
        assert target is None


def test_a_dangling_link_is_a_done_file_too(results: Path) -> None:
    """It is judged, not waited for."""
    (results / "done").symlink_to("nowhere")

    assert seen(results)


def test_results_that_are_no_directory(tmp_path: Path) -> None:
    """Something is there, but nothing can be in it: an error to report, no reason to wait."""
    (tmp_path / "results").write_text("")

    assert "unreadable_done_file" == cause(tmp_path / "results")
