"""Looking again and again, for a time; and the exit code that a run deserves in the end."""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from reporter.cli.exits import FAILED, GOOD, CannotTell
from reporter.cli.output import tell
from reporter.run.view import Document, Look, ReadOutcome, good
from reporter.runctl.server import ANSWER

if TYPE_CHECKING:
    from reporter.runctl.origin import Origin

_LEAST_PAUSE: Final = 0.2  # seconds between two looks
_SOON: Final = 0.05  # seconds: before the end of the time, and for the last answer


def delivery_option(parser: argparse.ArgumentParser) -> None:
    """Declare `--delivery-only`."""
    parser.add_argument(
        "--delivery-only",
        action="store_true",
        help="exit 0 if all results were delivered, even if checks failed",
    )


def exit_code(document: Document, *, delivery_only: bool) -> int:
    """Return 1 where something has failed."""
    return GOOD if good(document, delivery_only=delivery_only) else FAILED


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


def once(say: Callable[[str], None] = tell) -> Callable[[str], None]:
    """Return what says a line unless it has just said the same; an empty one ends that."""
    said = ""

    def hear(line: str) -> None:
        nonlocal said
        if line and line != said:
            say(line)
        said = line

    return hear


class Looks:
    """Looks at a run, one after the other with a pause between; at least one, until time is over.

    What is in the way is said once, until it is another. `entries` may be set between two looks:
    without them the summary is enough. Raises CannotTell where another look makes no sense.
    """

    def __init__(
        self,
        origin: "Origin",
        deadline: Deadline,
        *,
        entries: bool = True,
        say: Callable[[str], None] = tell,
    ) -> None:
        self._origin, self._deadline, self._say = origin, deadline, once(say)
        self.entries = entries

    def __iter__(self) -> Iterator[Look]:
        while True:
            look = self._origin.look(self._deadline.patience(ANSWER), entries=self.entries)
            if look.outcome is ReadOutcome.FORBIDDEN:
                raise CannotTell(f"{look.detail} (forbidden)")
            waits = f"{look.detail}; waiting" if look.detail else ""
            self._say(look.warning if look.document is not None else waits)
            yield look
            if self._deadline.over(self._origin.pause):
                return
            self._deadline.sleep(self._origin.pause)
