"""What outlives a look: the first start, trouble, the last ended run, outages."""

from dataclasses import replace

import pytest

from reporter.verdict.facts import (
    Blocker,
    Container,
    Form,
    PodGone,
    PodRefused,
    PodSeen,
    PodUnknown,
    Running,
    Terminated,
    Waiting,
)
from reporter.verdict.history import History, earlier_start, remember
from reporter.verdict.not_starting import Trouble, trouble_of
from tests.situations import (
    ABSENT,
    LOOPING,
    START_ERROR,
    again,
    at,
    deleted,
    ended,
    first,
    identity,
    observed,
    pod,
    retried,
    running,
    valid,
)

NEW = History(waiting_since=0.0, waiting_since_at=at(0))


def last_run(*looks):
    """What is remembered of the last ended run: (exit code, restarts before it, its file)."""
    run = observed(*looks).history.last_run
    return None if run is None else (run.run.exit_code, run.restarts, run.file)


LAST = {
    "runs": ([(5, pod(running()))], None),
    "no adapter": ([(5, pod(adapter=None))], None),
    "has not started": ([(5, pod())], None),
    "ended": ([(11, first, valid(9))], (1, 0, valid(9))),
    "ended, an old file": ([(11, first, valid(-5))], (1, 0, ABSENT)),
    "ended, a file older than its start on a volume of the Pod's own": (
        [(11, replace(first, only_adapters_write=True), valid(-5))],
        (1, 0, valid(-5)),
    ),
    "ended after its deletion": ([(25, deleted(pod(ended(143, end=22))))], None),
    "ended in a Pod given up": ([(25, pod(ended(143), failing_at=at(9)))], None),
    "in back-off": ([(12, again(LOOPING, restarts=0), valid(9))], (1, 0, valid(9))),
    "runs again, the end shown before": (
        [(11, first, valid(9)), (21, again(running(20)), valid(9))],
        (1, 0, valid(9)),
    ),
    "runs again, the end not shown before": (
        [(21, again(running(20)), valid(9))],
        (1, 0, valid(9)),
    ),
    "runs again, the file is its own": ([(22, again(running(20)), valid(21))], (1, 0, ABSENT)),
    "runs again, no file": ([(22, again(running(20)))], (1, 0, ABSENT)),
    "runs again and rewrites the file": (
        [(11, first, valid(9)), (22, again(running(20)), valid(21))],
        (1, 0, valid(9)),
    ),
    "ended twice": (
        [(11, first, valid(9)), (31, again(ended(3, start=20, end=30)), valid(9))],
        (3, 1, ABSENT),
    ),
    "ended twice, then deleted": (
        [
            (31, again(ended(3, start=20, end=30)), valid(25)),
            (32, deleted(again(ended(3, start=20, end=30)), 31), valid(25)),
        ],
        (3, 1, valid(25)),
    ),
    "the second one is stopped by the deletion": (
        [(21, again(running(20))), (32, deleted(again(ended(143, start=20, end=31))))],
        (1, 0, ABSENT),
    ),
    "the last state has vanished": (
        [(11, first, valid(9)), (21, deleted(pod(running(20), restarts=1)))],
        (1, 0, valid(9)),
    ),
}


@pytest.mark.parametrize(("looks", "expected"), LAST.values(), ids=LAST.keys())
def test_the_last_run_that_ended_by_itself(looks, expected):
    """Kept with the file it left, because the API drops it with the next restart or deletion."""
    assert expected == last_run(*looks)


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([(9, pod())], (None, None)),
        ([(9, pod(adapter=None))], (None, None)),
        ([(9, PodRefused())], (None, None)),
        ([(9, pod(START_ERROR))], (None, None)),
        ([(9, pod(running(5)))], (5, at(5))),
        ([(9, pod(ended(0, start=5)))], (5, at(5))),
        ([(30, again(running(20)))], (1, at(1))),
        ([(30, again(LOOPING))], (1, at(1))),
        ([(9, pod(running(5))), (30, pod(running(20), restarts=1))], (5, at(5))),
        ([(9, pod(Running()))], (9, at(9))),
        ([(9, pod(Running())), (10, pod(running(5)))], (5, at(5))),
        ([(9, pod(Running())), (10, pod(Running()))], (9, at(9))),
        ([(9, pod(running(12)))], (9, at(12))),
    ],
    ids=[
        *("not started", "no adapter", "refused", "could not be started", "runs", "ended"),
        *("runs again", "in back-off", "runs again, the last state has vanished"),
        *("runs without a time", "the time comes later", "the time never comes"),
        "a start in the future is now",
    ],
)
def test_the_adapters_first_start(looks, expected):
    """The earliest that was ever shown, kept across restarts: (monotonic, epoch)."""
    found = observed(*looks).history

    assert expected == (found.first_started, found.first_started_at)


