"""What is different in a run since somebody last looked."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.core.run.beats import INTERVAL, Beat
from reporter.core.run.changes import WINDOW, Changes, History
from reporter.core.run.entry import Cause, Entry, Window
from reporter.core.run.snapshot import Phase, Tar
from reporter.core.run.status import entry_document
from tests.unit.core.run.world import E2E, NODE1, NODE2, PLAN, RESULT, START, ours, sent, snapshot

MONO = 1_000.0
TAR = Tar("a.tar.gz", "2026-01-01T00:00:00Z", "ab" * 32, 3)


def at(run, revision):
    """The run at another revision."""
    return replace(run, revision=revision)


def seen(old, new, *, after=1.0):
    """What a look at `new` finds, when `old` was seen before."""
    return History.begin(old, MONO).follow(at(new, 43), MONO + after)[1]


def test_nothing_new():
    """The same run again."""
    assert Changes((), ()) == seen(snapshot(), snapshot())


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(snapshot({NODE1: RESULT}), id="a result"),
        pytest.param(snapshot({NODE1: ours()}), id="an error"),
        pytest.param(
            snapshot(entries={NODE1: Entry(NODE1, window=Window(1.0, 2.0, "x"), attempts=1)}),
            id="a failed upload",
        ),
        pytest.param(snapshot(progress={NODE1: sent(msg="m")}), id="progress"),
        pytest.param(snapshot(beats={NODE1: Beat(MONO)}), id="first sign of life"),
    ],
)
def test_one_entry_changes(new):
    """Its key, and no other."""
    assert Changes((NODE1,), ()) == seen(snapshot(), new)


def test_the_order_of_the_plan():
    """Whatever changed."""
    new = snapshot({NODE2: RESULT}, progress={NODE1: sent(msg="m")}, beats={E2E: Beat(MONO)})

    assert (E2E, NODE1, NODE2) == seen(snapshot(), new).entries


def test_a_later_beat():
    """Changes only an age."""
    old = snapshot(beats={NODE1: Beat(MONO, True)})
    new = snapshot(beats={NODE1: Beat(MONO + 1, True)})

    assert Changes((), (NODE1,)) == seen(old, new)


def test_a_worker_that_starts_to_beat():
    """Is judged from now on."""
    old, new = (snapshot(beats={NODE1: Beat(MONO, armed)}) for armed in (False, True))

    assert Changes((NODE1,), ()) == seen(old, new)


def test_a_worker_becomes_stale():
    """By time alone; and it is not any more when it is heard again."""
    run = snapshot(beats={NODE1: Beat(MONO, True), NODE2: Beat(MONO, False)})
    late = MONO + 3 * INTERVAL
    history, silent = History.begin(run, MONO).follow(at(run, 43), late)
    heard = snapshot(beats={NODE1: Beat(late, True), NODE2: Beat(MONO, False)})
    back = history.follow(at(heard, 44), late + 1)[1]

    assert [Changes((NODE1,), ())] * 2 == [silent, back]


def test_who_is_stale_is_told_with_a_revision():
    """Not before: a reader may leave with the revision and be told only of later ones."""
    run, late = snapshot(beats={NODE1: Beat(MONO, True)}), MONO + 3 * INTERVAL
    history, unsaid = History.begin(run, MONO).follow(run, late)
    history, said = history.follow(at(run, 43), late)

    assert [Changes((), ()), Changes((NODE1,), ())] == [unsaid, said]
    assert (NODE1,) == history.since(42)


def test_a_decided_entry_is_never_stale():
    """Nobody waits for its worker."""
    run = snapshot({NODE1: RESULT}, beats={NODE1: Beat(MONO, True)})

    assert Changes((), ()) == seen(run, run, after=1e6)


def test_the_run_is_closed():
    """The result status of what failed is known then."""
    records = {E2E: RESULT, NODE1: ours(), NODE2: ours(Cause.DEADLINE)}
    old = snapshot(records, phase=Phase.POST_PROCESSING)
    new = snapshot(records, phase=Phase.CLOSED, tar=TAR)

    assert Changes((NODE1,), ()) == seen(old, new)


def test_what_a_reader_has_missed():
    """Entries that changed after the revision that it knows."""
    history = History.begin(snapshot(), MONO)
    history, _ = history.follow(at(snapshot({NODE1: RESULT}), 50), MONO)
    both = snapshot({NODE1: RESULT}, progress={E2E: sent(msg="m")})
    history, _ = history.follow(at(both, 60), MONO)

    missed = {42: (E2E, NODE1), 49: (E2E, NODE1), 50: (E2E,), 59: (E2E,), 60: ()}
    assert missed == {revision: history.since(revision) for revision in missed}


@pytest.mark.parametrize(
    ("revision", "known"),
    [(41, False), (43, False), (999 + 42, False), (1000 + 42, True), (2042, True), (2043, False)],
)
def test_what_cannot_be_told(revision, known):
    """Revisions of others, of the future, and more than 1,000 ago."""
    history, _ = History.begin(snapshot(), MONO).follow(at(snapshot(), 42 + 2 * WINDOW), MONO)

    assert known is (history.since(revision) is not None)


def test_a_revision_before_the_first():
    """It was given out by another process, whose changes are not known here."""
    history = History.begin(snapshot(), MONO)

    assert (None, ()) == (history.since(41), history.since(42))


def test_who_has_seen_the_end():
    """Everybody who knows the first revision at which the run was over, or a later one."""
    over = snapshot(dict.fromkeys(PLAN.keys, RESULT), phase=Phase.CLOSED, tar=TAR)
    history, _ = History.begin(snapshot(), MONO).follow(at(over, 50), MONO)
    history, _ = history.follow(at(over, 52), MONO)
    known = {49: False, 50: True, 52: True, 53: False}

    assert known == {revision: history.told_end(revision) for revision in known}


def test_a_run_that_goes_on():
    """Nobody has seen its end."""
    assert not History.begin(snapshot(), MONO).told_end(42)


def test_a_run_that_is_over_already():
    """A process that was started after the end."""
    assert History.begin(snapshot(phase=Phase.CLOSED, tar=TAR), MONO).told_end(42)


RECORDS = st.sampled_from([None, RESULT, ours(), ours(Cause.DEADLINE)])
PROGRESS = st.sampled_from([None, sent(msg="a"), sent(msg="b", total=3)])
BEATS = st.sampled_from([None, Beat(MONO - 60), Beat(MONO - 60, True), Beat(MONO, True)])


def given_each(values):
    """Something or nothing for each key."""
    return st.fixed_dictionaries(dict.fromkeys(PLAN.keys, values)).map(
        lambda found: {key: value for key, value in found.items() if value is not None}
    )


RUNS = st.builds(
    lambda records, progress, beats, phase: snapshot(
        records, progress=progress, beats=beats, phase=phase
    ),
    given_each(RECORDS),
    given_each(PROGRESS),
    given_each(BEATS),
    st.sampled_from(Phase),
)


@given(RUNS, RUNS, st.floats(0.0, 100.0))
def test_whatever_is_shown_differently_is_told(old, new, after):
    """No entry whose document differs, but for its age, is left out."""
    found = seen(old, new, after=after)

    def shown(run, mono, **more):
        documents = {
            key: entry_document(run, key, now=START, mono=mono, full=False) for key in PLAN.keys
        }
        return {key: document | more for key, document in documents.items()}

    def differing(**more):
        before, now = shown(old, MONO, **more), shown(new, MONO + after, **more)
        return {key for key in PLAN.keys if before[key] != now[key]}

    # Closing is one way only; the other way need not be seen.
    if not (old.phase is Phase.CLOSED and new.phase is not Phase.CLOSED):
        assert differing(**{"last-heartbeat": None}) <= set(found.entries)
    assert not set(found.entries) & set(found.heard)
