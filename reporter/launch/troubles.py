"""What keeps the launcher from its work, by what it was doing: for people, and in the log."""

from reporter.common import log
from reporter.common.log import RateLimitedLog
from reporter.errors import KubeError
from reporter.launch.mirror import Lost
from reporter.run.clock import RunClock
from reporter.run.launcher_status import LauncherTrouble


class Troubles:
    """Those that last. `now` is the clock of the run."""

    def __init__(self, now: RunClock) -> None:
        self._now = now
        self._found: dict[str, LauncherTrouble] = {}
        self._log, self._seldom = log.get(), RateLimitedLog()

    @property
    def worst(self) -> LauncherTrouble | None:
        """The one that lasts longest; nothing where all is well."""
        return min(self._found.values(), key=lambda one: one.since, default=None)

    def unseen(self, doing: str, lost: Lost | None) -> None:
        """Remember that the present is not seen, or that it is."""
        if lost is None:
            self._found.pop(doing, None)
        else:
            self._found[doing] = LauncherTrouble(lost.since, f"{doing}: {lost.reason}")
            self._tell(doing, lost.reason)

    def ended(self, doing: str, error: KubeError | None) -> None:
        """Remember how a request ended."""
        if error is None:
            self._found.pop(doing, None)
            return
        before = self._found.get(doing)
        since = self._now() if before is None else before.since
        self._found[doing] = LauncherTrouble(since, f"{doing}: {error}")
        self._tell(doing, str(error))

    def clear(self) -> None:
        """Forget all, with what nobody wants any more."""
        self._found.clear()

    def _tell(self, doing: str, reason: str) -> None:
        self._seldom.say(
            self._now.clock(),
            self._log.warning,
            "Launcher requests to the API server are failing",
            about=doing,
            doing=doing,
            error=reason,
        )
