"""Heads, bodies and archives that are too much, against a whole aggregator."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.aggregators.served import Aggregator
from tests.aggregators.trapped import Trapped
from tests.aggregators.worker import Worker, head
from tests.archives.tars import header
from tests.blackbox.aggregator.starting import unfinished

MIB = 2**20
PUT = "/api/v1/results"
MUCH = 300 * 10**6  # bytes; a process that kept what it is sent would have far more
CPU = 20.0  # seconds; ten times what it takes at most
PACKED = gzip.compress(bytes(64 * MIB), mtime=0)


def sent(worker: Worker, *parts: bytes) -> bytes:
    """Send something and return all that is answered."""
    found = b""
    with worker.connect() as wire, suppress(OSError):
        try:
            for part in parts:
                wire.sendall(part)
        except OSError:
            pass
        while data := wire.recv(65536):
            found += data
    return found


def endless(size: int) -> Iterator[bytes]:
    """A body in chunks that goes on for long."""
    chunk = bytes(64 * 1024)
    yield from [b"10000\r\n" + chunk + b"\r\n"] * (size // len(chunk))


@pytest.fixture(scope="module")
def aggregator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aggregator]:
    """One for all that is too much: what one does to it, the next one meets."""
    folder = tmp_path_factory.mktemp("greedy")
    document = {"run": "greedy", "plugins": [{"name": "e2e"}, {"name": "good"}]}
    small = ("--max-result-bytes", str(4 * MIB))
    brisk = Trapped(folder, document, *small, trap=folder / "trap", limits={"DISCARD": 1})
    with brisk as running:
        yield running


class TestTooMuch:
    """A36, A38: refused, and neither memory nor time of the process goes into it."""

    @pytest.mark.parametrize(
        ("parts", "status", "words"),
        [
            pytest.param([b"PUT /", b"x" * MIB], 431, b"", id="request-line"),
            pytest.param(
                [b"PUT / HTTP/1.1\r\nHost: a\r\n", b"X: y\r\n" * 200_000], 431, b"", id="headers"
            ),
            pytest.param(
                [head("PUT", f"{PUT}/global/e2e", "Content-Length: 10737418240"), b"x"],
                413,
                b"result e2e/global exceeds 4194304 bytes\n",
                id="declared",
            ),
            pytest.param(
                [
                    head("PUT", f"{PUT}/global/e2e", "Transfer-Encoding: chunked"),
                    *endless(64 * MIB),
                ],
                413,
                b"result e2e/global exceeds 4194304 bytes\n",
                id="endless-chunks",
            ),
            pytest.param(
                [
                    head(
                        "PUT",
                        f"{PUT}/global/e2e",
                        "Content-Encoding: gzip",
                        f"Content-Length: {len(PACKED)}",
                    ),
                    PACKED,
                ],
                415,
                b"result e2e/global: Content-Encoding is not accepted\n",
                id="encoded-result",
            ),
            pytest.param(
                [
                    head(
                        "POST",
                        "/api/v1/progress/global/e2e",
                        "Connection: close",
                        "Content-Encoding: gzip",
                        f"Content-Length: {len(PACKED)}",
                    ),
                    PACKED,
                ],
                400,
                b"invalid progress update: ",
                id="encoded-progress",
            ),
            pytest.param(
                [
                    head("POST", "/api/v1/progress/global/e2e", f"Content-Length: {MIB + 1}"),
                    bytes(MIB + 1),
                ],
                413,
                b"exceeds 1048576 bytes\n",
                id="progress",
            ),
        ],
    )
    def test_refused(
        self, aggregator: Aggregator, parts: list[bytes], status: int, words: bytes
    ) -> None:
        """With its code; the next one is served."""
        answer = sent(aggregator.worker("e2e"), *parts)

        assert b"%d" % status == answer.split(b" ", 2)[1]
        assert words in answer
        self.sound(aggregator)

    @pytest.mark.parametrize("members", [1, 2])
    def test_gzip_bomb(self, aggregator: Aggregator, members: int) -> None:
        """A gigabyte in a megabyte: no more is unpacked than the caps allow."""
        size = 2**30 // members
        bomb = (gzip.compress(header(b"big", size)) + PACKED * (size // (64 * MIB))) * members
        before = aggregator.usage()
        refused = aggregator.worker("e2e").put("global/e2e", bomb, Content_Type="application/gzip")

        assert 500 == refused.status
        assert b"unpacks to more than" in refused.body
        assert CPU > aggregator.usage().cpu_seconds - before.cpu_seconds
        self.sound(aggregator)

    @staticmethod
    def sound(aggregator: Aggregator) -> None:
        """The process is as it was."""
        assert MUCH > aggregator.usage().peak_bytes
        assert [] == unfinished(aggregator)
        assert 200 == aggregator.worker("good").post("global/good", msg="m").status
        assert "running" == aggregator.entry("e2e/global")["status"]
