"""What a task of the agent is given, and what it gives back. A task is one subcommand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Stop(Protocol):
    """Whether to end; the main thread can wait for it."""

    def is_set(self) -> bool:
        """Return whether to end."""

    def wait(self, timeout: float | None = None) -> bool:
        """Sleep for so many seconds (nothing: for ever), or until there is a reason to end."""


Tell = Callable[[str, int, int], None]
"""Takes a message, how many steps are done and how many there are. Never waits, never raises."""


@dataclass(frozen=True, slots=True)
class Work:
    """Where a task works. It leaves its output in `out`, which is empty, and nothing elsewhere.

    After `stop` it has a few seconds: what is there then is delivered.
    """

    out: Path
    environ: Mapping[str, str]
    tell: Tell
    stop: Stop


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Why the output is not a result: words for people, a token for programs.

    The files in the directory are delivered along with it.
    """

    text: str
    cause: str
