"""The JSON grammar: what is refused, and where the error says it is."""

import re

import pytest

from reporter.common import json_scan as scan
from reporter.common.json_scan import (
    MAX_DEPTH,
    Malformed,
    document,
    elements,
    line_and_column,
    members,
)

END = "unexpected end of the document"


def values(data):
    """Keys and values of a document as they stand there."""
    return [
        (data[key.start : key.end], data[value.start : value.end]) for key, value in document(data)
    ]


def cause(data):
    """Why a document is malformed."""
    with pytest.raises(Malformed) as caught:
        list(document(data))
    return str(caught.value)


def test_members_are_found_with_their_white_space():
    """A span reaches up to the next thing that means something."""
    data = b' { "a" : 1 , "b":[ {} , "]" ] } \n'
    assert [(b'"a" : ', b"1 "), (b'"b":', b'[ {} , "]" ] ')] == values(data)


@pytest.mark.parametrize("data", [b"{}", b" { } ", b"\r\n{\t}\n"])
def test_an_empty_object_has_no_members(data):
    """White space is what RFC 8259 says it is."""
    assert [] == values(data)


def test_inner_objects_and_arrays_can_be_looked_into():
    """A span of a checked document can be taken apart without checking again."""
    data = b'{"o":{"a":1,"b":{}}, "l":[ 1 , [2,3] ,"x"], "e":[ ]}'
    (_, inner), (_, array), (_, empty) = document(data)
    assert [b"1", b"{}"] == [data[v.start : v.end] for _, v in members(data, inner)]
    assert [b"1 ", b"[2,3] ", b'"x"'] == [data[e.start : e.end] for e in elements(data, array)]
    assert [] == list(elements(data, empty))


@pytest.mark.parametrize(
    "value",
    [b"0", b"-0", b"10", b"1.5", b"1e5", b"1E-5", b"-1.0e+10", b"true", b"false", b"null",
     b'""', b'"\\u00e4\\n"', b"[]", b"[[],{}]", b'[[[1]],{"a":[{}]}]', b'{"":{"":[0]},"a":0}',
     b'{"a":0,"b":{"c":0,"d":[]},"e":0}', b"[0,[1],2,{},3]", b'"\xff\xfe"'],
)  # fmt: skip
def test_values_of_every_kind_are_accepted(value):
    """Whatever the grammar allows, at the end and before a comma."""
    data = b'{"a":' + value + b',"b": [' + value + b" , " + value + b" ] }"
    assert [b'"a":', b'"b": '] == [key for key, _ in values(data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":01}', "line 1, column 6: not a valid number"),
        (b'{"a":1.}', "line 1, column 6: not a valid number"),
        (b'{"a":-}', "line 1, column 6: not a valid number"),
        (b'{"a":1e}', "line 1, column 6: not a valid number"),
        (b'{"a":+1}', "line 1, column 6: expected a value"),
        (b'{"a":.5}', "line 1, column 6: expected a value"),
        (b'{"a":\'x\'}', "line 1, column 6: expected a value"),
        (b'{"a":}', "line 1, column 6: expected a value"),
        (b'{"a":[1,]}', "line 1, column 9: expected a value"),
        (b'{"a":tru}', "line 1, column 6: expected a value"),
        (b'{"a":True}', "line 1, column 6: expected a value"),
        (b'{"a":nullx}', "line 1, column 10: expected ',' or '}'"),
        (b'{"a":"x\\q"}', "line 1, column 8: invalid escape in a string"),
        (b'{"a":"x\\u12g4"}', "line 1, column 8: invalid escape in a string"),
        (b'{"a":"x\ny"}', "line 1, column 8: control character in a string"),
        (b'{"a\x00":1}', "line 1, column 4: control character in a string"),
        (b'{"a":1 "b":2}', "line 1, column 8: expected ',' or '}'"),
        (b'{"a":[1 2]}', "line 1, column 9: expected ',' or ']'"),
        (b'{"a":{"b":1]}', "line 1, column 12: expected ',' or '}'"),
        (b'{"a":[[1}]}', "line 1, column 9: expected ',' or ']'"),
        (b'{"a":[[1]}}', "line 1, column 10: expected ',' or ']'"),
        (b'{"a":1,}', "line 1, column 8: expected a key in double quotes"),
        (b'{"a":{"b":1,}}', "line 1, column 13: expected a key in double quotes"),
        (b'{"a":{"b":1,"c":2,x}}', "line 1, column 19: expected a key in double quotes"),
        (b'{"a":{ x}}', "line 1, column 8: expected a key in double quotes"),
        (b"{a:1}", "line 1, column 2: expected a key in double quotes"),
        (b'{"a" 1}', "line 1, column 6: expected ':' after the key"),
        (b'{"a":{"b" 1}}', "line 1, column 11: expected ':' after the key"),
        (b'{"a":{"b":[],"\\x":1}}', "line 1, column 15: invalid escape in a string"),
        (b'{"a":1}]', "line 1, column 8: only white space may follow the object"),
        (b'{"a":\xff}', "line 1, column 6: expected a value"),
        (b'{"a":1}\x0c', "line 1, column 8: only white space may follow the object"),
        (b'{\n "a": 1,\n "\xc3\xa4": x}', "line 3, column 7: expected a value"),
        (b'{"a":"x', f"line 1, column 8: {END}"),
        (b'{\n"status": "success",\n"mes', f"line 3, column 5: {END}"),
    ],
)  # fmt: skip
def test_an_error_names_place_and_cause(data, expected):
    """Lines and columns count from 1, columns in characters."""
    assert expected == cause(data)


