"""Measure how long `status-ctl` keeps a person waiting for its first output.

    python -m tests.bench.commands [--runs N]

From the start of the process to the first byte on its terminal; the status is that of a real
aggregator with 2,000 entries. `try` runs an adapter that writes its result at once.
"""

from __future__ import annotations

import argparse
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.aggregators.served import Aggregator, plan

ROOT = Path(__file__).resolve().parents[2]
WORKERS = 2000
RESULT = '{"status":"success","reason":"AllWell","message":"all is well"}'
RESULT_WRITER = 'printf %s "$0" >"$RESULTS_PATH.new" && mv "$RESULTS_PATH.new" "$RESULTS_PATH"'


def first_output(command: list[str]) -> float:
    """Return milliseconds until the first byte; the program is ended then."""
    ours, terminal = pty.openpty()
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, str(ROOT / "cmd" / "status-ctl.py"), *command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm"},
    ) as process:
        os.close(terminal)
        first = os.read(ours, 4096)
        took = (time.perf_counter() - began) * 1000
        process.kill()
    os.close(ours)
    assert first.strip()
    assert b"error" not in first, first
    assert b"status-ctl: " not in first, first
    return took


def main() -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        result = folder / "result.json"
        result.write_text(RESULT)
        document = plan("load", [f"n{number}" for number in range(WORKERS)])
        with Aggregator(folder, document, fresh=True) as aggregator:
            url = f"http://127.0.0.1:{aggregator.status_port}"
            figures = [
                ("--help", 150, ["--help"]),
                ("status --url", 150, ["status", "--url", url]),
                ("wait --url", 150, ["wait", "--url", url]),
                ("validate", 300, ["validate", str(result)]),
                ("try", 300, ["try", "--", "sh", "-c", RESULT_WRITER, RESULT]),
            ]
            print("| First output of `status-ctl` | Must be | Median | Worst |\n|---|---|---|---|")
            for label, must, command in figures:
                first_output(command)  # reads the programs from the disk
                took = [first_output(command) for _ in range(runs)]
                print(
                    f"| `{label}` | {must} ms | {statistics.median(took):.0f} ms "
                    f"| {max(took):.0f} ms |",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
