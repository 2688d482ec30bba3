"""The runs that this user has started, for commands that name none: the newest that there still is.

Each is a file in the user's state directory, by the random word that its creation left on what it
made, with the address of the API server. Who has none, or may not write there, has to name a run.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reporter.cli.cluster import TIMEOUT
from reporter.common.private_file import write_private
from reporter.errors import KubeError, NotFound, Unavailable
from reporter.runctl.origin import own_place
from reporter.runctl.spec import PLAN, created_by

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

_KEPT: Final = 20  # of each cluster


def note(
    server: str, namespace: str, name: str, creation: str, environ: Mapping[str, str] = os.environ
) -> None:
    """Note a run that was started; where that cannot be done, it is not."""
    if (place := _place(environ)) is None:
        return
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(place / creation, f"{server} {namespace} {name}".encode())
        for path, _, _ in noted(server, environ)[_KEPT:]:
            path.unlink(missing_ok=True)


def noted(server: str, environ: Mapping[str, str] = os.environ) -> list[tuple[Path, str, str]]:
    """Return the file, namespace and name of each that was started there, the newest first."""
    place, found = _place(environ), []
    for path in place.iterdir() if place and place.is_dir() else ():
        with suppress(OSError, ValueError):
            where, namespace, name = path.read_text(encoding="utf-8").split(" ")
            if where == server:
                found.append((path.stat().st_mtime_ns, path, namespace, name))
    return [each[1:] for each in sorted(found, reverse=True)]


def newest(api: "KubeApi") -> tuple[str, str] | None:
    """Return namespace and name of the newest that is there, as far as the API server shows it."""
    for path, namespace, name in noted(api.server):
        try:
            if created_by(api.get(PLAN, namespace, name, timeout=TIMEOUT)) == path.name:
                return namespace, name
        except NotFound:
            with suppress(OSError):
                path.unlink()
        except Unavailable:
            return None
        except KubeError:
            continue
    return None


def _place(environ: Mapping[str, str]) -> Path | None:
    place = own_place(environ)
    return place and place.with_name("runs")
