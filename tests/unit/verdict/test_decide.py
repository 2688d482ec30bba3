"""The contract's rows, in the order of its rules: a situation gives one verdict, in both forms."""

from dataclasses import replace

import pytest

from reporter.verdict.case import Policy
from reporter.verdict.decide import decide, nothing_more
from reporter.verdict.facts import (
    Blocker,
    Container,
    FileReadFailed,
    Form,
    Job,
    PodGone,
    PodNeverSeen,
    PodRefused,
    PodSeen,
    PodUnknown,
    Progress,
    RestartPolicy,
    RestartRule,
    Running,
    Terminated,
    Waiting,
)
from tests.saying import said, seen
from tests.situations import (
    BAD,
    LOOPING,
    LOST,
    ON_FAILURE,
    OOM,
    PULLING,
    START_ERROR,
    again,
    at,
    deleted,
    ended,
    in_form,
    invalid,
    later,
    observed,
    pod,
    retried,
    running,
    valid,
)

FAILURE = "R! False QuotaLow: 2 of 12 failed"
UNREADABLE = "T! ... (the Pod could not be read: forbidden)"
UNSEEN = "A? cannot be observed"
NO_POD = "Invalid reporter settings: the namespace has no Pod with the name in POD_NAME"
NOT_PREPARED = "init container 'prepare': exited with code 6: Error"
INIT_FAILED = Blocker(Container("prepare", ended(6, start=0, end=1)), for_good=True)
INIT_REPEATS = replace(INIT_FAILED, for_good=False)
NO_MESH = Blocker(Container("istio-proxy", PULLING), for_good=False)
OWN_POLICY = RestartPolicy("Never", (RestartRule(frozenset({42}), among=True),))
# Never ready, so its condition turned to PodFailed with the transition time of the Pod's start.
UNPREPARED = pod(Waiting("PodInitializing"), blocker=INIT_FAILED, failing_at=at(0))

misfit = pod(adapter=None, misfit="no container 'adapter'; containers: worker")


def waiting(reason, message="said the kubelet"):
    """A Pod whose adapter waits for that reason."""
    return pod(Waiting(reason, message), phase="Pending")


