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


def starts(*looks, history=None):
    """The adapter's first start: (monotonic, epoch)."""
    found = observed(*looks, history=history).history
    return found.first_started, found.first_started_at


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(9, pod())], (None, None), id="not started"),
        pytest.param([(9, pod(adapter=None))], (None, None), id="no adapter"),
        pytest.param([(9, PodRefused())], (None, None), id="refused"),
        pytest.param([(9, pod(START_ERROR))], (None, None), id="could not be started"),
        pytest.param([(9, pod(running(5)))], (5, at(5)), id="runs"),
        pytest.param([(9, pod(ended(0, start=5)))], (5, at(5)), id="ended"),
        pytest.param([(30, again(running(20)))], (1, at(1)), id="runs again"),
        pytest.param([(30, again(LOOPING))], (1, at(1)), id="in back-off"),
        pytest.param(
            [(9, pod(running(5))), (30, pod(running(20), restarts=1))],
            (5, at(5)),
            id="runs again, the last state has vanished",
        ),
        pytest.param([(9, pod(Running()))], (9, at(9)), id="runs without a time"),
        pytest.param(
            [(9, pod(Running())), (10, pod(running(5)))], (5, at(5)), id="the time comes later"
        ),
        pytest.param(
            [(9, pod(Running())), (10, pod(Running()))], (9, at(9)), id="the time never comes"
        ),
        pytest.param([(9, pod(running(12)))], (9, at(12)), id="a start in the future is now"),
    ],
)
def test_the_adapters_first_start(looks, expected):
    """The earliest that was ever shown, kept across restarts."""
    assert expected == starts(*looks)


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


def troubles(*looks):
    """The remembered trouble: (row, text, since)."""
    history = observed(*looks).history
    return history.trouble and (history.trouble.row, history.trouble.text, history.trouble_since)


ERROR = pod(Waiting("ErrImagePull", "404"))


BACK_OFF = pod(Waiting("ImagePullBackOff", 'Back-off pulling image "a"'))


CAUSED = pod(Waiting("ImagePullBackOff", 'Back-off pulling image "a": ErrImagePull: 404'))


CONFIG = pod(Waiting("CreateContainerConfigError", "no key"))


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(3, ERROR)], ("W1", "container 'adapter': ErrImagePull: 404", 3), id="once"),
        pytest.param(
            [(3, ERROR), (9, BACK_OFF)],
            ("W1", "container 'adapter': ErrImagePull: 404", 3),
            id="the back-off hides the cause",
        ),
        pytest.param(
            [(3, BACK_OFF)],
            ("W1", "container 'adapter': ImagePullBackOff: Back-off pulling image \"a\"", 3),
            id="the back-off alone",
        ),
        pytest.param(
            [(3, BACK_OFF), (9, CAUSED)],
            ("W1", "container 'adapter': ErrImagePull: 404", 3),
            id="the cause comes later",
        ),
        pytest.param(
            [(3, ERROR), (9, pod(Waiting("ErrImagePull", "401")))],
            ("W1", "container 'adapter': ErrImagePull: 401", 3),
            id="another cause in the same row",
        ),
        pytest.param(
            [(3, ERROR), (9, CONFIG)],
            ("W2", "container 'adapter': CreateContainerConfigError: no key", 9),
            id="another row",
        ),
        pytest.param([(3, ERROR), (9, pod(running()))], None, id="over"),
        pytest.param(
            [(3, ERROR), (9, pod()), (12, ERROR)],
            ("W1", "container 'adapter': ErrImagePull: 404", 12),
            id="over and back",
        ),
        pytest.param(
            [(3, ERROR), (9, PodUnknown()), (12, ERROR)],
            ("W1", "container 'adapter': ErrImagePull: 404", 3),
            id="an outage in between",
        ),
        pytest.param(
            [(3, retried(START_ERROR)), (9, again(LOOPING, last=START_ERROR))],
            ("W3", "container 'adapter': StartError: exec: \"nope\": not found", 3),
            id="the back-off of a command that is not found",
        ),
    ],
)
def test_trouble_is_remembered_by_its_row(looks, expected):
    """The kubelet alternates between an error and its back-off: one trouble, one beginning."""
    assert expected == troubles(*looks)


