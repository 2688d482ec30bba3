"""Work on a thread of its own that is told when it is over."""

import threading
from abc import ABC, abstractmethod


class Background(ABC):
    """Works from `start` to `close`."""

    def __init__(self, name: str, over: threading.Event | None = None) -> None:
        self._over = over or threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more."""
        self._over.set()

    def close(self) -> None:
        """Stop, and wait for what is under way."""
        self.stop()
        self._thread.join()

    @abstractmethod
    def _run(self) -> None:
        """Work, and wait on `_over` in the pauses."""