SITUATIONS = {
    # 1. a valid file wins
    "success while the adapter runs": ("R!", (3, pod(running()), valid())),
    "failure while the adapter runs": (FAILURE, (3, pod(running()), valid(result=BAD))),
    "result and exit 1": ("R!", (11, pod(ended(1)), valid())),
    "result and OOM kill": ("R!", (11, pod(OOM), valid())),
    "result, then container lost": ("R!", (11, pod(LOST), valid())),
    "result while the API still shows the adapter waiting": (
        "R!",
        (3, pod(Waiting("PodInitializing")), valid()),
    ),
    "result after the wait time": ("R!", (400, pod(running()), valid(399))),
    "result beats deletion": ("R!", (21, deleted(pod(running())), valid(20))),
    "OnFailure: result while running": ("R?", (3, retried(running()), valid())),
    "OnFailure: result after the wait time while running": (
        "R?",
        (400, retried(running()), valid()),
    ),
    "OnFailure: result and exit 1": ("R?", (11, retried(ended(1)), valid())),
    "OnFailure: result and exit 0": ("R!", (11, retried(ended(0)), valid())),
    "OnFailure: result and deletion": ("R!", (21, deleted(retried(running())), valid())),
    "OnFailure: result and the Pod given up": (
        "R!",
        (21, retried(running(), failing_at=at(20)), valid()),
    ),
    "OnFailure: result and the Pod gone": ("R!", (21, PodGone(retried(running())), valid())),
    "own restart rule: result while running": (
        "R?",
        (3, pod(running(), restart=OWN_POLICY), valid()),
    ),
    "own restart rule: result and an exit code it does not name": (
        "R!",
        (11, pod(ended(1), restart=OWN_POLICY), valid()),
    ),
    "Pod refused: result": ("R?", (3, PodRefused(), valid())),
    "Pod refused: result at the end of the wait time": (
        "R!",
        (270, PodRefused()),
        (300, PodRefused(), valid()),
    ),
    "Pod refused for a moment: result at the end of the wait time": (
        "R?",
        (271, PodRefused()),
        (300, PodRefused(), valid()),
    ),
    "Pod refused after it was shown: its policy is known": (
        "R!",
        (3, pod(running())),
        (5, PodRefused(), valid()),
    ),
    "OnFailure, Pod refused after it was shown": (
        "R?",
        (3, retried(running())),
        (5, PodRefused(), valid()),
    ),
    "Pod not shown yet: result": ("R?", (3, PodUnknown(), valid())),
    "Pod not shown during the wait time: result": ("R?", (300, PodUnknown(), valid())),
    "misfit: result": ("R!", (3, misfit, valid())),
    "OnFailure, misfit: result": ("R?", (3, replace(misfit, restart=ON_FAILURE), valid())),
    # 2. ended for good: O, (E, D, N: see the tests of stopping), I, W3, X, S
    "OOM kill": ("O!", (11, pod(OOM))),
    "OOM kill of a child, exit 0": ("O!", (11, pod(ended(0, "OOMKilled")))),
    "OOM kill of a child, exit 9": ("O!", (11, pod(ended(9, "OOMKilled")))),
    "OOM kill and half-written file": ("O!", (11, pod(OOM), invalid())),
    "OOM kill, then deletion": ("O!", (21, deleted(pod(OOM), 9))),
    "OOM kill in the last state, the Pod over": (
        "O!",
        (11, pod(Waiting(), last=OOM, phase="Failed")),
    ),
    "exit 137 without the word is no OOM kill": (
        "X! exited with code 137: Error",
        (11, pod(ended(137))),
    ),
    "container lost": ("N! was lost ... ended with exit code 137", (11, pod(LOST))),
    "container lost, invalid file": (
        "N! was lost ... ended with exit code 137",
        (11, pod(LOST), invalid()),
    ),
    "invalid file and exit 0": ("I!", (11, pod(ended(0)), invalid())),
    "invalid file and exit 1": ("I!", (11, pod(ended(1)), invalid())),
    "invalid file: the cause of the contract": (
        "I! Failed to parse adapter result: status: must be either 'success' or 'failure'",
        (11, pod(ended(1)), invalid(cause="status: must be either 'success' or 'failure'")),
    ),
    "command not found": ("W3!", (11, pod(START_ERROR))),
    "command not found has written nothing": ("W3!", (11, pod(START_ERROR), invalid())),
    "command not found, another's file": ("W3!", (11, pod(START_ERROR), valid())),
    "ContainerCannotRun": (
        "W3! container 'adapter': ContainerCannotRun: no such file",
        (11, pod(ended(127, "ContainerCannotRun", "no such file", start=None))),
    ),
    "exit 128 alone is no failed start": ("X! exited with code 128: Error", (11, pod(ended(128)))),
    "another init container failed for good": (
        f"W3! {NOT_PREPARED}",
        (3, pod(Waiting("PodInitializing"), blocker=INIT_FAILED)),
    ),
    "another init container failed, which fails the Pod": (f"W3! {NOT_PREPARED}", (3, UNPREPARED)),
    "another init container ended after the deletion, maybe by its SIGTERM": (
        "N! Pod was deleted ... is waiting: PodInitializing",
        (21, deleted(UNPREPARED)),
    ),
    "waiting for its image when the Pod ended": ("W1!", (3, pod(PULLING, phase="Failed"))),
    "exit 1": ("X!", (11, pod(ended(1)))),
    "exit code without the kubelet's word": ("X! exited with code 3", (11, pod(Terminated(3)))),
    "exit 0 without file": ("X0!", (11, pod(ended(0)))),
    "OnFailure: exit 0 without file": ("X0!", (11, retried(ended(0)))),
    "OnFailure: exit 1 in a Pod that is over": ("X!", (11, retried(ended(1), phase="Failed"))),
    "own restart rule: exit 1": ("X!", (11, pod(ended(1), restart=OWN_POLICY))),
    "the Pod is over and shows no end of the adapter": (
        "N! Pod ended (Failed) ... is running",
        (3, pod(running(), phase="Failed")),
    ),
    "the Pod is over, an earlier run was OOM-killed": (
        "N! Pod ended (Failed) ... is running",
        (30, pod(running(20), last=OOM, restarts=1, phase="Failed")),
    ),
    "OnFailure: exit 0 of the second run, the file is the first one's": (
        "X0!",
        (11, retried(ended(1)), valid(9)),
        (31, again(ended(0, start=20, end=30)), valid(9)),
    ),
    # 4. the wait time is over
    "hangs": ("T!", (301, pod(running()))),
    "hangs, not over yet": ("A?", (300, pod(running()))),
    "hangs with an invalid file": ("I!", (301, pod(running()), invalid())),
    "OnFailure: hangs": ("T!", (301, retried(running()))),
    "OnFailure: waits for its next run": ("T!", (301, retried(LOOPING, last=ended(1), restarts=2))),
    "OnFailure: waits for its next run, invalid file": (
        "I!",
        (301, retried(LOOPING, last=ended(1), restarts=2), invalid()),
    ),
    "never started": ("T?", (300, pod())),
    "never started, invalid file": ("I?", (300, pod(), invalid())),
    "image not there when the wait time is over": ("W1?", (290, pod(PULLING)), (300, pod(PULLING))),
    "invalid file before the image": ("I?", (290, pod(PULLING)), (300, pod(PULLING), invalid())),
    "misfit when the wait time is over": ("M!", (300, misfit)),
    "OnFailure: misfit when the wait time is over": (
        "M!",
        (300, replace(misfit, restart=ON_FAILURE)),
    ),
    "misfit, invalid file": ("I!", (300, misfit, invalid())),
    "Pod never seen when the wait time is over": (f"M! {NO_POD}", (300, PodNeverSeen())),
    "Pod refused until the wait time is over": (
        UNREADABLE,
        (270, PodRefused()),
        (300, PodRefused()),
    ),
    "Pod refused, invalid file": ("I!", (270, PodRefused()), (300, PodRefused(), invalid())),
    "Pod refused for less than 30 s when the wait time is over": (
        UNSEEN,
        (270.1, PodRefused()),
        (300, PodRefused()),
    ),
    "Pod shown, then refused for less than 30 s when the wait time is over": (
        "A?",
        (3, pod(running())),
        (299, PodRefused()),
        (300, PodRefused(), invalid()),
    ),
    "Pod shown, then refused for 30 s": (
        UNREADABLE,
        (3, pod(running())),
        (299, PodRefused()),
        (329, PodRefused()),
    ),
    "OnFailure, Pod shown, then refused for 30 s": (
        UNREADABLE,
        (3, retried(running())),
        (299, PodRefused()),
        (329, PodRefused()),
    ),
    "Pod refused, shown and refused again": (
        "A?",
        (3, PodRefused()),
        (290, pod(running())),
        (299, PodRefused()),
        (310, PodRefused()),
    ),
    "misfit, then refused for less than 30 s": (
        "M?",
        (3, misfit),
        (299, PodRefused()),
        (300, PodRefused()),
    ),
    "an end that was shown before the Pod was refused": (
        "X!",
        (11, pod(ended(1))),
        (12, PodRefused()),
    ),
    "Pod not shown until the wait time is over": ("T?", (300, PodUnknown())),
    "started after 4 minutes: its wait time is not over": (
        "A?",
        (240, pod()),
        (540.9, pod(running(241))),
    ),
    "started after 4 minutes: its wait time is over": (
        "T!",
        (240, pod()),
        (541, pod(running(241))),
    ),
    "started after a timeout": ("A?", (300, pod()), (400, pod(running(399)))),
    "started after a timeout: result": ("R!", (300, pod()), (401, pod(running(399)), valid(400))),
    "runs without a time since 7 s": ("A?", (7, pod(Running())), (306.9, pod(Running()))),
    "runs without a time since 7 s, the wait time is over": (
        "T!",
        (7, pod(Running())),
        (307, pod(Running())),
    ),
    # 5. cannot start
    "image name invalid": (
        "W1? container 'adapter': InvalidImageName: said the kubelet",
        (3, waiting("InvalidImageName")),
    ),
    "image absent and never pulled": (
        "W1? container 'adapter': ErrImageNeverPull",
        (3, waiting("ErrImageNeverPull", "")),
    ),
    "image cannot be pulled for 59 s": (
        "A? is waiting: ErrImagePull",
        (3, pod(PULLING)),
        (62, pod(PULLING)),
    ),
    "image cannot be pulled for 60 s": ("W1?", (3, pod(PULLING)), (63, pod(PULLING))),
    "another init container keeps failing for 60 s": (
        f"W3? {NOT_PREPARED}",
        (3, pod(blocker=INIT_REPEATS)),
        (63, pod(blocker=INIT_REPEATS)),
    ),
    "a sidecar before the adapter cannot pull its image for 60 s": (
        "W1? init container 'istio-proxy': ErrImagePull: 401 Unauthorized",
        (3, pod(blocker=NO_MESH)),
        (63, pod(blocker=NO_MESH)),
    ),
    "OnFailure: command not found, the next try is due": (
        "A? ended with exit code 128",
        (11, retried(START_ERROR)),
    ),
    # 6. goes on
    "OnFailure: restarted twice": ("C?", (50, retried(LOOPING, last=ended(1), restarts=2))),
    "OnFailure: restarted once": (
        "A? is waiting: CrashLoopBackOff",
        (50, retried(LOOPING, last=ended(1), restarts=1)),
    ),
    "OnFailure: restarted twice, last state not shown": (
        "C? keeps failing: restarted 2 times",
        (50, retried(LOOPING, restarts=2)),
    ),
    "OnFailure: OOM kill in the last state is not the end": (
        "C? keeps failing: last exit code 137, restarted 2 times",
        (50, retried(LOOPING, last=OOM, restarts=2)),
    ),
    "OnFailure: restarted often and running": (
        "A?",
        (50, retried(running(49), last=ended(1), restarts=9)),
    ),
    "OnFailure: restarted often and about to start": (
        "A? is waiting: ContainerCreating",
        (50, retried(Waiting("ContainerCreating"), last=ended(1), restarts=9)),
    ),
    "own restart rule: an exit code it names": (
        "A? ended with exit code 42",
        (11, pod(ended(42), restart=OWN_POLICY)),
    ),
    "misfit": ("M?", (3, misfit)),
    "Pod never seen": (f"M? {NO_POD}", (3, PodNeverSeen())),
    "invalid file while running": ("A?", (3, pod(running()), invalid())),
    "runs": ("A?", (3, pod(running()))),
    "has not started": ("A? has not started yet", (3, pod())),
    "Pod refused": (UNSEEN, (3, PodRefused())),
    "Pod not shown yet": (UNSEEN, (3, PodUnknown())),
    "shown by an API that is away now": ("A?", (3, PodSeen(pod(running()), current=False))),
    "Job suspended, the Pod not yet deleted": (
        "A?",
        observed((3, pod(running())), job=Job(suspended=True)),
    ),
    "progress": (
        "A? ...; 5 of 12 completed, 1 failed, 2 with errors, copying",
        observed(
            (3, pod(running())), progress=Progress("copying", 12, 5, ("dns",), ("quota", "tls"))
        ),
    ),
}


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_situation_has_its_row(situation, form):
    expected, *looks = SITUATIONS[situation]

    assert expected == said(in_form(seen(*looks), form))


