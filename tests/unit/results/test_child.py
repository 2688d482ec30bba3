"""Which files of a result count, and what all of them say together."""

from __future__ import annotations

import io
import json

import pytest

from reporter.results.child import Judgement, Task, read, selects
from tests.archives import tars
from tests.unit.results.scene import suite


@pytest.mark.parametrize(
    ("result_format", "files", "name", "taken"),
    [
        ("junit", (), "a.xml", True),
        ("e2e", (), "a.xml", True),
        ("junit", (), "a.json", False),
        ("gojson", (), "a.json", True),
        ("manual", (), "a.yaml", True),
        ("manual", (), "a.yml", True),
        ("raw", (), "anything", True),
        ("junit", ("b.txt",), "b.txt", True),
        ("junit", ("b.txt",), "a.xml", False),
    ],
)
def test_which_files_count(result_format, files, name, taken):
    assert taken is selects(result_format, files, name)


def judgement(*files: tuple[str, bytes], wanted: tuple[str, ...] = ()) -> Judgement:
    """Return what is said of an archive."""
    body = tars.tgz(*(tars.file(name.encode(), data) for name, data in files))
    task = Task("junit", wanted, True, len(body), "r", "results/n")
    return read(task, io.BytesIO(body), None)


def failing(name: str) -> bytes:
    return suite(f'<testcase name="{name}"><error>e</error></testcase>')


def test_what_the_files_of_a_result_add_up_to():
    """In the order of their paths; of two with one path the last one counts."""
    found = judgement(
        ("c.xml", b"{"),
        ("b.xml", failing("of b")),
        ("a.xml", failing("replaced")),
        ("d/a.xml", failing("of d")),
        ("a.xml", b"<"),
        ("log.txt", b"<"),
    )
    note = "a.xml: not valid XML: unclosed token: line 1, column 0"
    assert Judgement({"failed": 2, "unknown": 2}, "of b", "e", note) == found
    tests = json.loads(found.not_passed)["tests"]
    assert ["of b", "of d", "a.xml", "c.xml"] == [each["name"] for each in tests]


@pytest.mark.parametrize(
    ("wanted", "note"),
    [
        ((), "no file of the format junit found"),
        (("x", "y"), "no x or y found"),
    ],
)
def test_a_result_without_files_is_unknown(wanted, note):
    assert Judgement({"unknown": 1}, note=note) == judgement(("a.txt", b""), wanted=wanted)