def test_every_half_written_document_ends_unexpectedly():
    """Somebody who looks while the file is being written is told just that."""
    whole = (
        b'{"status": "success", "details": {"a": [true, false, null, -1.5e+3, "\\u00e4\\n"],'
        b' "b": {}, "c": [[], [0]]}, "message": "\xc3\xa4"}'
    )
    wrong = [n for n in range(1, len(whole)) if not cause(whole[:n]).endswith(END)]
    assert [] == wrong


@pytest.mark.parametrize(("inner", "inner_depth"), [
    (b"0", 0), (b"[]", 1), (b"{}", 1), (b"[0,[]]", 2), (b"[[],[]]", 2), (b'{"a":{}}', 2),
    (b'{"a":0,"b":[0]}', 2), (b'[[0],{"a":[]}]', 3),
])  # fmt: skip
@pytest.mark.parametrize(
    ("opener", "closer", "levels"),
    [(b"[", b"]", 1), (b'{"a":', b"}", 1), (b'[{"a":', b"}]", 2), (b" [ 0,", b",0 ] ", 1)],
)
def test_depth_is_counted_exactly_in_every_shape(opener, closer, levels, inner, inner_depth):
    """One level less is fine, one more is not, whatever the brackets are."""
    for times in range((MAX_DEPTH - 5) // levels, MAX_DEPTH // levels + 2):
        data = b'{"a":' + opener * times + inner + closer * times + b"}"
        if 1 + times * levels + inner_depth <= MAX_DEPTH:
            assert 1 == len(values(data))
        else:
            assert cause(data).endswith("nesting deeper than 1000 levels")


def test_the_place_of_too_deep_nesting_is_the_first_bracket_too_many():
    """Also where a run of brackets is opened at once."""
    data = b'{"a":' + b"[" * 2000
    assert f"line 1, column {5 + MAX_DEPTH}: nesting deeper than 1000 levels" == cause(data)


def test_lines_and_columns_count_from_one():
    """The very first byte is line 1, column 1."""
    assert [(1, 1), (1, 2), (2, 1), (2, 2)] == [
        line_and_column("ä\nb".encode(), at) for at in (0, 2, 3, 4)
    ]


def test_no_group_is_possessive():
    """Python before 3.11.5 takes half of a group that does not match: Debian 12 has such a one."""
    patterns = [
        found.__self__.pattern
        for found in vars(scan).values()
        if isinstance(getattr(found, "__self__", None), re.Pattern)
    ]
    patterns.append(scan._PIECE.pattern)
    assert len(patterns) > 10
    possessive_group = re.compile(rb"\)(?:[*+?]|\{[0-9,]+\})\+")
    assert [] == [pattern for pattern in patterns if possessive_group.search(pattern)]


@pytest.mark.parametrize("count", [31, 32, 33, 127, 128, 129, 511, 512, 513, 3000])
def test_runs_of_every_length_are_taken_whole(count):
    """A run may be longer than what one match takes at once: of string parts or of members."""
    text = b'"' + b"a\\n" * count + b'"'
    zeros, members_of_zero = b"0," * count, b'"a":0,' * count
    array = b"[" + zeros + text + b"]"
    inner = b"{" + members_of_zero + text + b":[]}"
    outer = b"{" + members_of_zero + text + b":" + text + b',"b":' + inner + b"}"
    data = b"{" + text + b":" + text + b',"l":' + array + b',"o":' + outer + b"}"
    assert [text + b":", b'"l":', b'"o":'] == [key for key, _ in values(data)]
    for start in (array, inner, outer):
        half = data[: data.index(start) + 2 * count + 2]
        assert cause(half).endswith(END)
