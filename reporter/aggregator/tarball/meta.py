"""What is in `meta` of a tarball: what the run was to do, and what its log says."""

import contextlib
import io
import json
import os
from pathlib import Path
from typing import IO, Any

from reporter.aggregator.tarball.content import Content, Folder
from reporter.run.plan import plan_document
from reporter.run.state import Snapshot


def meta(snapshot: Snapshot, run_log: Path | None, files: contextlib.ExitStack) -> Folder:
    """Give the plugins, which `sonobuoy results` looks for, the plan, and the log so far.

    `files` closes what is open. A tarball does not fail for want of a log.
    """
    found = Folder(
        {
            b"info.json": _json({"plugins": [plugin.name for plugin in snapshot.plan.plugins]}),
            b"plan.json": _json(plan_document(snapshot.plan), indent=1),
        }
    )
    if run_log is not None:
        with contextlib.suppress(OSError):
            file: IO[bytes] = files.enter_context(run_log.open("rb"))
            found[b"run.log"] = Content(file, 0, os.fstat(file.fileno()).st_size)
    return found


def _json(document: dict[str, Any], indent: int | None = None) -> Content:
    data = json.dumps(document, indent=indent).encode()
    return Content(io.BytesIO(data), 0, len(data))
