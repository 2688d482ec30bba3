"""A nursery: forks a launcher for each line on stdin, and ends its children at the end of stdin."""

import contextlib
import gc
import json
import os
import runpy
import signal
import sys
from typing import Any, NoReturn


def child(order: dict[str, Any]) -> NoReturn:
    """Be the launcher."""
    code = 1
    try:
        out = os.open(order["output"], os.O_WRONLY)
        os.dup2(out, 1)
        os.close(out)
        os.close(0)
        sys.argv = order["start"]
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        os._exit(code)


gc.freeze()
children = set()
for line in sys.stdin:
    given = json.loads(line)
    if "reap" in given:
        children.discard(given["reap"])
        answer = os.waitstatus_to_exitcode(os.waitpid(given["reap"], 0)[1])
    elif (answer := os.fork()) == 0:
        child(given)
    else:
        children.add(answer)
    print(answer, flush=True)
for pid in children:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