@pytest.mark.parametrize(
    ("row", "reasons"),
    {
        "W1": (
            *("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError"),
            "SignatureValidationFailed",
        ),
        "W2": ("CreateContainerConfigError",),
        "W3": (
            *("CreateContainerError", "RunContainerError"),
            *("PreStartHookError", "PreCreateHookError", "PostStartHookError"),
        ),
        "A": ("ContainerCreating", "PodInitializing", "SomethingNew"),
    }.items(),
)
def test_waiting_reasons_have_their_row_after_a_minute(row, reasons):
    """Every reason of the contract, and a new one that nobody knows."""
    for reason in reasons:
        shown = waiting(reason)

        assert said(observed((3, shown), (63, shown))).startswith(f"{row}? "), reason


@pytest.mark.parametrize(
    ("wait", "shown"), [(12, "12s"), (300, "5m0s"), (3600, "1h0m0s"), (90061, "25h1m1s")]
)
def test_timeout_names_the_wait_time_as_go_prints_it(wait, shown):
    """Row T's message is the older product's, to the letter."""
    verdict = decide(observed((100_000, pod(running()))), Policy(wait=wait))

    assert f"Adapter did not produce results within {shown}" == verdict.report.message


@pytest.mark.parametrize(
    ("expected", "run", "file"),
    [("S!", ended(0), []), ("X!", ended(1), []), ("O!", OOM, []), ("I!", ended(0), [invalid()])],
)
def test_without_a_required_result_only_exit_0_without_a_file_is_good(expected, run, file):
    assert expected == said(observed((11, pod(run), *file)), Policy(result_required=False))


