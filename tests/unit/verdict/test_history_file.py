"""What outlives a look: whose file it is."""

from dataclasses import replace

import pytest

from reporter.verdict.facts import (
    FileBeforeStart,
    FileInvalid,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodUnknown,
    Running,
)
from reporter.verdict.history import History
from tests.situations import (
    ABSENT,
    LOOPING,
    LOST,
    ON_FAILURE,
    START_ERROR,
    again,
    at,
    ended,
    first,
    invalid,
    observed,
    pod,
    running,
    valid,
)


def counts(*looks):
    """Whether the file of the last look counts for the adapter's newest run."""
    return observed(*looks).file != ABSENT


WHOSE = {
    # the first run
    "first run: written in a later second": ([(9, pod(running(5)), valid(6))], True),
    "first run: written in the second of its start": ([(9, pod(running(5)), valid(5))], True),
    "first run: the start was stamped after a quick file": ([(9, pod(running(5)), valid(4))], True),
    "first run: two seconds before its start": ([(9, pod(running(5)), valid(3))], False),
    "first run: quick, but older than the Pod": ([(9, pod(running(0)), valid(-1))], False),
    "first run: invalid, older": ([(9, pod(running(5)), invalid(3))], False),
    "first run: ended": ([(9, pod(ended(0, start=5)), valid(5))], True),
    "first run: ended, seen twice": (
        [(9, pod(ended(0, start=5)), valid(5)), (10, pod(ended(0, start=5)), valid(5))],
        True,
    ),
    "first run: over, the Pod shows no start": (
        [(9, pod(running(5), started_at=None), valid(4))],
        True,
    ),
    # no start is shown
    "not started: not before the Pod": ([(9, pod(), valid(0))], True),
    "not started: before the Pod": ([(9, pod(), valid(-1))], False),
    "not started: the Pod shows no start either": ([(9, pod(started_at=None), valid(-9))], True),
    "runs without a time: not before the Pod": ([(9, pod(Running()), valid(0))], True),
    "runs without a time: before the Pod": ([(9, pod(Running()), valid(-1))], False),
    "lost: not before the Pod": ([(9, pod(LOST), valid(2))], True),
    "command not found has written nothing": ([(9, pod(START_ERROR), valid(2))], False),
    "command not found, a thing that cannot be read": (
        [(9, pod(START_ERROR), FileInvalid("the file cannot be read", None))],
        False,
    ),
    # the first run, on a volume that was born with the Pod: no earlier run can have left the file
    "own volume: two seconds before its start": (
        [(9, pod(running(5), only_adapters_write=True), valid(3))],
        True,
    ),
    "own volume: the clock was set back by a day": (
        [(9, pod(ended(0, start=5), only_adapters_write=True), valid(-86400))],
        True,
    ),
    "own volume: not started yet, older than the Pod": (
        [(9, pod(only_adapters_write=True), valid(-9))],
        True,
    ),
    "own volume: an invalid file, older": (
        [(9, pod(running(5), only_adapters_write=True), invalid(3))],
        True,
    ),
    "own volume: command not found has written nothing": (
        [(9, pod(START_ERROR, only_adapters_write=True), valid(2))],
        False,
    ),
    "own volume: command not found, in back-off": (
        [(14, again(LOOPING, last=START_ERROR, restarts=0, only_adapters_write=True), valid(9))],
        False,
    ),
    "own volume: in back-off after the first run": (
        [(11, again(LOOPING, restarts=0, only_adapters_write=True), valid(-9))],
        True,
    ),
    "own volume: the second run, the first one's file": (
        [(21, again(running(20), only_adapters_write=True), valid(9))],
        False,
    ),
    "own volume: the second run, what came before it can no longer be seen": (
        [(21, pod(running(20), restarts=1, only_adapters_write=True), valid(9))],
        False,
    ),
    "own volume: an earlier run is shown, the restart is not counted": (
        [(21, again(running(20), restarts=0, only_adapters_write=True), valid(9))],
        False,
    ),
    "own volume: Pod gone": (
        [(9, PodGone(pod(running(5), only_adapters_write=True)), valid(3))],
        True,
    ),
    # the Pod or the adapter cannot be seen
    "Pod refused": ([(9, PodRefused(), valid(-9))], True),
    "Pod refused after a start was shown: its times decide": (
        [(9, pod(running(5))), (11, PodRefused(), valid(3))],
        False,
    ),
    "Pod never seen": ([(9, PodNeverSeen(), valid(-9))], True),
    "Pod not shown yet": ([(9, PodUnknown(), valid(-9))], True),
    "misfit: not before the Pod": ([(9, pod(adapter=None), valid(0))], True),
    "misfit: before the Pod": ([(9, pod(adapter=None), valid(-1))], False),
    "Pod gone": ([(9, PodGone(pod(running(5))), valid(3))], False),
    "no identity": ([(9, pod(running(5)), FileInvalid("no directory", None))], True),
    # after a restart
    "second run: the first one's file": (
        [(11, first, valid(9)), (21, again(running(20)), valid(9))],
        False,
    ),
    "second run: the first one's file, first seen now": (
        [(21, again(running(20)), valid(9))],
        False,
    ),
    "second run: its own file": (
        [(11, first, valid(9)), (22, again(running(20)), valid(21))],
        True,
    ),
    "second run: its own file, in the second of its start": (
        [(11, first, valid(9)), (21, again(running(20)), valid(20))],
        True,
    ),
    "second run: its own file, stamped after it": (
        [(11, first, valid(9)), (21, again(running(20)), valid(19))],
        True,
    ),
    "restart within one second: the file was there at the first run's end": (
        [(10.5, first, valid(10)), (11, again(running(10)), valid(10))],
        False,
    ),
    "restart within one second: it was rewritten": (
        [(10.5, first, valid(10)), (11, again(running(10)), valid(10, inode=8))],
        True,
    ),
    "restart within one second: the end was never shown alone": (
        [(11, again(running(10)), valid(10))],
        True,
    ),
    "restart within one second: a second before the start": (
        [(11, again(running(11), last=ended(1, end=10)), valid(10))],
        False,
    ),
    "the API shows the end late, the file is already the second run's": (
        [(11.5, first, valid(11)), (12, again(running(11)), valid(11))],
        True,
    ),
    "the end shows no time: a second before the start": (
        [(21, again(running(20), last=replace(ended(1), finished_at=None)), valid(19))],
        False,
    ),
    "in back-off: the file of the run that ended": (
        [(11, again(LOOPING, restarts=0), valid(9))],
        True,
    ),
    "in back-off: written in the second of its start": (
        [(2, pod(ended(1, end=1), restart=ON_FAILURE), valid(1))] * 2
        + [(3, again(LOOPING, last=ended(1, end=1), restarts=0), valid(1))],
        True,
    ),
    "in back-off after the second run: the first one's file": (
        [
            (11, first, valid(10)),
            (12, again(running(10)), valid(10)),
            (14, again(LOOPING, last=ended(1, start=10, end=13)), valid(10)),
        ],
        False,
    ),
    "in back-off after the second run: a file of the second before it, nobody knows whose": (
        [(14, again(LOOPING, last=ended(1, start=11, end=13)), valid(10))],
        False,
    ),
    "in back-off after a command that was not found": (
        [(14, again(LOOPING, last=START_ERROR), valid(9))],
        False,
    ),
    "second run ended: in the second of its start, not there before": (
        [
            (11, first, ABSENT),
            (13, again(ended(0, start=12, end=12)), valid(12)),
            (14, again(ended(0, start=12, end=12)), valid(12)),
        ],
        True,
    ),
}


