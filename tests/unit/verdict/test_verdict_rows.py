"""Each row of the contract, in the order of its rules, for both forms of the reporter."""

from dataclasses import replace

import pytest

from reporter.verdict.facts import (
    Blocker,
    Container,
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
    Terminated,
    Waiting,
)
from tests.situations import (
    BAD,
    LOOPING,
    LOST,
    ON_FAILURE,
    OOM,
    PULLING,
    START_ERROR,
    at,
    deleted,
    ended,
    final,
    in_form,
    invalid,
    later,
    observed,
    pod,
    revisable,
    running,
    valid,
    verdict,
)
from tests.unit.verdict.expected import (
    EMPTY,
    FAILED,
    KILLED,
    NO_FILE,
    RUNS,
    SUCCESS,
    TIMEOUT,
    waiting,
)

FAILURE = ("R", "False", "QuotaLow", "2 of 12 failed")


STARTED_BADLY = (
    "W3",
    "False",
    "AdapterStartFailed",
    "container 'adapter': StartError: exec: \"nope\": not found",
)


UNPULLED = (
    "W1",
    "False",
    "AdapterImagePullFailed",
    "container 'adapter': ErrImagePull: 401 Unauthorized",
)


STARTS = ("A", "Unknown", "AdapterRunning", "Adapter container has not started yet")


FORBIDDEN = (*TIMEOUT[:3], f"{TIMEOUT[3]} (the Pod could not be read: forbidden)")


REFUSED_FOR_LONG = ((270, PodRefused()),)


UNSEEN = ("A", "Unknown", "AdapterRunning", "Adapter container cannot be observed")


NO_SUCH = "no container 'adapter'; containers: worker"


MISFIT = ("M", "Unknown", "ReporterConfigError", f"Invalid reporter settings: {NO_SUCH}")


NO_POD = (
    "M",
    "Unknown",
    "ReporterConfigError",
    "Invalid reporter settings: the namespace has no Pod with the name in POD_NAME",
)


LOOPS = (
    "C",
    "Unknown",
    "AdapterCrashLooping",
    "Adapter container keeps failing: last exit code 1, restarted 2 times",
)


INIT_FAILED = Blocker(Container("prepare", ended(6, start=0, end=1)), for_good=True)


NO_MESH = Blocker(Container("istio-proxy", PULLING), for_good=False)


INIT_REPEATS = replace(INIT_FAILED, for_good=False)


OWN_POLICY = RestartPolicy("Never", (RestartRule(frozenset({42}), among=True),))


misfit = pod(adapter=None, misfit=NO_SUCH)


