"""How long to wait before trying again: one pure function for every retry in the project."""

from collections.abc import Callable

RETRY_AFTER_CAP = 30.0  # a longer Retry-After is not obeyed: a verdict is waiting


def next_delay(
    attempt: int,
    rng: Callable[[], float],
    *,
    retry_after: float | None = None,
    remaining: float | None = None,
    first: float = 0.1,
    longest: float = 5.0,
) -> float | None:
    """Return the seconds to wait after failed try number `attempt` (1, 2, ...); None to give up.

    Exponential back-off with full jitter: uniform between 0 and `first` doubled with every try, at
    most `longest`. `retry_after` is a floor, capped, with up to half of itself on top: a server
    that is overloaded names the same second to everybody. `rng` gives numbers in [0, 1).
    `remaining` is the time left in which a try is still useful; a delay never goes beyond it while
    any of it is left.
    """
    if remaining is not None and remaining <= 0:
        return None
    ceiling = min(longest, first * 2.0 ** min(attempt - 1, 32))
    roll = rng()
    delay = max(roll * ceiling, min(retry_after or 0.0, RETRY_AFTER_CAP) * (1 + roll / 2))
    return delay if remaining is None else min(delay, remaining)
