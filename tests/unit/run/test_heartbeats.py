"""Heartbeats: ages, silence, and sweeps that come late."""

import pytest

from reporter.run.heartbeats import (
    INTERVAL,
    TIMEOUT,
    Beat,
    Rhythm,
    Sweep,
    age,
    beaten,
    heard,
    heard_since,
    lost,
    rhythm,
    shifted,
    stale,
)
from tests.tables import table

ARMED = Beat(1_000.0, armed=True)
UNARMED = Beat(1_000.0)


def test_any_request_is_heard_but_only_a_beat_arms():
    """Sonobuoy's workers send progress and never beat."""
    assert Beat(5.0) == heard(Beat(), 5.0)
    assert Beat(5.0, armed=True) == beaten(Beat(), 5.0)
    assert Beat(9.0, armed=True) == heard(beaten(Beat(), 5.0), 9.0)


def test_a_request_that_is_told_late_does_not_turn_time_back():
    """Two requests may finish in either order."""
    assert Beat(9.0, armed=True) == beaten(heard(Beat(), 9.0), 5.0)


@pytest.mark.parametrize(
    ("beat", "now", "expected"),
    [(Beat(), 7.0, None), (ARMED, 1_017.5, 17.5), (ARMED, 999.0, 0.0)],
)
def test_the_age_of_a_beat(beat, now, expected):
    """None if the worker was never heard; never negative."""
    assert expected == age(beat, now)


@table(
    ("beat", "silent", "is_stale", "is_lost"),
    {
        "A52 17 s: running": (ARMED, 17.0, False, False),
        "A52 just before three intervals": (ARMED, 44.9, False, False),
        "A52 45 s: stale": (ARMED, 45.0, True, False),
        "A52 just before the timeout": (ARMED, 119.9, True, False),
        "A52 120 s: lost": (ARMED, 120.0, True, True),
        "A52 heard, but it never beat": (UNARMED, 9_999.0, False, False),
        "A52 never heard": (Beat(), 9_999.0, False, False),
    },
)
def test_silence(beat, silent, is_stale, is_lost):
    """Only who has once beaten is judged."""
    now = 1_000.0 + silent
    assert (is_stale, is_lost) == (stale(beat, now), lost(beat, now=now))


@table(
    ("beat", "expected"),
    {
        "never heard: 120 s after its launch": (Beat(), 1_120.0),
        "heard without a beat: the network works": (Beat(1_060.0), 1_180.0),
        "it beat once": (Beat(1_060.0, armed=True), 1_180.0),
        "it beat before the launch": (Beat(900.0, armed=True), 1_120.0),
    },
)
def test_a_worker_that_is_known_to_beat(beat, expected):
    """Trouble with DNS or the network shows early, launch at 1,000 s."""
    assert False is lost(beat, now=expected - 0.1, expected_since=1_000.0)
    assert True is lost(beat, now=expected, expected_since=1_000.0)


def test_a_timeout_of_zero_is_never():
    """The setting that turns the rule off."""
    assert False is lost(ARMED, now=10.0**9, timeout=0.0, expected_since=0.0)


def test_an_armed_beat_that_nobody_heard():
    """Read back from a store that keeps no ages: it is judged from its next sign of life."""
    assert (False, False) == (lost(Beat(None, True), now=9e9), stale(Beat(None, True), 9e9))


def test_who_was_heard_since():
    """Later than that moment; a beat that nobody heard is none."""
    beats = {"a": Beat(1.0), "b": Beat(2.0), "c": Beat(3.0, armed=True), "d": Beat(None, True)}
    assert (("b", "c"), ("c",)) == (heard_since(beats, 1.0), heard_since(beats, 2.0))


@table(
    ("last", "now", "gap"),
    {
        "the first sweep": (None, 5_000.0, 0.0),
        "in time": (100.0, 105.0, 0.0),
        "10 s late still counts": (100.0, 115.0, 0.0),
        "A53 more than 10 s late": (100.0, 115.5, 10.5),
        "A53 paused for ten minutes": (100.0, 705.0, 600.0),
    },
)
def test_a_sweep_that_comes_late(last, now, gap):
    """What we slept through was not the workers' silence."""
    assert (Sweep(now), gap) == Sweep(last).at(now)


@table(
    ("beat", "expected"),
    {
        "never heard": (Beat(), Beat()),
        "heard before the pause": (ARMED, Beat(1_600.0, armed=True)),
        "heard after it: not later than now": (Beat(1_650.0), Beat(1_700.0)),
    },
)
def test_the_gap_does_not_count(beat, expected):
    """A53: ages shrink by the 600 s of the pause, at 1,700 s."""
    assert expected == shifted(beat, 600.0, 1_700.0)


@table(
    ("keys", "interval", "timeout", "expected"),
    {
        "as wished": (1, 15, 120, Rhythm(15, 120, 45)),
        "200 per second": (3_000, 15, 120, Rhythm(15, 120, 45)),
        "more than that": (3_001, 15, 120, Rhythm(16, 120, 48)),
        "a large run": (100_000, 15, 120, Rhythm(500, 2_000, 1_500)),
        "less than four beats": (2, 5, 10, Rhythm(5, 20, 15)),
        "never": (100_000, 15, 0, Rhythm(500, 0, 1_500)),
        "an empty plan": (0, 15, 120, Rhythm(15, 120, 45)),
    },
)
def test_the_rhythm_of_a_run(keys, interval, timeout, expected):
    """Heartbeats stay below 200 per second, and nobody is lost over three of them."""
    assert expected == rhythm(keys, interval, timeout)


def test_the_rhythm_without_wishes():
    """What is written down as defaults fits together."""
    assert Rhythm() == rhythm(1, int(INTERVAL), TIMEOUT)