ROWS = {
    # 1. a valid file wins
    "success while the adapter runs": (observed((3, pod(running()), valid())), final(*SUCCESS)),
    "failure while the adapter runs": (
        observed((3, pod(running()), valid(result=BAD))),
        final(*FAILURE),
    ),
    "result and exit 1": (observed((11, pod(ended(1)), valid())), final(*SUCCESS)),
    "result and OOM kill": (observed((11, pod(OOM), valid())), final(*SUCCESS)),
    "result, then container lost": (observed((11, pod(LOST), valid())), final(*SUCCESS)),
    "result while the API still shows the adapter waiting": (
        observed((3, pod(Waiting("PodInitializing")), valid())),
        final(*SUCCESS),
    ),
    "result after the wait time": (observed((400, pod(running()), valid(399))), final(*SUCCESS)),
    "result beats deletion": (observed((21, deleted(pod(running())), valid(20))), final(*SUCCESS)),
    "OnFailure: result while running": (
        observed((3, pod(running(), restart=ON_FAILURE), valid())),
        revisable(*SUCCESS),
    ),
    "OnFailure: result after the wait time while running": (
        observed((400, pod(running(), restart=ON_FAILURE), valid())),
        revisable(*SUCCESS),
    ),
    "OnFailure: result and exit 1": (
        observed((11, pod(ended(1), restart=ON_FAILURE), valid())),
        revisable(*SUCCESS),
    ),
    "OnFailure: result and exit 0": (
        observed((11, pod(ended(0), restart=ON_FAILURE), valid())),
        final(*SUCCESS),
    ),
    "OnFailure: result and deletion": (
        observed((21, deleted(pod(running(), restart=ON_FAILURE)), valid())),
        final(*SUCCESS),
    ),
    "OnFailure: result and the Pod given up": (
        observed((21, pod(running(), restart=ON_FAILURE, failing_at=at(20)), valid())),
        final(*SUCCESS),
    ),
    "OnFailure: result and the Pod gone": (
        observed((21, PodGone(pod(running(), restart=ON_FAILURE)), valid())),
        final(*SUCCESS),
    ),
    "own restart rule: result while running": (
        observed((3, pod(running(), restart=OWN_POLICY), valid())),
        revisable(*SUCCESS),
    ),
    "own restart rule: result and an exit code it does not name": (
        observed((11, pod(ended(1), restart=OWN_POLICY), valid())),
        final(*SUCCESS),
    ),
    "Pod refused: result": (observed((3, PodRefused(), valid())), revisable(*SUCCESS)),
    "Pod refused: result at the end of the wait time": (
        observed(*REFUSED_FOR_LONG, (300, PodRefused(), valid())),
        final(*SUCCESS),
    ),
    "Pod refused for a moment: result at the end of the wait time": (
        observed((271, PodRefused()), (300, PodRefused(), valid())),
        revisable(*SUCCESS),
    ),
    "Pod refused after it was shown: its policy is known": (
        observed((3, pod(running())), (5, PodRefused(), valid())),
        final(*SUCCESS),
    ),
    "OnFailure, Pod refused after it was shown": (
        observed((3, pod(running(), restart=ON_FAILURE)), (5, PodRefused(), valid())),
        revisable(*SUCCESS),
    ),
    "Pod not shown yet: result": (observed((3, PodUnknown(), valid())), revisable(*SUCCESS)),
    "Pod not shown during the wait time: result": (
        observed((300, PodUnknown(), valid())),
        revisable(*SUCCESS),
    ),
    "misfit: result": (observed((3, misfit, valid())), final(*SUCCESS)),
    "OnFailure, misfit: result": (
        observed((3, replace(misfit, restart=ON_FAILURE), valid())),
        revisable(*SUCCESS),
    ),
    # 2. ended for good: O, (E, D, N: see the tests of stopping), I, W3, X, S
    "OOM kill": (observed((11, pod(OOM))), final(*KILLED)),
    "OOM kill of a child, exit 0": (observed((11, pod(ended(0, "OOMKilled")))), final(*KILLED)),
    "OOM kill of a child, exit 9": (observed((11, pod(ended(9, "OOMKilled")))), final(*KILLED)),
    "OOM kill and half-written file": (observed((11, pod(OOM), invalid())), final(*KILLED)),
    "OOM kill, then deletion": (observed((21, deleted(pod(OOM), 9))), final(*KILLED)),
    "OOM kill in the last state, the Pod over": (
        observed((11, pod(Waiting(), last=OOM, phase="Failed"))),
        final(*KILLED),
    ),
    "exit 137 without the word is no OOM kill": (
        observed((11, pod(ended(137)))),
        final(
            "X", "False", "AdapterExitedWithError", "Adapter container exited with code 137: Error"
        ),
    ),
    "container lost": (
        observed((11, pod(LOST))),
        final(
            "N",
            "Unknown",
            "AdapterInterrupted",
            "Adapter container was lost before a verdict was known;"
            " adapter container ended with exit code 137",
        ),
    ),
    "container lost, invalid file": (
        observed((11, pod(LOST), invalid())),
        final(
            "N",
            "Unknown",
            "AdapterInterrupted",
            "Adapter container was lost before a verdict was known;"
            " adapter container ended with exit code 137",
        ),
    ),
    "invalid file and exit 0": (observed((11, pod(ended(0)), invalid())), final(*EMPTY)),
    "invalid file and exit 1": (observed((11, pod(ended(1)), invalid())), final(*EMPTY)),
    "invalid file: the cause of the contract": (
        observed(
            (11, pod(ended(1)), invalid(cause="status: must be either 'success' or 'failure'"))
        ),
        final(
            "I",
            "False",
            "InvalidResultFormat",
            "Failed to parse adapter result: status: must be either 'success' or 'failure'",
        ),
    ),
    "command not found": (observed((11, pod(START_ERROR))), final(*STARTED_BADLY)),
    "command not found has written nothing": (
        observed((11, pod(START_ERROR), invalid())),
        final(*STARTED_BADLY),
    ),
    "command not found, another's file": (
        observed((11, pod(START_ERROR), valid())),
        final(*STARTED_BADLY),
    ),
    "ContainerCannotRun": (
        observed((11, pod(ended(127, "ContainerCannotRun", "no such file", start=None)))),
        final(
            "W3",
            "False",
            "AdapterStartFailed",
            "container 'adapter': ContainerCannotRun: no such file",
        ),
    ),
    "exit 128 alone is no failed start": (
        observed((11, pod(ended(128)))),
        final(
            "X", "False", "AdapterExitedWithError", "Adapter container exited with code 128: Error"
        ),
    ),
    "another init container failed for good": (
        observed((3, pod(Waiting("PodInitializing"), blocker=INIT_FAILED))),
        final(
            "W3",
            "False",
            "AdapterStartFailed",
            "init container 'prepare': exited with code 6: Error",
        ),
    ),
    "waiting for its image when the Pod ended": (
        observed((3, pod(PULLING, phase="Failed"))),
        final(*UNPULLED),
    ),
    "exit 1": (observed((11, pod(ended(1)))), final(*FAILED)),
    "exit code without the kubelet's word": (
        observed((11, pod(Terminated(3)))),
        final("X", "False", "AdapterExitedWithError", "Adapter container exited with code 3"),
    ),
    "exit 0 without file": (observed((11, pod(ended(0)))), final(*NO_FILE)),
    "OnFailure: exit 0 without file": (
        observed((11, pod(ended(0), restart=ON_FAILURE))),
        final(*NO_FILE),
    ),
    "OnFailure: exit 1 in a Pod that is over": (
        observed((11, pod(ended(1), restart=ON_FAILURE, phase="Failed"))),
        final(*FAILED),
    ),
    "own restart rule: exit 1": (
        observed((11, pod(ended(1), restart=OWN_POLICY))),
        final(*FAILED),
    ),
    "the Pod is over and shows no end of the adapter": (
        observed((3, pod(running(), phase="Failed"))),
        final(
            "N",
            "Unknown",
            "AdapterInterrupted",
            "Pod ended (Failed) before a verdict was known; adapter container is running",
        ),
    ),
    "the Pod is over, an earlier run was OOM-killed": (
        observed((30, pod(running(20), last=OOM, restarts=1, phase="Failed"))),
        final(
            "N",
            "Unknown",
            "AdapterInterrupted",
            "Pod ended (Failed) before a verdict was known; adapter container is running",
        ),
    ),
    # 4. the wait time is over
    "hangs": (observed((301, pod(running()))), final(*TIMEOUT)),
    "hangs, not over yet": (observed((300, pod(running()))), revisable(*RUNS)),
    "hangs with an invalid file": (observed((301, pod(running()), invalid())), final(*EMPTY)),
    "OnFailure: hangs": (observed((301, pod(running(), restart=ON_FAILURE))), final(*TIMEOUT)),
    "OnFailure: waits for its next run": (
        observed((301, pod(LOOPING, last=ended(1), restarts=2, restart=ON_FAILURE))),
        final(*TIMEOUT),
    ),
    "OnFailure: waits for its next run, invalid file": (
        observed((301, pod(LOOPING, last=ended(1), restarts=2, restart=ON_FAILURE), invalid())),
        final(*EMPTY),
    ),
    "never started": (observed((300, pod())), revisable(*TIMEOUT)),
    "never started, invalid file": (observed((300, pod(), invalid())), revisable(*EMPTY)),
    "image not there when the wait time is over": (
        observed((290, pod(PULLING)), (300, pod(PULLING))),
        revisable(*UNPULLED),
    ),
    "invalid file before the image": (
        observed((290, pod(PULLING)), (300, pod(PULLING), invalid())),
        revisable(*EMPTY),
    ),
    "misfit when the wait time is over": (observed((300, misfit)), final(*MISFIT)),
    "OnFailure: misfit when the wait time is over": (
        observed((300, replace(misfit, restart=ON_FAILURE))),
        final(*MISFIT),
    ),
    "misfit, invalid file": (observed((300, misfit, invalid())), final(*EMPTY)),
    "Pod never seen when the wait time is over": (observed((300, PodNeverSeen())), final(*NO_POD)),
    "Pod refused until the wait time is over": (
        observed(*REFUSED_FOR_LONG, (300, PodRefused())),
        final(*FORBIDDEN),
    ),
    "Pod refused, invalid file": (
        observed(*REFUSED_FOR_LONG, (300, PodRefused(), invalid())),
        final(*EMPTY),
    ),
    "Pod refused for less than 30 s when the wait time is over": (
        observed((270.1, PodRefused()), (300, PodRefused())),
        revisable(*UNSEEN),
    ),
    "Pod shown, then refused for less than 30 s when the wait time is over": (
        observed((3, pod(running())), (299, PodRefused()), (300, PodRefused(), invalid())),
        revisable(*RUNS),
    ),
    "Pod shown, then refused for 30 s": (
        observed((3, pod(running())), (299, PodRefused()), (329, PodRefused())),
        final(*FORBIDDEN),
    ),
    "OnFailure, Pod shown, then refused for 30 s": (
        observed((3, pod(running(), restart=ON_FAILURE)), (299, PodRefused()), (329, PodRefused())),
        final(*FORBIDDEN),
    ),
    "Pod refused, shown and refused again": (
        observed(
            (3, PodRefused()), (290, pod(running())), (299, PodRefused()), (310, PodRefused())
        ),
        revisable(*RUNS),
    ),
    "misfit, then refused for less than 30 s": (
        observed((3, misfit), (299, PodRefused()), (300, PodRefused())),
        revisable(*MISFIT),
    ),
    "an end that was shown before the Pod was refused": (
        observed((11, pod(ended(1))), (12, PodRefused())),
        final(*FAILED),
    ),
    "Pod not shown until the wait time is over": (
        observed((300, PodUnknown())),
        revisable(*TIMEOUT),
    ),
    # 5. cannot start
    "image name invalid": (
        observed((3, waiting("InvalidImageName"))),
        revisable(
            "W1",
            "False",
            "AdapterImagePullFailed",
            "container 'adapter': InvalidImageName: said the kubelet",
        ),
    ),
    "image absent and never pulled": (
        observed((3, waiting("ErrImageNeverPull", ""))),
        revisable(
            "W1", "False", "AdapterImagePullFailed", "container 'adapter': ErrImageNeverPull"
        ),
    ),
    "image cannot be pulled for 59 s": (
        later(observed((3, pod(PULLING))), 62),
        revisable("A", "Unknown", "AdapterRunning", "Adapter container is waiting: ErrImagePull"),
    ),
    "image cannot be pulled for 60 s": (
        later(observed((3, pod(PULLING))), 63),
        revisable(*UNPULLED),
    ),
    "another init container keeps failing for 60 s": (
        later(observed((3, pod(blocker=INIT_REPEATS))), 63),
        revisable(
            "W3",
            "False",
            "AdapterStartFailed",
            "init container 'prepare': exited with code 6: Error",
        ),
    ),
    "a sidecar before the adapter cannot pull its image for 60 s": (
        later(observed((3, pod(blocker=NO_MESH))), 63),
        revisable(
            "W1",
            "False",
            "AdapterImagePullFailed",
            "init container 'istio-proxy': ErrImagePull: 401 Unauthorized",
        ),
    ),
    "OnFailure: command not found, the next try is due": (
        observed((11, pod(START_ERROR, restart=ON_FAILURE))),
        revisable("A", "Unknown", "AdapterRunning", "Adapter container ended with exit code 128"),
    ),
    # 6. goes on
    "OnFailure: restarted twice": (
        observed((50, pod(LOOPING, last=ended(1), restarts=2, restart=ON_FAILURE))),
        revisable(*LOOPS),
    ),
    "OnFailure: restarted once": (
        observed((50, pod(LOOPING, last=ended(1), restarts=1, restart=ON_FAILURE))),
        revisable(
            "A", "Unknown", "AdapterRunning", "Adapter container is waiting: CrashLoopBackOff"
        ),
    ),
    "OnFailure: restarted twice, last state not shown": (
        observed((50, pod(LOOPING, restarts=2, restart=ON_FAILURE))),
        revisable(*LOOPS[:3], "Adapter container keeps failing: restarted 2 times"),
    ),
    "OnFailure: OOM kill in the last state is not the end": (
        observed((50, pod(LOOPING, last=OOM, restarts=2, restart=ON_FAILURE))),
        revisable(*LOOPS[:3], LOOPS[3].replace("code 1", "code 137")),
    ),
    "OnFailure: restarted often and running": (
        observed((50, pod(running(49), last=ended(1), restarts=9, restart=ON_FAILURE))),
        revisable(*RUNS),
    ),
    "own restart rule: an exit code it names": (
        observed((11, pod(ended(42), restart=OWN_POLICY))),
        revisable("A", "Unknown", "AdapterRunning", "Adapter container ended with exit code 42"),
    ),
    "misfit": (observed((3, misfit)), revisable(*MISFIT)),
    "Pod never seen": (observed((3, PodNeverSeen())), revisable(*NO_POD)),
    "invalid file while running": (observed((3, pod(running()), invalid())), revisable(*RUNS)),
    "runs": (observed((3, pod(running()))), revisable(*RUNS)),
    "has not started": (observed((3, pod())), revisable(*STARTS)),
    "Pod refused": (observed((3, PodRefused())), revisable(*UNSEEN)),
    "Pod not shown yet": (observed((3, PodUnknown())), revisable(*UNSEEN)),
    "shown by an API that is away now": (
        observed((3, PodSeen(pod(running()), current=False))),
        revisable(*RUNS),
    ),
    "Job suspended, the Pod not yet deleted": (
        observed((3, pod(running())), job=Job(suspended=True)),
        revisable(*RUNS),
    ),
    "progress": (
        observed(
            (3, pod(running())),
            progress=Progress("copying", 12, 5, ("dns",), ("quota", "tls")),
        ),
        revisable(*RUNS[:3], f"{RUNS[3]}; 5 of 12 completed, 1 failed, 2 with errors, copying"),
    ),
}


@pytest.mark.parametrize("form", [Form.NATIVE, Form.CLASSIC])
@pytest.mark.parametrize(("o", "expected"), ROWS.values(), ids=ROWS.keys())
def test_each_situation_has_its_row(o, expected, form):
    """A situation gives one verdict: kind, row, status, reason and message, in both forms."""
    assert expected == verdict(in_form(o, form))
