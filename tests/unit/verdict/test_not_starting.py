"""Why an adapter does not start: each waiting reason has its row, after a minute."""

import pytest

from reporter.verdict.facts import Waiting
from tests.situations import (
    LOOPING,
    ON_FAILURE,
    PULLING,
    START_ERROR,
    later,
    observed,
    pod,
    revisable,
    verdict,
)
from tests.unit.verdict.expected import waiting


def test_the_rows_of_waiting_are_not_mixed():
    """The 60 s count from the first look at the present row."""
    o = observed((3, pod(PULLING)), (50, waiting("CreateContainerConfigError", "no ConfigMap")))

    assert "A" == verdict(later(o, 109))[1].row
    assert revisable(
        "W2",
        "False",
        "AdapterConfigError",
        "container 'adapter': CreateContainerConfigError: no ConfigMap",
    ) == verdict(later(o, 110))


@pytest.mark.parametrize(
    ("reason", "row"),
    [
        ("ErrImagePull", "W1"),
        ("ImagePullBackOff", "W1"),
        ("RegistryUnavailable", "W1"),
        ("ImageInspectError", "W1"),
        ("SignatureValidationFailed", "W1"),
        ("CreateContainerConfigError", "W2"),
        ("CreateContainerError", "W3"),
        ("RunContainerError", "W3"),
        ("PreStartHookError", "W3"),
        ("PreCreateHookError", "W3"),
        ("PostStartHookError", "W3"),
        ("ContainerCreating", "A"),
        ("PodInitializing", "A"),
        ("SomethingNew", "A"),
    ],
)
def test_waiting_reasons_have_their_row_after_a_minute(reason, row):
    """Every reason of the contract, and a new one that nobody knows."""
    assert row == verdict(later(observed((3, waiting(reason))), 63))[1].row


def test_the_image_texts_of_error_and_back_off_are_one():
    """ErrImagePull and ImagePullBackOff alternate: neither the text nor the time starts anew."""
    error = Waiting("ErrImagePull", "404 Not Found")
    back_off = Waiting(
        "ImagePullBackOff", 'Back-off pulling image "a:b": ErrImagePull: 404 Not Found'
    )
    short = Waiting("ImagePullBackOff", 'Back-off pulling image "a:b"')
    looks = [(3, error), (20, back_off), (40, short), (50, error), (63, short)]
    o = observed(*[(second, pod(state)) for second, state in looks])

    assert revisable(
        "W1", "False", "AdapterImagePullFailed", "container 'adapter': ErrImagePull: 404 Not Found"
    ) == verdict(o)


def test_a_command_that_is_never_found_is_a_failed_start():
    """OnFailure: the back-off between tries neither hides the cause nor starts the time anew."""
    again = Waiting("RunContainerError", "failed to start container")
    o = observed(
        (3, pod(START_ERROR, restart=ON_FAILURE)),
        (4, pod(again, last=START_ERROR, restarts=1, restart=ON_FAILURE)),
        (20, pod(LOOPING, last=START_ERROR, restarts=1, restart=ON_FAILURE)),
        (63, pod(LOOPING, last=START_ERROR, restarts=2, restart=ON_FAILURE)),
    )

    assert revisable(
        "W3",
        "False",
        "AdapterStartFailed",
        "container 'adapter': RunContainerError: failed to start container",
    ) == verdict(o)