@pytest.mark.parametrize(
    ("form", "own_restarts", "expected"),
    [
        pytest.param(Form.NATIVE, 0, 0.0, id="never restarted: not before the reporter"),
        pytest.param(Form.NATIVE, 1, -3591.0, id="restarted: the adapter may have started before"),
        pytest.param(Form.NATIVE, None, -3591.0, id="its restarts are not shown"),
        pytest.param(Form.CLASSIC, 0, -3591.0, id="classic: the adapter may have started before"),
        pytest.param(None, 0, -3591.0, id="the form is not known"),
    ],
)
def test_a_clock_stepped_before_the_first_look_does_not_use_up_the_wait(
    form, own_restarts, expected
):
    """The stamp seems an hour old; a sidecar that was never restarted knows better."""
    shown = pod(running(-3591), form=form, own_restarts=own_restarts)

    assert expected == observed((9, shown)).history.waiting_from


def test_a_restart_of_the_reporter_that_shows_late_is_heard():
    """Its first look may show the Pod as it was before the kubelet noticed."""
    before = pod(running(-50), own_restarts=0)
    after = replace(before, own_restarts=1)

    assert 0.0 == observed((1, before)).history.waiting_from
    assert -50.0 == observed((1, before), (3, after)).history.waiting_from


def test_an_adapter_that_starts_later_is_given_its_time_from_there():
    """Also beside a reporter that was never restarted."""
    assert 5.0 == observed((9, pod(running(5), own_restarts=0))).history.waiting_from


def test_an_earlier_start_of_this_reporter_is_recalled():
    """A restarted reporter goes on with the anchors of the first one."""
    history = earlier_start(NEW, now=2.0, wall=at(2), started_at=at(-50), waiting_at=at(-60))

    assert (-60, at(-60)) == (history.waiting_since, history.waiting_since_at)
    assert (-50, at(-50)) == (history.first_started, history.first_started_at)


def test_what_is_recalled_never_moves_an_anchor_forward():
    """Recalled twice, late, or by a clock that was set back."""
    history = earlier_start(NEW, now=2.0, wall=at(2), started_at=at(1), waiting_at=None)

    assert history == earlier_start(
        history, now=9.0, wall=at(9), started_at=at(5), waiting_at=at(3)
    )
    assert history == earlier_start(history, now=9.0, wall=at(9), started_at=None, waiting_at=None)


BY_US, BY_INIT = "container 'adapter': ", "init container 'prepare': "
NOT_FOUND = 'StartError: exec: "nope": not found'
ERROR = pod(Waiting("ErrImagePull", "404"))
BACK_OFF = pod(Waiting("ImagePullBackOff", 'Back-off pulling image "a"'))
CAUSED = pod(Waiting("ImagePullBackOff", 'Back-off pulling image "a": ErrImagePull: 404'))
CONFIG = pod(Waiting("CreateContainerConfigError", "no key"))
REMEMBERED = {
    "once": ([(3, ERROR)], ("W1", "ErrImagePull: 404", 3)),
    "the back-off hides the cause": ([(3, ERROR), (9, BACK_OFF)], ("W1", "ErrImagePull: 404", 3)),
    "the back-off alone": (
        [(3, BACK_OFF)],
        ("W1", 'ImagePullBackOff: Back-off pulling image "a"', 3),
    ),
    "the cause comes later": ([(3, BACK_OFF), (9, CAUSED)], ("W1", "ErrImagePull: 404", 3)),
    "another cause in the same row": (
        [(3, ERROR), (9, pod(Waiting("ErrImagePull", "401")))],
        ("W1", "ErrImagePull: 401", 3),
    ),
    "another row": ([(3, ERROR), (9, CONFIG)], ("W2", "CreateContainerConfigError: no key", 9)),
    "over": ([(3, ERROR), (9, pod(running()))], None),
    "over and back": ([(3, ERROR), (9, pod()), (12, ERROR)], ("W1", "ErrImagePull: 404", 12)),
    "an outage in between": (
        [(3, ERROR), (9, PodUnknown()), (12, ERROR)],
        ("W1", "ErrImagePull: 404", 3),
    ),
    "the back-off of a command that is not found": (
        [(3, retried(START_ERROR)), (9, again(LOOPING, last=START_ERROR))],
        ("W3", NOT_FOUND, 3),
    ),
}


@pytest.mark.parametrize("situation", REMEMBERED)
def test_trouble_is_remembered_by_its_row(situation):
    """The kubelet alternates between an error and its back-off: one trouble, one beginning."""
    looks, expected = REMEMBERED[situation]
    history = observed(*looks).history
    trouble = history.trouble
    found = trouble and (trouble.row, trouble.text.removeprefix(BY_US), history.trouble_since)

    assert expected == found


def behind(state, last=None, *, for_good=False):
    """An adapter that waits behind the init container `prepare`."""
    waiting = Waiting("PodInitializing")
    return pod(waiting, blocker=Blocker(Container("prepare", state, last), for_good=for_good))


def kept_back(row, text, **more):
    """Trouble with the init container `prepare`."""
    return Trouble(row, BY_INIT + text, **more)


