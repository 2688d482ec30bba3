"""A bed that ends with the process that has it, however that ends: also by SIGKILL, or `os._exit`.

A process of its own, in a session of its own, waits for the end of its standard input: the kernel
closes that with the last process that has the other end. Then it ends the bed by its records.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ATTACHED = "The bed ends with its owner."
DOWN_SECONDS = 300.0


@contextmanager
def attached(folder: Path, *, up: bool = False) -> Iterator[None]:
    """Have the bed of this folder ended at the end, or when this process has gone.

    `up`: a cluster for people is started first. Raises RuntimeError where that fails.
    """
    command = "up" if up else "down"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.bed", command, "--dir", str(folder), "--attached"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.strip() == ATTACHED:
                    break
                print(line, end="")
            else:
                raise RuntimeError(f"the bed in {folder} does not start")
            yield
        finally:
            process.stdin.close()
            try:
                process.wait(DOWN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()  # `with` would wait for it without end
                raise
