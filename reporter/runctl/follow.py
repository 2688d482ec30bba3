"""Looking at a run again and again, for a time; and the exit code that it deserves in the end."""

import argparse
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from reporter.cli.exits import FAILED, GOOD, CannotTell
from reporter.cli.output import tell
from reporter.run.view import Document, Look, ReadOutcome, failed, passed, upload_failed
from reporter.runctl.deadline import Deadline
from reporter.runctl.server import ANSWER

if TYPE_CHECKING:
    from reporter.runctl.origin import Origin


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


def good(document: Document, *, delivery_only: bool) -> bool:
    """Return whether nothing has failed: no delivery and, unless only these count, no check.

    The upload of the results is one of the deliveries.
    """
    if upload_failed(document):
        return False
    return not failed(document) if delivery_only else passed(document)


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
