"""What holds for any bytes: the decoders answer or refuse, and agree with the standard library."""

import json

from hypothesis import given
from hypothesis import strategies as st

from reporter.author.problems import PROGRESS, RESULT, problems_in
from reporter.common.json_scan import Malformed, document, pieces
from reporter.errors import InvalidPayload
from reporter.verdict.adapter_files import (
    PROGRESS_FIELDS,
    RESULT_FIELDS,
    decode_progress,
    decode_result,
)
from reporter.verdict.facts import Progress, ResultPayload

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=5)
json_like = st.text('{}[]",:\\ \n\tu0d8Ae1-+.ntrfalsé😀\x00\x0c\ufeff', max_size=40)


@st.composite
def damaged(draw):
    """A JSON object with a few characters put in, taken out or exchanged."""
    text = json.dumps(draw(json_objects), ensure_ascii=draw(st.booleans()))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(json_like) + text[at + draw(st.integers(0, 2)) :]
    return text


def accepted_by_the_standard_library(text):
    """Is this one JSON object? The library's known liberties are taken away."""

    def refuse(constant):
        raise ValueError(constant)

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except ValueError:
        return False


def accepted(data):
    """Does the scanner take this document?"""
    try:
        list(document(data))
    except Malformed:
        return False
    return True


@given(damaged() | json_like)
def test_the_scanner_agrees_with_the_standard_library(text):
    """For valid UTF-8 the grammar is the same: accepted there is accepted here, and the reverse."""
    assert accepted_by_the_standard_library(text) == accepted(text.encode())


@given(json_objects)
def test_spans_hold_what_the_standard_library_builds(value):
    """Every key and value stands where the scanner says."""
    data = json.dumps(value, indent=1).encode()
    found = {
        "".join(pieces(data, key)): json.loads(data[span.start : span.end])
        for key, span in document(data)
    }
    assert value == found


@given(st.binary() | damaged().map(str.encode))
def test_any_bytes_give_a_value_or_invalid_payload(data):
    """Nothing else ever leaves a decoder."""
    for decode, kind in ((decode_result, ResultPayload), (decode_progress, Progress)):
        try:
            found = decode(data)
        except InvalidPayload:
            continue
        assert isinstance(found, kind)


@given(
    st.sampled_from(["success", "failure"]),
    st.none() | st.text(max_size=300),
    st.none() | st.text(max_size=3000),
    json_values,
)
def test_every_valid_result_is_decoded_within_its_limits(status, reason, message, details):
    """Whatever the texts are: not empty, valid UTF-8, within their bytes."""
    members = {"status": status, "reason": reason, "message": message, "details": details}
    payload = decode_result(json.dumps(members).encode())
    assert (status == "success") == payload.success
    assert 0 < len(payload.reason.encode()) <= 128
    assert 0 < len(payload.message.encode()) <= 1024


fields = st.dictionaries(st.sampled_from([*RESULT_FIELDS, *PROGRESS_FIELDS]), json_values)


@given(st.binary() | damaged().map(str.encode) | fields.map(json.dumps).map(str.encode))
def test_explanation_and_decoder_agree(data):
    """The explanation has an error exactly where the decoder refuses."""
    for decode, kind in ((decode_result, RESULT), (decode_progress, PROGRESS)):
        try:
            decode(data)
            refused = False
        except InvalidPayload:
            refused = True
        assert refused == any(problem.severity == "error" for problem in problems_in(data, kind))