def behind(state, last=None, *, for_good=False):
    """An adapter that waits behind the init container `prepare`."""
    waiting = Waiting("PodInitializing")
    return pod(waiting, blocker=Blocker(Container("prepare", state, last), for_good=for_good))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(pod(adapter=None), None, id="no adapter"),
        pytest.param(pod(running()), None, id="runs"),
        pytest.param(pod(ended(128)), None, id="exit 128 by itself"),
        pytest.param(
            pod(START_ERROR),
            Trouble("W3", "container 'adapter': StartError: exec: \"nope\": not found"),
            id="command not found",
        ),
        pytest.param(
            again(LOOPING, last=START_ERROR),
            Trouble(
                "W3", "container 'adapter': StartError: exec: \"nope\": not found", back_off=True
            ),
            id="command not found, in back-off",
        ),
        pytest.param(again(LOOPING), None, id="exit 1, in back-off"),
        pytest.param(pod(LOOPING), None, id="in back-off, nothing else shown"),
        pytest.param(behind(Waiting()), None, id="init container has not started"),
        pytest.param(behind(Running()), None, id="init container runs"),
        pytest.param(
            behind(Waiting("ImagePullBackOff", 'Back-off pulling image "a": ErrImagePull: 404')),
            Trouble("W1", "init container 'prepare': ErrImagePull: 404"),
            id="init container's image",
        ),
        pytest.param(
            behind(ended(6), for_good=True),
            Trouble("W3", "init container 'prepare': exited with code 6: Error"),
            id="init container failed",
        ),
        pytest.param(
            behind(LOOPING, ended(6, message="no network")),
            Trouble("W3", "init container 'prepare': exited with code 6: Error: no network"),
            id="init container in back-off",
        ),
        pytest.param(
            behind(ended(6, message="\u20ac" * 1000), for_good=True),
            Trouble("W3", "init container 'prepare': exited with code 6: Error: " + 53 * "\u20ac"),
            id="init container failed and its message is its log",
        ),
        pytest.param(
            behind(Running(), ended(6)),
            Trouble("W3", "init container 'prepare': exited with code 6: Error"),
            id="init container runs again",
        ),
        pytest.param(
            behind(Running(), ended(0)), None, id="init container runs again after exit 0"
        ),
        pytest.param(behind(LOOPING), None, id="init container in back-off, nothing else shown"),
        pytest.param(
            behind(Waiting("CreateContainerConfigError", 'secret "mesh" not found')),
            Trouble(
                "W2",
                "init container 'prepare': CreateContainerConfigError: secret \"mesh\" not found",
            ),
            id="a sidecar lacks its configuration",
        ),
        pytest.param(
            behind(Waiting("PostStartHookError", 300 * "x")),
            Trouble("W3", "init container 'prepare': PostStartHookError: " + 160 * "x"),
            id="a sidecar's hook failed and said much",
        ),
        pytest.param(
            behind(LOOPING, START_ERROR),
            Trouble("W3", "init container 'prepare': StartError: exec: \"nope\": not found"),
            id="a sidecar's command not found, in back-off",
        ),
        pytest.param(
            behind(START_ERROR),
            Trouble("W3", "init container 'prepare': StartError: exec: \"nope\": not found"),
            id="init container's command not found",
        ),
        pytest.param(
            pod(Waiting("InvalidImageName", "bad"), blocker=behind(ended(6)).blocker),
            Trouble("W1", "container 'adapter': InvalidImageName: bad", at_once=True),
            id="the adapter's own trouble first",
        ),
    ],
)
def test_what_keeps_the_adapter_from_starting(shown, expected):
    """By state and reason, naming the container; never by an exit code alone."""
    assert expected == trouble_of(shown)


def availability(*looks):
    """Whether the API is away, and when it returned."""
    history = observed(*looks).history
    return history.away, history.returned


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        pytest.param([(3, pod())], (False, None), id="there"),
        pytest.param([(3, PodUnknown())], (True, None), id="no answer yet"),
        pytest.param([(3, PodUnknown()), (5, pod())], (False, 5), id="the first answer"),
        pytest.param(
            [(3, PodUnknown()), (5, PodRefused())], (False, 5), id="refusing is answering"
        ),
        pytest.param([(3, pod()), (5, PodSeen(pod(), current=False))], (True, None), id="away"),
        pytest.param(
            [(3, PodSeen(pod(), current=False)), (5, pod()), (9, pod())], (False, 5), id="returned"
        ),
        pytest.param(
            [(3, PodUnknown()), (5, pod()), (7, PodUnknown()), (9, PodGone(pod()))],
            (False, 9),
            id="returned twice",
        ),
    ],
)
def test_outages(looks, expected):
    """The time of the API's last return is kept."""
    assert expected == availability(*looks)


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
