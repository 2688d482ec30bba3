"""`worker splat`: what `sonobuoy retrieve` reads."""

import gzip
import io
import subprocess
import tarfile
from pathlib import Path

from tests import forked
from tests.blackbox.worker.process import LAUNCHER
from tests.forked import Forked


def test_splat(tmp_path: Path) -> None:
    """`sonobuoy retrieve` reads it: one archive of all archives, by base name."""
    (tmp_path / "run.tar.gz").write_bytes(gzip.compress(b"x" * 100_000))
    (tmp_path / "other.txt").write_bytes(b"-")
    done = forked.run([str(LAUNCHER), "splat", str(tmp_path)], capture_output=True, check=True)

    with tarfile.open(fileobj=io.BytesIO(done.stdout), mode="r:gz") as tar:
        (member,) = tar
        content = tar.extractfile(member)
        assert content is not None
        assert ("run.tar.gz", (tmp_path / "run.tar.gz").read_bytes()) == (
            member.name,
            content.read(),
        )


def test_splat_of_nothing(tmp_path: Path) -> None:
    """A directory that is not there is an error, an empty one an empty archive."""
    command = [str(LAUNCHER), "splat"]
    missing = forked.run([*command, str(tmp_path / "x")], capture_output=True)
    empty = forked.run([*command, str(tmp_path)], capture_output=True, check=True)

    assert (1, b"") == (missing.returncode, missing.stdout)
    with tarfile.open(fileobj=io.BytesIO(empty.stdout), mode="r:gz") as tar:
        assert [] == tar.getnames()


def test_splat_into_a_closed_pipe(tmp_path: Path) -> None:
    """Whoever asked has gone."""
    (tmp_path / "run.tar.gz").write_bytes(b"x" * (1 << 20))
    with Forked(
        [str(LAUNCHER), "splat", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert 1 == process.wait(60)
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
