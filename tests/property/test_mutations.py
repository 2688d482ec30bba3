"""200,000 damaged documents: none crashes a decoder, none is slow, none leaks through the cause."""

import re

import pytest

from reporter.errors import InvalidPayload
from reporter.verdict.adapter_files import decode_progress, decode_result
from tests.property.damaged import mutations

SEEDS = (
    b'{"status":"success","reason":"R","message":"m"}',
    b'{"status":"failure","details":{"a":[1,-2.5e3,true,null],"b":{"":[]}}}',
    b'{"status":"success","message":"\\ud83d\\ude00\\n\xc3\xa4\xf0\x9f\x98\x80"}',
    b'{"msg":"m","total":3,"completed":1.0,"failures":["a","b"],"errors":[]}',
    b'[{"Status" : "success", "status" : null}, "\\u0000"]',
)
TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\u", b"\\ud800", b"\xff", b"\x00", b"\n",
    b"\xef\xbb\xbf", b"NaN", b"-Infinity", b"1e999", b"99999999999999999999", b"null", b"true",
    b'"status":', b'"reason":5,', b'"total":"x"', b" ", b"\xe2\x80\xae", b"\xed\xa0\x80", b"01",
)  # fmt: skip
CAUSE = re.compile(
    r"line \d+, column \d+: [A-Za-z0-9 ',:()\[\]{}-]+"
    r"|[a-z]+(\[\d+\])?: (must be|is required)[A-Za-z0-9 '-]*"
    r"(; [a-z]+(\[\d+\])?: must be[A-Za-z0-9 '-]*)*"
)


def why_refused(decode, data):
    """The cause, or None for a document that is accepted."""
    try:
        decode(data)
    except InvalidPayload as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 10))]
)
def test_damaged_documents_give_a_value_or_a_cause_of_our_own_words(seed):
    """A tenth of the 200,000 each, most of them in the long tests.

    A cause is made of our words and numbers only.
    """
    valid = 0
    for data in mutations(SEEDS, TOKENS, seed, 20_000, copied=16):
        for decode in (decode_result, decode_progress):
            cause = why_refused(decode, data)
            valid += cause is None
            assert cause is None or CAUSE.fullmatch(cause), (data, cause)
    assert valid > 1000, "the mutations have become too wild to prove anything"
