"""What a worker says of itself in a header, as far as it is kept."""

import json

import pytest

from reporter.aggregator.api.headers import metadata_of


@pytest.mark.parametrize(
    ("header", "entries", "kept"),
    [
        ('{"version": "1.4", "started_at": ""}', 1, {"version": "1.4", "started_at": ""}),
        ('{"a": "\\u00e4"}', 1, {"a": "\u00e4"}),
        ("", 1, {}),
        ("version=1.4", 1, {}),
        ('["1.4"]', 1, {}),
        ('{"a": {"b": "c"}}', 1, {}),
        ('{"a": 1}', 1, {}),
        ("[" * 4096, 1, {}),
        (json.dumps({"a": "x" * (4096 - 9)}), 4096, {"a": "x" * (4096 - 9)}),
        (json.dumps({"a": "x" * (4097 - 9)}), 1, {}),
        (json.dumps({"a": "x" * 200}), 100_000, {}),
        (json.dumps({"a": "x" * 100}), 100_000, {"a": "x" * 100}),
    ],
)
def test_what_is_kept(header, entries, kept):
    """A result is taken all the same. Very many entries may not fill the memory with it."""
    assert kept == metadata_of(header, entries)
