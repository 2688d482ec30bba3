"""What a worker says of itself in a header, as far as it is kept."""

import json

import pytest

from reporter.aggregator.api.headers import metadata_of

NO_OBJECT, TOO_LONG = "not a JSON object", "more than 4 KiB"


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        ('{"version": "1.4", "started_at": ""}', {"version": "1.4", "started_at": ""}),
        ('{"a": "\\u00e4", "b": "\U0001f600"}', {"a": "\u00e4", "b": "\U0001f600"}),
        ('{"a\\u0000": "\\ud800\\u001b[31m"}', {"a": "\ufffd[31m"}),
        (
            '{"n": 1, "yes": true, "of": {"b": ["c"]}}',
            {"n": "1", "yes": "true", "of": '{"b": ["c"]}'},
        ),
        ("version=1.4", {"metadata_dropped": NO_OBJECT}),
        ('["1.4"]', {"metadata_dropped": NO_OBJECT}),
        ("[" * 4096, {"metadata_dropped": NO_OBJECT}),
        (json.dumps({"a": "x" * (4096 - 9)}), {"a": "x" * (4096 - 9)}),
        (json.dumps({"a": "x" * (4097 - 9)}), {"metadata_dropped": TOO_LONG}),
        (f'{{"a": "{chr(0x10000) * 400}"}}', {"metadata_dropped": TOO_LONG}),
    ],
)
def test_what_is_kept(header, kept):
    """A result is taken all the same; what is not kept is named."""
    assert kept == json.loads(metadata_of(header))


def test_a_worker_that_says_nothing():
    assert "" == metadata_of("")
