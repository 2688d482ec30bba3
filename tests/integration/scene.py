"""The scene of the black-box tests with a reporter in a thread of the test.

So a test may hand it another client of the API, or other limits than the product's.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from reporter.common.lifecycle import Stop
from reporter.kube.api import KubeApi
from reporter.kube.stream import Watch
from reporter.sidecar.main import Sidecar
from reporter.sidecar.settings import Settings
from tests.blackbox.sidecar import scene
from tests.blackbox.sidecar.scene import BOUND, Object
from tests.fakekube import FakeKube
from tests.fakekube.answers import ApiError
from tests.kube_client import connect

Connect = Callable[[FakeKube], KubeApi]


class Impatient(KubeApi):
    """Gives up ten times sooner than the product does, where silence is what is tested."""

    patience = 0.5
    silence = 0.5

    def get(self, *names: Any, timeout: float, **more: Any) -> Object:
        return super().get(*names, timeout=min(timeout, self.patience), **more)

    def patch(self, *what: Any, timeout: float, **more: Any) -> Object:
        return super().patch(*what, timeout=min(timeout, self.patience), **more)

    def watch(self, *names: Any, **more: Any) -> Watch:
        return super().watch(*names, **more, silence=self.silence)


def impatient(fake: FakeKube) -> KubeApi:
    """Return the API to somebody who does not wait long."""
    return Impatient.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)


class Reporter:
    """One start of the sidecar, in a thread."""

    def __init__(self, environ: dict[str, str], api: KubeApi) -> None:
        self.stop = Stop()
        self._code: int | None = None
        self._sidecar = Sidecar(Settings.read(environ), api, self.stop, environ)
        self._thread = threading.Thread(target=self._run, name="sidecar")
        self._thread.start()

    def _run(self) -> None:
        self._code = self._sidecar.run()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def sigterm(self) -> None:
        """Do what the signal handler does."""
        self.stop.request()

    def join(self, within: float = BOUND) -> int:
        """Return the exit code once it has ended by itself."""
        self._thread.join(within)
        assert not self._thread.is_alive(), "the sidecar has not ended"
        assert self._code is not None, "the sidecar has crashed"
        return self._code

    def finish(self, within: float = BOUND) -> int:
        """Return the exit code after a SIGTERM."""
        self.sigterm()
        return self.join(within)


class Scene(scene.Scene):
    """What the tests act on and look at."""

    def __init__(self, fake: FakeKube, directory: Path, logs: list[Object]) -> None:
        super().__init__(fake, directory)
        self.logs = logs
        self.threads: list[Reporter] = []

    def start(  # type: ignore[override]
        self, connect: Connect = connect, **variables: str
    ) -> Reporter:
        """Start the sidecar."""
        reporter = Reporter(self.environ(**variables), connect(self.fake))
        self.threads.append(reporter)
        return reporter

    def close(self) -> None:
        """End what still runs."""
        self.fake.clear_faults()
        with suppress(FileNotFoundError):
            self.fake.publish_authority()
        if any(reporter.alive for reporter in self.threads):
            # An end of the Pod is a shorter one than a SIGTERM that nobody can explain.
            with suppress(ApiError):
                self.fake.mark_pod_deleted(self.pod_name, grace=0)
        for reporter in self.threads:
            reporter.sigterm()
        for reporter in self.threads:
            with suppress(AssertionError):
                reporter.join()


@contextmanager
def staged(directory: Path, logs: list[Object]) -> Iterator[Scene]:
    """Set a scene in a directory; `logs` is what `log.capture` fills."""
    directory.mkdir(exist_ok=True)
    with FakeKube() as fake:
        staged = Scene(fake, directory, logs)
        try:
            yield staged
        finally:
            staged.close()
