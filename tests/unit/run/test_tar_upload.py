"""What a store's answer means for an upload."""

import pytest

from reporter.run.tar_upload import PutOutcome, error_code, put_outcome


@pytest.mark.parametrize(
    ("outcome", "statuses"),
    [
        (PutOutcome.DONE, (200, 201, 204)),
        (PutOutcome.AGAIN, (408, 409, 425, 429, 500, 502, 503, 504, 507, 599)),
        (PutOutcome.NEVER, (301, 302, 307, 308, 400, 401, 403, 404, 405, 411, 413, 501, 505)),
    ],
)
def test_what_an_answer_means(outcome, statuses):
    """What another try cannot change is final, and a redirect is not followed."""
    assert dict.fromkeys(statuses, outcome) == {status: put_outcome(status) for status in statuses}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"<Error><Code>AccessDenied</Code><SignatureProvided>s</...", "AccessDenied"),
        (b"<Code>Signature</Code>", ""),
        (b"<Code>123abc</Code>", ""),
        (b"Request has expired", ""),
        (b"", ""),
    ],
)
def test_the_code_in_an_answer(body, code):
    """Nothing that could be a part of the URL."""
    assert code == error_code(body, "/b/k?X-Amz-Signature=1")
