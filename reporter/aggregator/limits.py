"""The aggregator's limits that no cluster needs to change, each with its reason. Times in seconds.

Limits that users may have to raise are settings (`reporter.run.settings`). Read these
as attributes of this module: tests change some of them.
"""

from typing import Final

UPLOADS: Final = 64  # read at a time, with 256 KiB of memory each
UPLOADS_PER_KEY: Final = 2  # a retry may come before the end of the first try is noticed
SLOT_WAIT: Final = 1_800.0  # `reporter.link` waits a minute longer for its answer
PROGRESS_WAITING: Final = 16  # updates of a key that are here; a worker sends one after the other

SENDER_LOOK: Final = 5.0  # between looks whether the sender of a body that waits is still there
BODY_SILENCE: Final = 15.0  # a worker sends what it has already: its network fails, or it is stuck
UPLOAD_RATE: Final = 64 * 1024  # bytes per second, of downloads too: 512 MiB in 2 1/4 hours
UPLOAD_RATE_AFTER: Final = 30.0  # before that a slow start says nothing
HANDSHAKE: Final = 10.0  # as long as `reporter.link` gives it
HANDSHAKES: Final = 128  # at one time; each has OpenSSL's buffers
HANDSHAKES_PER_ADDRESS: Final = 16  # of them, while others want one
HEADER: Final = 10.0  # a head is sent in one piece
DISCARD: Final = 5.0  # how long a refused body is still read, else a reset destroys the answer
BACKLOG: Final = 1_024  # a crowd that comes back after a restart; the kernel's own cap is 4,096

# Heads of requests: those of workers, readers and proxies before them have a few hundred bytes.
REQUEST_LINE_BYTES: Final = 8 * 1024
HEADER_BYTES: Final = 32 * 1024
HEADERS: Final = 100
