"""What an answer means, and when a delivery is tried again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.link import Outcome
from reporter.link.delivery import EXCUSED_SECONDS, UNREACHABLE_SECONDS, Tries, outcome_of

WINDOW = 120.0


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([200], Outcome.ACCEPTED),
        ([409], Outcome.DUPLICATE),
        ([408, 425, 429, 500, 502, 503, 504, 507], None),
        ([201, 202, 204, 206], Outcome.REFUSED),
        ([300, 301, 302, 303, 304, 307, 308], Outcome.REFUSED),
        ([400, 401, 403, 404, 405, 410, 411, 413, 415, 431, 418], Outcome.REFUSED),
        ([501, 505, 506, 511, 599], Outcome.REFUSED),
    ],
)
def test_meaning_of_each_status(statuses, expected):
    """Only 200 and 409 are success; a redirect or a 201 came from somebody else."""
    assert [expected] * len(statuses) == [outcome_of(status) for status in statuses]


@given(st.integers(100, 999))
def test_every_status_means_something(status):
    """Whatever three digits come, and success is exactly two of them."""
    success = outcome_of(status) in {Outcome.ACCEPTED, Outcome.DUPLICATE}
    assert (status in {200, 409}) == success


@pytest.mark.parametrize(
    ("attempts", "ceiling"), [(1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (5, 15.0), (500, 15.0)]
)
@pytest.mark.parametrize("roll", [0.0, 0.5, 0.999])
def test_delay_is_full_jitter_up_to_15_seconds(attempts, ceiling, roll):
    """Doubling from one second, so tries stay close enough to keep the window open."""
    tries = Tries(0.0, attempts=attempts)
    assert roll * ceiling == pytest.approx(tries.delay(0.0, lambda: roll, window=WINDOW))


@pytest.mark.parametrize(("wish", "expected"), [(8.0, 10.0), (None, 0.5), (3600.0, 37.5)])
def test_retry_after_of_at_most_30_seconds_is_a_floor(wish, expected):
    """The aggregator's wish counts, but not beyond its own window's sense."""
    tries = Tries(0.0, attempts=1)
    assert expected == tries.delay(0.0, lambda: 0.5, window=WINDOW, retry_after=wish)


def test_window_begins_with_the_first_answer_of_500():
    """Later ones do not move it: the aggregator caps its own window too."""
    tries = Tries(0.0).unanswered(10.0).answered(503, 50.0).answered(500, 100.0)
    assert 170.0 == tries.last_start(WINDOW)
    assert 3 == tries.attempts


@pytest.mark.parametrize("status", [408, 425, 429])
def test_without_an_answer_of_500_it_is_tried_for_600_seconds(status):
    """Nobody has opened a window that could close; a Pod may be moving."""
    assert UNREACHABLE_SECONDS == Tries(0.0).answered(status, 10.0).last_start(WINDOW)


def test_window_never_reaches_beyond_600_seconds():
    """A first 503 after 590 s does not buy two more minutes."""
    assert UNREACHABLE_SECONDS == Tries(0.0).answered(503, 590.0).last_start(WINDOW)


def test_time_of_tries_without_an_answer_does_not_count():
    """One may have waited half an hour for its turn, until the aggregator was restarted."""
    assert 1_800.0 + UNREACHABLE_SECONDS == Tries(0.0).unanswered(1_800.0).last_start(WINDOW)
    assert 1_840.0 + WINDOW == Tries(0.0).answered(500, 40.0).unanswered(1_800.0).last_start(WINDOW)


def test_time_without_an_answer_counts_in_the_end():
    """An aggregator that never answers must not keep a Pod for days."""
    tries = Tries(0.0)
    for _ in range(9):
        tries = tries.unanswered(500.0)
    assert EXCUSED_SECONDS + UNREACHABLE_SECONDS == tries.last_start(WINDOW)


def test_time_with_a_busy_aggregator_does_not_count():
    """Neither of the two ends comes nearer by it."""
    tries = Tries(0.0).answered(500, 10.0).turned_away(1_900.0)
    assert 2 == tries.attempts
    assert 1_900.0 + UNREACHABLE_SECONDS == tries.last_start(WINDOW)
    assert 2_000.0 + WINDOW == tries.answered(500, 2_000.0).last_start(WINDOW)


@pytest.mark.parametrize(("now", "expected"), [(129.0, 1.0), (130.0, None), (131.0, None)])
def test_no_try_begins_after_the_window(now, expected):
    """What is left of it is the longest wait; then it is given up."""
    tries = Tries(0.0).answered(500, 10.0)
    assert expected == tries.delay(now, lambda: 0.999, window=WINDOW, retry_after=20.0)


@pytest.mark.parametrize(("left", "expected"), [(10.0, 0.5), (1.2, 0.2), (1.0, None), (-5.0, None)])
def test_callers_end_leaves_time_for_the_last_try(left, expected):
    """A try with less than a second to go is none."""
    tries = Tries(0.0).unanswered(0.0)
    assert expected == pytest.approx(tries.delay(0.0, lambda: 0.5, window=WINDOW, left=left))


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 408, 429, 500, 503, 507]), st.floats(0.0, 165.0)),
        max_size=200,
    ),
    st.floats(0.0, 0.999),
    st.none() | st.floats(0.0, 1e6),
)
def test_a_delivery_always_ends_in_time(history, roll, wish):
    """No try begins after 600 s, or 120 s after the first refusal; no wait is over 45 s.

    Beside what is excused of tries without an answer.
    """
    now, tries, refused, excused = 0.0, Tries(0.0), None, 0.0
    for status, took in history:
        assert now <= UNREACHABLE_SECONDS + excused
        assert refused is None or now <= refused + WINDOW + excused + 1e-6
        now += took
        if status:
            tries = tries.answered(status, now)
        else:
            tries, excused = tries.unanswered(took), min(excused + took, EXCUSED_SECONDS)
        if refused is None and status >= 500:
            refused = now
        delay = tries.delay(now, lambda: roll, window=WINDOW, retry_after=wish)
        if delay is None:
            return
        assert 0 <= delay <= 45.0
        now += delay
