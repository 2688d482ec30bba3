"""How long to wait before the next try."""

import pytest

from reporter.common.retry import RETRY_AFTER_CAP, next_delay


@pytest.mark.parametrize(
    ("attempt", "ceiling"), [(1, 0.1), (2, 0.2), (3, 0.4), (6, 3.2), (7, 5.0), (10**9, 5.0)]
)
@pytest.mark.parametrize("roll", [0.0, 0.5, 0.999])
def test_exponential_with_full_jitter(attempt, ceiling, roll):
    """Anywhere between nothing and a ceiling that doubles with every try, up to the longest."""
    assert roll * ceiling == pytest.approx(next_delay(attempt, lambda: roll))


def test_first_and_longest_are_the_callers():
    """A conflict is tried again sooner, a refused watch later."""
    assert 0.02 == next_delay(1, lambda: 1.0, first=0.02)
    assert 60.0 == next_delay(20, lambda: 1.0, longest=60.0)


@pytest.mark.parametrize(
    ("attempt", "wish", "expected"),
    [
        (1, None, 0.05),
        (1, 0.0, 0.05),
        (1, 8.0, 10.0),
        (1, 21_600.0, 1.25 * RETRY_AFTER_CAP),
        (9, 1.0, 2.5),
    ],
)
def test_the_servers_wish_is_a_floor_with_a_cap(attempt, wish, expected):
    """Retry-After of six hours would cost the Job its verdict; the back-off may be longer."""
    assert expected == next_delay(attempt, lambda: 0.5, retry_after=wish)


def test_a_herd_with_one_wish_is_spread_over_half_of_it():
    """Whoever was told one second would come back together, again and again."""
    delays = [next_delay(1, lambda roll=roll: roll / 100, retry_after=1.0) for roll in range(100)]

    assert 1.0 == min(delays)
    assert 1.49 < max(delays) <= 1.5
    assert 100 == len(set(delays))


@pytest.mark.parametrize(
    ("remaining", "wish", "expected"),
    [
        (10.0, None, 2.5),
        (2.0, None, 2.0),
        (3.0, 20.0, 3.0),
        (0.001, None, 0.001),
        (0.0, None, None),
        (-1.0, None, None),
    ],
)
def test_a_delay_never_reaches_beyond_the_end(remaining, wish, expected):
    """While time is left there is one more try in it, against any wish; then it is given up."""
    assert expected == next_delay(9, lambda: 0.5, retry_after=wish, remaining=remaining)
