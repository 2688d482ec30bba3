"""How long a command waits, and how often it looks meanwhile."""

import time
from collections.abc import Callable
from typing import Final

_LEAST_PAUSE: Final = 0.2  # seconds between two looks
_SOON: Final = 0.05  # seconds: before the end of the time, and for the last answer


class Deadline:
    """`timeout` seconds from now, or no end."""

    def __init__(
        self,
        timeout: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.clock, self._sleep, self._began = clock, sleep, clock()
        self._timeout = timeout

    @property
    def elapsed(self) -> float:
        """The seconds since the beginning."""
        return self.clock() - self._began

    def left(self) -> float | None:
        """Return the seconds until the end, if there is one."""
        return None if self._timeout is None else max(self._timeout - self.elapsed, 0.0)

    def patience(self, longest: float) -> float:
        """Return the seconds that an answer may take.

        Who does not want to wait wants an answer all the same.
        """
        left = self.left()
        return (
            longest
            if left is None
            else min(longest, max(left, _SOON if self._timeout else longest))
        )

    def over(self, pause: float = 0.0) -> bool:
        """Say whether the time is over before another look makes sense."""
        return self._timeout is not None and self.elapsed + min(pause, _SOON) >= self._timeout

    def sleep(self, longest: float) -> None:
        """Pass the time until the next look.

        What takes a moment is looked at more often: nobody waits for a tenth more than it takes.
        """
        pause = min(longest, max(_LEAST_PAUSE, self.elapsed / 10))
        left = self.left()
        self._sleep(pause if left is None else min(pause, left))