@pytest.mark.parametrize(
    ("expected", "looks"),
    [
        (301, [(3, pod(running()))]),
        (63, [(3, pod(PULLING))]),
        (300, [(3, pod(PULLING)), (63, pod(PULLING))]),
        (33, [(3, PodRefused())]),
        (float("inf"), [(300, pod())]),
    ],
)
def test_the_next_look_is_when_time_alone_changes_the_verdict(expected, looks):
    """End of the wait time, the minute in a row, 30 s of 403; nothing when all are over."""
    assert expected == decide(observed(*looks), Policy()).next_look


# A file that cannot be read just now: what waits for it, and for how long.

STALE = FileReadFailed("the file cannot be opened: stale file handle", None)
BROKEN = f"I! Failed to parse adapter result: {STALE.cause}"
FINISHED = pod(ended(0))
UNREAD = {
    "exit 0: neither X nor S": ("-", (11, FINISHED, STALE)),
    "exit 1: not X": ("-", (11, pod(ended(1)), STALE)),
    "the wait time is over: neither I nor T": ("-", (11, pod(running(-300)), STALE)),
    "running": ("A?", (11, pod(running()), STALE)),
    "OOM: a result would still replace it": ("O?", (11, pod(OOM), STALE)),
    "deleted": ("N?", (11, deleted(pod(running())), STALE)),
    "command not found: there is no file to wait for": ("W3!", (11, pod(START_ERROR), STALE)),
    "it has passed": ("R!", (11, FINISHED, STALE), (11.3, FINISHED, valid())),
    "for 9.9 s": ("-", (11, FINISHED, STALE), (20.9, FINISHED, STALE)),
    "for 10 s": (BROKEN, (11, FINISHED, STALE), (21, FINISHED, STALE)),
    "for 10 s, the wait time is over": (
        BROKEN,
        (290, pod(running()), STALE),
        (301, pod(running()), STALE),
    ),
    "for 9.9 s since a good read": (
        "-",
        (11, FINISHED, STALE),
        (15, FINISHED),
        (16, FINISHED, STALE),
        (25.9, FINISHED, STALE),
    ),
    "for 10 s since a good read": (
        BROKEN,
        (11, FINISHED, STALE),
        (15, FINISHED),
        (16, FINISHED, STALE),
        (26, FINISHED, STALE),
    ),
    "OnFailure: a result was read before": (
        "R?",
        (6, retried(running()), valid(5)),
        (7, retried(running()), replace(STALE, before=valid(5))),
    ),
    "OnFailure: a result was read before, exit 0": (
        "R!",
        (6, retried(running()), valid(5)),
        (11, retried(ended(0)), replace(STALE, before=valid(5))),
    ),
    "OnFailure: a result of the run before was read": (
        "-",
        (31, again(ended(0, start=20, end=30)), replace(STALE, before=valid(9))),
    ),
}


