"""Work on a thread of its own that is told when it is over."""

import threading


class Background:
    """Works from `start` to `close`. A subclass has `_run`, which waits on `over` in its pauses."""

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

    def _run(self) -> None:
        raise NotImplementedError