EXITED_6 = "exited with code 6: Error"
PULLS = Waiting("ImagePullBackOff", 'Back-off pulling image "a": ErrImagePull: 404')
NO_SECRET = Waiting("CreateContainerConfigError", 'secret "mesh" not found')
TROUBLES = {
    "no adapter": (pod(adapter=None), None),
    "runs": (pod(running()), None),
    "exit 128 by itself": (pod(ended(128)), None),
    "command not found": (pod(START_ERROR), Trouble("W3", BY_US + NOT_FOUND)),
    "command not found, in back-off": (
        again(LOOPING, last=START_ERROR),
        Trouble("W3", BY_US + NOT_FOUND, back_off=True),
    ),
    "exit 1, in back-off": (again(LOOPING), None),
    "in back-off, nothing else shown": (pod(LOOPING), None),
    "init container has not started": (behind(Waiting()), None),
    "init container runs": (behind(Running()), None),
    "init container's image": (behind(PULLS), kept_back("W1", "ErrImagePull: 404")),
    "init container failed": (behind(ended(6), for_good=True), kept_back("W3", EXITED_6)),
    "init container in back-off": (
        behind(LOOPING, ended(6, message="no network")),
        kept_back("W3", f"{EXITED_6}: no network"),
    ),
    "init container failed and its message is its log": (
        behind(ended(6, message="\u20ac" * 1000), for_good=True),
        kept_back("W3", f"{EXITED_6}: " + 53 * "\u20ac"),
    ),
    "init container runs again": (behind(Running(), ended(6)), kept_back("W3", EXITED_6)),
    "init container runs again after exit 0": (behind(Running(), ended(0)), None),
    "init container in back-off, nothing else shown": (behind(LOOPING), None),
    "a sidecar lacks its configuration": (
        behind(NO_SECRET),
        kept_back("W2", 'CreateContainerConfigError: secret "mesh" not found'),
    ),
    "a sidecar's hook failed and said much": (
        behind(Waiting("PostStartHookError", 300 * "x")),
        kept_back("W3", "PostStartHookError: " + 160 * "x"),
    ),
    "a sidecar's command not found, in back-off": (
        behind(LOOPING, START_ERROR),
        kept_back("W3", NOT_FOUND),
    ),
    "init container's command not found": (behind(START_ERROR), kept_back("W3", NOT_FOUND)),
    "the adapter's own trouble first": (
        pod(Waiting("InvalidImageName", "bad"), blocker=behind(ended(6)).blocker),
        Trouble("W1", f"{BY_US}InvalidImageName: bad", at_once=True),
    ),
}


@pytest.mark.parametrize("situation", TROUBLES)
def test_what_keeps_the_adapter_from_starting(situation):
    """By state and reason, naming the container; never by an exit code alone."""
    shown, expected = TROUBLES[situation]

    assert expected == trouble_of(shown)


AWAY = PodSeen(pod(), current=False)


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([pod()], (False, None)),
        ([PodUnknown()], (True, None)),
        ([PodUnknown(), pod()], (False, 1)),
        ([PodUnknown(), PodRefused()], (False, 1)),
        ([pod(), AWAY], (True, None)),
        ([AWAY, pod(), pod()], (False, 1)),
        ([PodUnknown(), pod(), PodUnknown(), PodGone(pod())], (False, 3)),
    ],
    ids=[
        *("there", "no answer yet", "the first answer", "refusing is answering", "away"),
        *("returned", "returned twice"),
    ],
)
def test_outages(looks, expected):
    """The time of the API's last return is kept."""
    history = observed(*enumerate(looks)).history

    assert expected == (history.away, history.returned)


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(3, pod())], None, id="no"),
        pytest.param([(3, deleted(pod())), (9, deleted(pod()))], 3, id="deleted"),
        pytest.param([(3, pod()), (9, PodGone(pod()))], 9, id="gone"),
        pytest.param([(3, pod(failing_at=at(2)))], None, id="given up by the kubelet"),
    ],
)
def test_since_when_the_pod_is_taken_away(looks, expected):
    """The grace period is counted from when the deletion was first seen."""
    assert expected == observed(*looks).history.taken_away_since


def test_the_last_pod_is_kept_when_nothing_is_shown():
    """An attempt stays the attempt it was, also while the API is away."""
    known = pod(running())

    assert known == observed((3, known), (5, PodUnknown()), (7, PodRefused())).history.last_pod


def test_remembering_is_repeatable():
    """The same look folded in twice changes nothing."""
    for look in (pod(), first, again(LOOPING), deleted(first), ERROR):
        once = remember(NEW, 30.0, at(30), PodSeen(look), valid(9))

        assert once == remember(once, 30.0, at(30), PodSeen(look), valid(9))


def test_an_ended_run_without_any_time():
    """A state the kubelet made up has neither start nor end."""
    bare = Terminated(137, "Error")

    assert (137, 0, valid(2)) == last_run((9, pod(bare), valid(2)))
    assert identity(2) == valid(2).identity
