"""A worker made of the project's own client, as a process: beats, and delivers a slow result.

    python -m tests.aggregators.link_worker URL CERTIFICATES PLUGIN NODE PIECES SECONDS

A result has so many pieces of 64 KiB, 20 per second; without any it beats for SECONDS. Prints how
it ended.
"""

import io
import sys
import time
from pathlib import Path
from threading import Event

from reporter.link import AggregatorClient, Heart, ResultSource, WorkerConfig

PIECE = 64 * 1024


class Slow(io.BytesIO):
    """Comes at once when it is measured, and slowly when it is sent."""

    looks = 0

    def seek(self, offset: int, whence: int = 0, /) -> int:
        self.looks += 1
        return super().seek(offset, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        if self.looks > 1:  # the first is for the digest
            time.sleep(0.05)
        return super().read(size)


def main() -> None:
    """Do it."""
    url, folder, plugin, node, pieces, seconds = sys.argv[1:]
    pem = {
        name: (Path(folder) / file).read_text()
        for name, file in (
            ("ca_cert", "ca.pem"),
            ("client_cert", f"{plugin}.crt"),
            ("client_key", f"{plugin}.key"),
        )
    }
    config = WorkerConfig(aggregator_url=url, plugin=plugin, node=node, **pem)
    with AggregatorClient(config) as client:
        heart = Heart(client)
        heart.start()
        if int(pieces):
            body = node.encode().ljust(int(pieces) * PIECE, b".")
            found = client.put_result(ResultSource("result.txt", lambda: Slow(body)))
            print(found.outcome, found.attempts)
        else:
            Event().wait(float(seconds))
            print("beaten")
        heart.close()


if __name__ == "__main__":
    main()
