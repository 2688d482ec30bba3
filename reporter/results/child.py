"""The process that reads one result: its body is standard input, the answer standard output.

Arguments: the task, and the descriptor that items are written to, empty for none.
"""

import contextlib
import json
import math
import os
import resource
import sys
import time

from reporter.results.reading import UnpackedTooMuch, read
from reporter.results.task import UNPACKED_TOO_MUCH, read_task

MEMORY = 96 * 2**20  # address space beyond what is there at the start


def main() -> None:
    """Read, answer, end. An error ends it."""
    task = read_task(sys.argv[1])
    limit(task.seconds)
    began = time.process_time()
    with (
        open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as body,
        os.fdopen(int(sys.argv[2]), "w", encoding="utf-8")
        if sys.argv[2]
        else contextlib.nullcontext() as listing,
    ):
        try:
            found, unpacked = read(task, body, listing)
        except UnpackedTooMuch:
            sys.exit(UNPACKED_TOO_MUCH)
    first = found.first
    answer = {
        "counts": found.counts,
        "failed": "" if first is None else first.name,
        "text": "" if first is None else first.text,
        "note": found.note,
        "seconds": time.process_time() - began,
        "unpacked": unpacked,
    }
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()
    sys.stdout.buffer.write(found.not_passed.document(found.counts))


def limit(seconds: float) -> None:
    """Bound what this process may still take. A limit that is lower already stays."""
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    # The soft limit of the processor ends it with a signal of its own, the hard one with SIGKILL.
    for kind, most, more in (
        (resource.RLIMIT_AS, used + MEMORY, 0),
        (resource.RLIMIT_CPU, math.ceil(time.process_time() + seconds), 10),
    ):
        _, hard = resource.getrlimit(kind)
        last = most + more if hard == resource.RLIM_INFINITY else min(most + more, hard)
        resource.setrlimit(kind, (min(most, last), last))
    os.nice(5)  # requests and the disk go first
    # Where the kernel ends one process of a container and not all, it is to be this one.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write("1000")
