"""What is sent: content types, digests, and files that somebody still writes."""

import gzip
import hashlib
import io
import tarfile

import pytest

from reporter.link.source import (
    GZIP,
    PIECE,
    UNKNOWN,
    ResultSource,
    SourceChanged,
    SourceError,
    content_type_of,
)
from tests.archives.tars import contents


def tarred(format_: int = tarfile.PAX_FORMAT, **members: bytes) -> bytes:
    """A tar archive, gzip'd."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=format_) as tar:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.tar.gz", "application/gzip"),
        ("a.tgz", "application/gzip"),
        ("a.TGZ", "application/gzip"),
        ("a.json", "application/json"),
        ("a.xml", "text/xml; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("result", "application/octet-stream"),
        (".json", "application/octet-stream"),
        ("a.html", "application/octet-stream"),
        ("a.json.bak", "application/octet-stream"),
    ],
)
def test_w3_content_type_by_the_last_extension(name, expected):
    """W3: the table of the contract, not the one of the image."""
    assert expected == content_type_of(name)


@pytest.mark.parametrize("format_", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("name", ["r.tar.gz", "r.tgz", "r.gz"])
def test_w3_archive_is_gzip(name, format_):
    """W3: every kind of tar there is."""
    with ResultSource.from_bytes(
        tarred(format_, **{"d/" * 55 + "a": b"x" * 9000}), name
    ).open() as it:
        assert GZIP == it.content_type


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(b'{"passed": 3}'),
        gzip.compress(b"x" * 100_000),
        gzip.compress(b""),
        tarred(a=b"x")[:20],
        b'{"error": "not even gzip"}',
        b"",
    ],
    ids=["json", "text", "empty", "cut", "plain", "nothing"],
)
@pytest.mark.parametrize("name", ["a.json.gz", "a.tgz"])
def test_w3_gzip_without_a_tar_is_opaque(name, data):
    """W3: as `application/gzip` both aggregators would refuse it."""
    with ResultSource.from_bytes(data, name).open() as it:
        assert UNKNOWN == it.content_type


def test_empty_archive_is_an_archive():
    """Two blocks of zeros."""
    with ResultSource.from_bytes(tarred(), "a.tar.gz").open() as it:
        assert GZIP == it.content_type


def test_an_archive_with_a_number_that_nobody_reads():
    """As the aggregator takes it: the checksum makes a header."""
    header = bytearray(gzip.decompress(tarred(a=b"x")))
    header[136:148] = b"1.5e9".ljust(12, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header[:512])
    with ResultSource.from_bytes(gzip.compress(bytes(header)), "a.tgz").open() as it:
        assert GZIP == it.content_type


def test_callers_content_type_wins():
    """Whatever the name says."""
    with ResultSource.from_bytes(b"x", "a.tgz", "text/csv").open() as it:
        assert "text/csv" == it.content_type


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE])
def test_file_is_measured_and_read_again(tmp_path, size):
    """Length and digest are of exactly what is sent, each time."""
    data = bytes(range(256)) * (size // 256 + 1)
    path = tmp_path / "a.bin"
    path.write_bytes(data[:size])
    with ResultSource.from_file(path).open() as it:
        for _ in range(2):
            assert data[:size] == b"".join(it.pieces())
        assert (size, hashlib.sha256(data[:size]).hexdigest()) == (it.length, it.digest)


def test_file_has_its_own_name_or_another(tmp_path):
    """The last part of its path."""
    assert "a.json" == ResultSource.from_file(tmp_path / "a.json").name
    assert "b.json" == ResultSource.from_file(tmp_path / "a.json", name="b.json").name


@pytest.mark.parametrize("make", ["missing", "directory"])
def test_what_cannot_be_read_is_a_source_error(tmp_path, make):
    """With the reason, before anything is sent."""
    path = tmp_path / "a.json"
    if make == "directory":
        path.mkdir()
    with pytest.raises(SourceError, match=r"a\.json: (No such file|Is a directory)"):
        ResultSource.from_file(path).open()


def test_file_that_cannot_be_measured_is_closed():
    """The error says so, and nothing stays open."""

    class Failing(io.BytesIO):
        def read(self, size=-1):
            raise OSError("no more")

    file = Failing(b"x")
    with pytest.raises(SourceError, match=r"a\.bin: no more"):
        ResultSource("a.bin", lambda: file).open()
    assert file.closed


def test_file_that_grows_is_cut_at_what_was_measured(tmp_path):
    """The declared length is kept; the next measuring takes in the rest."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one")
    with ResultSource.from_file(path).open() as it:
        path.write_bytes(b"one two")
        assert b"one" == b"".join(it.pieces())
        it.measure()
        assert b"one two" == b"".join(it.pieces())
        assert hashlib.sha256(b"one two").hexdigest() == it.digest


def test_file_that_shrinks_fails_the_try_only(tmp_path):
    """Less than was declared cannot be sent; measured anew it can."""
    path = tmp_path / "a.log"
    path.write_bytes(b"one two")
    with ResultSource.from_file(path).open() as it:
        path.write_bytes(b"one")
        with pytest.raises(SourceChanged):
            list(it.pieces())
        it.measure()
        assert b"one" == b"".join(it.pieces())


def test_unchanged_file_is_hashed_once(tmp_path):
    """Half a gigabyte is not read twice for each retry."""
    opened = []

    class Counting(io.FileIO):
        reads = 0

        def read(self, size=-1):
            self.reads += 1
            return super().read(size)

    def reopen():
        opened.append(Counting(tmp_path / "a.bin"))
        return opened[-1]

    (tmp_path / "a.bin").write_bytes(b"x" * 10)
    with ResultSource("a.bin", reopen).open() as it:
        before = opened[0].reads
        it.measure()
        assert (1, before) == (len(opened), opened[0].reads)


def test_directory_is_an_archive_of_its_files(tmp_path):
    """Relative names, no links, what is excluded left out."""
    root = tmp_path / "results"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.txt").write_text("a")
    (root / "done").write_text("x")
    (root / "link").symlink_to("/etc/passwd")
    source = ResultSource.from_directory(root, exclude=[root / "done"])
    with source.open() as it:
        data = b"".join(it.pieces())
        assert ("results.tar.gz", GZIP) == (source.name, it.content_type)
        assert hashlib.sha256(data).hexdigest() == it.digest
    assert {"sub/a.txt": b"a"} == contents(data)
    with source.open() as again:
        assert data == b"".join(again.pieces())


def test_missing_directory_is_a_source_error(tmp_path):
    """As for a file."""
    with pytest.raises(SourceError, match="No such file"):
        ResultSource.from_directory(tmp_path / "none").open()
