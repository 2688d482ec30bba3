"""Archives as the tests of the agent look at them, and snapshots of a FakeKube over TLS."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reporter.collect.delivery import TaskFailure
from reporter.collect.snapshot.options import read_options
from reporter.collect.snapshot.snapshot import take_snapshot
from reporter.common.lifecycle import Stop
from reporter.link import ResultSource
from tests.archives.tars import contents
from tests.fakekube import Answer, Entry, FakeKube
from tests.kube_client import connect


class Taken:
    """What a snapshot has left, as its archive has it."""

    def __init__(self, folder: Path, failure: TaskFailure | None) -> None:
        self.failure = failure
        with ResultSource.from_directory(folder).open() as packed:
            self.packed = b"".join(packed.pieces())
        self.files = contents(self.packed)
        self.index: Any = json.loads(self.files["resources/index.json"])

    def list(self, path: str) -> list[Any]:
        """Return the objects of a file."""
        found: list[Any] = json.loads(self.files[f"resources/{path}"])["items"]
        return found

    def said(self, name: str) -> dict[str, Any]:
        """Return what the index says of a resource, as `pods` or `pods.metrics.k8s.io`."""
        plural, _, group = name.partition(".")
        (found,) = (
            each
            for each in self.index["resources"]
            if (each["resource"], each["group"]) == (plural, group)
        )
        return found  # type: ignore[no-any-return]


class Take:
    """Takes snapshots of a server into a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stop = Stop()
        self.told: list[str] = []

    def __call__(self, fake: FakeKube, **variables: str) -> Taken:
        options, problems = read_options(
            {f"SNAPSHOT_{k.upper()}": v for k, v in variables.items() if v}
        )
        assert [] == problems
        api = connect(fake)
        tell: Callable[[str, int, int], None] = lambda text, *_: self.told.append(text)  # noqa: E731
        try:
            failure = take_snapshot(options, api, self._folder, tell, self.stop)
        finally:
            api.close()
        return Taken(self._folder, failure)


def on_request(
    fake: FakeKube, where: Callable[[Entry], bool], then: Callable[[], None], times: int
) -> None:
    """Do something just before the server answers such a request."""
    left = [times]

    def fits(entry: Entry) -> bool:
        if left[0] and where(entry):
            left[0] -= 1
            then()
        return False

    fake.fail(Answer(), where=fits, times=None)
