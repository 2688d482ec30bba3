"""The runs that this user has started, for commands that name none: the newest that there still is.

Each is a file in the user's state directory, by API server and by the random word that its creation
left on what it made. Who has none, or may not write there, has to name a run.
"""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reporter.cli.cluster import TIMEOUT
from reporter.common.private_file import write_private
from reporter.errors import Forbidden, KubeError, NotFound
from reporter.runctl.origin import own_place
from reporter.runctl.spec import PLAN, created_by

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_KEPT: Final = 20  # of each cluster


def note(server: str, namespace: str, name: str, creation: str) -> None:
    """Note a run that was started; where that cannot be done, it is not."""
    with suppress(OSError):
        place = _place(server)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(place / creation, f"{namespace} {name}".encode())
        for path in _newest_first(place)[_KEPT:]:
            path.unlink(missing_ok=True)


def newest(api: "KubeApi") -> tuple[str, str] | None:
    """Return namespace and name of the newest that is there, as far as the API server shows it."""
    with suppress(OSError, ValueError, KubeError):
        for path in _newest_first(_place(api.server)):
            namespace, name = path.read_text(encoding="utf-8").split(" ")
            with suppress(NotFound, Forbidden):
                if created_by(api.get(PLAN, namespace, name, timeout=TIMEOUT)) == path.name:
                    return namespace, name
    return None


def _newest_first(place: Path) -> list[Path]:
    return sorted(place.iterdir(), key=lambda path: path.stat().st_mtime_ns, reverse=True)


def _place(server: str) -> Path:
    if (place := own_place(os.environ)) is None:
        raise FileNotFoundError
    return place.with_name("runs") / sha256(server.encode()).hexdigest()[:16]