@pytest.mark.parametrize(("looks", "expected"), WHOSE.values(), ids=WHOSE.keys())
def test_a_file_counts_only_for_the_run_that_can_have_written_it(looks, expected):
    """By ctime and start in whole seconds, and by what was there when an earlier run had ended."""
    assert expected is counts(*looks)


def on_shared_volume(*looks, before=None, at_second=0.5):
    """Whether the last look's file counts where the volume may be older than the Pod.

    `before` is what was there when the reporter began, in that second.
    """
    start = FileBeforeStart(before and before.identity, at(at_second))
    history = History(waiting_since=0.0, waiting_since_at=at(0), file_before_start=start)
    shared = [(second, replace(shown, not_empty_dir=True), *file) for second, shown, *file in looks]
    return observed(*shared, history=history).file != ABSENT


SHARED = {
    "not started, written since the reporter's start": ([(9, pod(), valid(5))], {}, False),
    "not started, cannot be read": ([(9, pod(), FileInvalid("is on fire", None))], {}, False),
    "misfit: no start is ever shown": ([(9, pod(adapter=None), valid(5))], {}, False),
    "another file than before": ([(9, pod(running(5)), valid(6))], {"before": valid(-9)}, True),
    "the file server is 3 s behind": ([(9, pod(ended(0, start=5)), valid(2))], {}, True),
    "the file server is an hour behind": ([(9, pod(running(5)), valid(-3600))], {}, True),
    "the same file as before": ([(9, pod(running(5)), valid(-9))], {"before": valid(-9)}, False),
    "the same file as before, the file server is ahead": (
        [(9, pod(running(5)), valid(7))],
        {"before": valid(7)},
        False,
    ),
    "replaced by one of the same time": (
        [(9, pod(running(5)), valid(-9, inode=8))],
        {"before": valid(-9)},
        True,
    ),
    "the reporter began in the second of the start: its times decide": (
        [(9, pod(running(5)), valid(2))],
        {"at_second": 5.5},
        False,
    ),
    "the reporter was restarted after the start: its times decide": (
        [(9, pod(running(5)), valid(6))],
        {"before": valid(6), "at_second": 8},
        True,
    ),
    "second run: its times decide": (
        [(11, first, valid(9)), (21, again(running(20)), valid(15))],
        {},
        False,
    ),
}


@pytest.mark.parametrize(("looks", "start", "expected"), SHARED.values(), ids=SHARED.keys())
def test_on_a_volume_that_outlives_the_pod_a_first_run_must_have_changed_the_file(
    looks, start, expected
):
    assert expected is on_shared_volume(*looks, **start)


def test_what_the_reporter_found_when_it_began_may_be_unknown():
    shared = pod(running(5), not_empty_dir=True)

    assert counts((9, shared, valid(6)))
    assert not counts((9, shared, valid(2)))


def test_what_the_reporter_found_when_it_began_does_not_count_on_an_empty_dir():
    """Another init container mounts it writable: the times decide."""
    history = History(
        waiting_since=0.0, waiting_since_at=at(0), file_before_start=FileBeforeStart(None, at(0.5))
    )

    assert ABSENT == observed((9, pod(running(5)), valid(2)), history=history).file


def test_no_file_is_nobodys():
    """Absence needs no owner."""
    assert ABSENT == observed((9, pod(running(5)))).file
    assert ABSENT == observed((9, pod(adapter=None))).file
