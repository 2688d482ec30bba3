"""Exit codes, the same for every command, and the error that stands for one of them."""

from typing import Final

GOOD: Final = 0
FAILED: Final = 1
USAGE: Final = 2
TIME_OVER: Final = 3
CANNOT_TELL: Final = 4
INTERRUPTED: Final = 130
NOBODY_READS: Final = 141


class CannotTell(Exception):
    """There is no answer: nobody can be reached, nothing is shown to us, no such thing.

    Its lines go to standard error, the exit code is 4.
    """
