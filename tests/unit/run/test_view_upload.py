"""An upload in words, and what it means for the exit code."""

import pytest

from reporter.run.view import upload_failed, upload_words, uploaded
from reporter.runctl.follow import good

STATES = {
    "waiting": ("", "the results will be uploaded to store"),
    "waiting doubtfully": (
        "too large",
        "the results will be uploaded to store; this may fail: too large",
    ),
    "uploading": ("", "uploading the results to store"),
    "uploading again": ("503", "uploading the results to store; it is tried again: 503"),
    "uploaded": ("", "the results were uploaded to store"),
    "failed": ("403", "the results could not be uploaded to store: 403"),
    "of the future": ("", ""),
}


@pytest.mark.parametrize("case", STATES)
def test_what_is_said(case):
    """A run whose results could not be uploaded has not passed, whatever its verdict."""
    error, words = STATES[case]
    state = case.removesuffix(" again").removesuffix(" doubtfully")
    document = {
        "status": "complete",
        "plugins": [{}],
        "upload": {"host": "store", "state": state, "error": error or None, "at": ""},
    }
    assert words == upload_words(document)
    assert (state == "failed", state == "uploaded") == (
        upload_failed(document),
        uploaded(document),
    )
    for delivery_only in (True, False):
        assert (state != "failed") == good(document, delivery_only=delivery_only)


def test_a_run_that_uploads_nothing():
    """Or an aggregator that does not know of it."""
    for more in ({"upload": None}, {}):
        document = {"status": "complete", "plugins": [{}], **more}
        assert ("", True) == (upload_words(document), good(document, delivery_only=False))
