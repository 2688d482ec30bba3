"""200,000 damaged documents: none crashes a decoder, none is slow, none leaks through the cause."""

import random
import re

import pytest

from reporter.errors import InvalidPayload
from reporter.wire.progress import decode_progress
from reporter.wire.result import decode_result

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


def mutations(seed, count):
    """Documents with one to four cuts, copies, flips or foreign tokens each."""
    dice = random.Random(seed)
    for _ in range(count):
        data = bytearray(dice.choice(SEEDS))
        for _ in range(dice.randint(1, 4)):
            at = dice.randint(0, len(data))
            match dice.randrange(5):
                case 0:
                    del data[at : at + dice.randint(1, 8)]
                case 1:
                    data[at:at] = dice.choice(TOKENS)
                case 2:
                    data[at : at + 1] = dice.randbytes(1)
                case 3:
                    data[at:at] = data[dice.randint(0, len(data)) :][: dice.randint(1, 16)]
                case 4:
                    del data[at:]
        yield bytes(data)


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
    for data in mutations(seed, 20_000):
        for decode in (decode_result, decode_progress):
            cause = why_refused(decode, data)
            valid += cause is None
            assert cause is None or CAUSE.fullmatch(cause), (data, cause)
    assert valid > 1000, "the mutations have become too wild to prove anything"
