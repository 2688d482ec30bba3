"""The runs that this user has started, for commands that name none: the newest that there still is.

Noted in the user's state directory. Who has none, or may not write there, has to name a run.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from reporter.common.private_file import write_private
from reporter.errors import KubeError
from reporter.runctl.origin import own_place
from reporter.runctl.spec import PLAN, created_by

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_KEPT: Final = 20


class OwnRun(NamedTuple):
    """A run, and the random word that its creation left on what it made."""

    namespace: str
    name: str
    creation: str


def note(run: OwnRun, environ: Mapping[str, str] = os.environ) -> None:
    """Note a run that was started; where that cannot be done, it is not."""
    path = _place(environ)
    if path is None:
        return
    lines = [" ".join(each) for each in [*noted(environ)[: _KEPT - 1][::-1], run]]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(path, "".join(f"{line}\n" for line in lines).encode())
    except OSError:
        pass


def noted(environ: Mapping[str, str] = os.environ) -> list[OwnRun]:
    """Return the runs that were noted, the newest first."""
    path = _place(environ)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path else []
    except (OSError, UnicodeDecodeError):
        return []
    return [OwnRun(*words) for line in reversed(lines) if len(words := line.split(" ")) == 3]


def newest(api: "KubeApi", timeout: float) -> OwnRun | None:
    """Return the newest that is in this cluster, as far as the API server shows it."""
    for run in noted():
        try:
            found = api.get(PLAN, run.namespace, run.name, timeout=timeout)
        except KubeError:
            continue
        if created_by(found) == run.creation:
            return run
    return None


def _place(environ: Mapping[str, str]) -> Path | None:
    place = own_place(environ)
    return place and place.with_name("runs")