@pytest.mark.parametrize("situation", UNREAD)
def test_nothing_is_final_that_a_file_may_change_once_it_can_be_read(situation):
    expected, *looks = UNREAD[situation]

    assert expected == said(observed(*looks))


def test_a_file_that_cannot_be_read_is_looked_at_often():
    o = observed((11, FINISHED, STALE))

    assert 11.5 == decide(o, Policy()).next_look
    assert 21 == decide(later(o, 20.8), Policy()).next_look


def test_after_sigterm_a_read_error_is_waited_for_until_a_second_before_the_end():
    o = in_form(observed((30, pod(ended(0, end=29), grace=10), STALE), stopped=30), Form.NATIVE)

    assert "-" == said(later(o, 36.9))
    assert not nothing_more(later(o, 36.9), Policy())
    assert BROKEN == said(later(o, 37))


def test_a_reporter_that_was_stopped_alone_waits_for_a_read_error_to_pass():
    """Longer than for the Pod: 10 s since the first error."""
    o = in_form(observed((30, pod(running()), STALE), stopped=30), Form.CLASSIC)

    assert not nothing_more(later(o, 39.9), Policy())
    assert nothing_more(later(o, 40), Policy())


def test_the_file_of_a_run_that_ended_is_read_again_after_an_error():
    looping = again(LOOPING, restarts=0)
    o = observed((11, retried(ended(1)), STALE), (12, looping, STALE), (13, looping, valid(9)))

    assert valid(9) == o.history.last_run.file
