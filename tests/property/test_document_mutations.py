"""Damaged documents of others: lists, snapshots, facts, results, URLs, answers, archives."""

import contextlib
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from reporter.collect.snapshot.redact import redact, redact_text
from reporter.results.compare import differences, lines, read_facts_file
from reporter.results.run_results import read_tree
from reporter.run.tar_upload import error_code, expires_too_soon, read_destination
from reporter.runctl.archive import index_lines
from reporter.untar import BadArchive, Caps, check
from tests.archives import tars
from tests.property.damaged import mutations

SIGNATURE = "5f1d00dcafe5ec2e7"
TARGET = f"/bucket/run.tar.gz?X-Amz-Signature={SIGNATURE}"
CAPS = Caps(members=100, file_bytes=10_000, content_bytes=20_000, free_bytes=60_000)


def objects_of_a_snapshot(data: bytes) -> None:
    """Blanked they are JSON; where they were JSON before, there is nothing left to be blanked."""
    text = data.decode(errors="replace")
    redact_text(text)
    found: Any = {"data": {"a": text}, "b": [text]}
    whole = False
    with contextlib.suppress(ValueError):
        found["c"] = json.loads(text, parse_constant=str)
        whole = True
    redact(found)
    settled = json.dumps(found)
    redact(found)
    assert settled == json.dumps(found) or not whole


def index_of_a_snapshot(data: bytes) -> None:
    """Whatever it says, two lines at most."""
    with contextlib.suppress(ValueError):
        index = json.loads(data)
        if isinstance(index, dict):
            shown = list(index_lines(index))
            assert len(shown) < 3
            assert all(isinstance(line, str) for line in shown)


def facts_of_a_node(data: bytes) -> None:
    """Names and values of them are text, whoever is compared with whom."""
    found = read_facts_file(data)
    if found is None:
        return
    assert all(isinstance(each, str) for pair in lines(found).items() for each in pair)
    for each in differences({"a": found, "b": {"api_version": "v1"}}):
        assert {"a", "b"} == {node for having in each.values.values() for node in having}


def tree_of_results(data: bytes) -> None:
    """Counted and listed, or not a tree."""
    with contextlib.suppress(ValueError, RecursionError):
        found = read_tree("p", (data[:50], data[50:]), "", every=True)
        assert found is not None
        assert min(found.counts.values(), default=1) > 0
        assert all(isinstance(test.said, str) for test in found.tests)


def url_of_an_upload(data: bytes) -> None:
    """It can be used, or is refused in words without it."""
    try:
        found = read_destination(data.decode("latin-1"))
    except ValueError as error:
        said = str(error)
    else:
        said = expires_too_soon(found, 1.7e9, 1.8e9)
    assert SIGNATURE not in said


def answer_of_a_store(data: bytes) -> None:
    """A word at most, and nothing of the URL."""
    said = error_code(data, TARGET)
    assert len(said) < 100
    assert SIGNATURE not in said


def archive(data: bytes) -> None:
    """Read to its end, or refused."""
    with contextlib.suppress(BadArchive):
        check(io.BytesIO(data), len(data), CAPS)


JSON = (
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\ud800", b"\xff", b"\x00", b"\n", b"NaN",
    b"1e999", b"-1", b"null", b"true", b'"kind":"Secret",', b'"data":', b'"env":', b"[[[[[[[[",
    b'"items":', b'"v1"', b"9" * 5000, b"\xe2\x80\xae", b"https://u:p@h/?token=x", b'{"a":{',
)  # fmt: skip
YAML = (
    b"- ", b": ", b"? ", b"*d", b"&d ", b"|\n ", b"'", b'"', b"{", b"]", b"\n", b"    ", b"<<: ",
    b"items:\n", b"name: x\n", b"status: failed\n", b"meta:\n", b"~", b"--- ", b"!!binary ",
    b"\xff", b"\x00", b"9" * 5000, b"details: {failure: [1]}\n", b"%YAML 1.2\n", b"\xe2\x80\xa8",
)  # fmt: skip
WEB = (
    b"https://", b"@", b":", b"/", b"?", b"&", b"=", b"%", b"%00", b"#", b"[::1]", b"]", b" ",
    b"\n", b"\xff", b"X-Amz-Date=", b"X-Amz-Expires=", b"9" * 400, b"se=",
    b"Expires=", b"-", b"..", b"Z",
    b"<Code>", b"</Code>", b"<", b"&#0;", SIGNATURE.encode(),
)  # fmt: skip
TAR = (
    b"\x00" * 512, b"0", b"9", b"7" * 12, b"\x80", b"\xff" * 8, b"../", b"/", b"L", b"x", b"g",
    b"5", b"2", b"ustar\x0000", b"ustar  \x00", b"30 mtime=1\n",
    b"99999999 path=\n", b"\x1f\x8b\x08",
)  # fmt: skip
TREE = b"""name: p
status: failed
items:
- name: n
  meta: {type: node}
  items:
  - name: a.xml
    meta: {unlisted: "passed: 3"}
    items:
    - {name: t, status: failed, details: {failure: x, at: 7, of: [1.5, true]}}
    - name: u
      status: passed
"""
PACKED = b"".join((tars.folder(b"a"), tars.file(b"a/b", b"c" * 600), tars.link(b"l", b"a/b")))
POD = (
    b'{"kind":"Pod","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":'
    b'"{\\"kind\\":\\"Secret\\",\\"data\\":{\\"a\\":\\"b\\"}}"}},"spec":{"containers":[{"env":[{"name":"A",'
    b'"value":"x"}],"args":["https://u:p@h/?token=y"]}]}}'
)
READERS: dict[str, tuple[Callable[[bytes], None], tuple[bytes, ...], tuple[bytes, ...]]] = {
    "objects": (objects_of_a_snapshot, (POD, b'{"kind":"Secret","stringData":{"a":"b"}}'), JSON),
    "index": (
        index_of_a_snapshot,
        (
            b'{"complete":false,"serverVersion":"v1","namespaces":["a"],"resources":[{"group":"g",'
            b'"version":"v1","resource":"pods","count":3,"bytes":7,"redacted":1,"truncated":"t"}],'
            b'"hosts":{"count":1},"leftOut":[{"resource":"s","reason":"r"}],"groupErrors":[{"group":'
            b'"m","version":"v1","error":"e"}],"namespaceErrors":[{"namespace":"n","error":"e"}]}',
        ),
        JSON,
    ),
    "facts": (
        facts_of_a_node,
        (
            b'{"api_version":"v1","collected_at":"now","node":"n","cpu":{"flags":["a","b=c"]},'
            b'"mounts":[{"path":"/","options":["rw","size=4k"]},{"path":"/"}],"load":{"l":0.5}}',
        ),
        JSON,
    ),
    "tree": (tree_of_results, (TREE,), YAML),
    "url": (
        url_of_an_upload,
        (
            f"https://h.example.com:8443{TARGET}&X-Amz-Date=20260101T000000Z&X-Amz-Expires=9".encode(),
            f"https://a.blob.core.windows.net/c/b?se=2026-01-01T00%3A00%3A00Z&sig={SIGNATURE}".encode(),
        ),
        WEB,
    ),
    "answer": (
        answer_of_a_store,
        (
            f"<Error><Code>AccessDenied</Code><Resource>{TARGET}</Resource></Error>".encode(),
            f"<Error><Code>{SIGNATURE}</Code></Error>".encode(),
        ),
        WEB,
    ),
    "archive": (archive, (PACKED + tars.END, tars.tgz(PACKED)), TAR),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize(
    ("seed", "count"), [(0, 300), pytest.param(1, 199_700, marks=pytest.mark.long)]
)
def test_no_damaged_document_is_more_than_a_bad_one(what: str, seed: int, count: int) -> None:
    """Its reader says what is in it, or that it is damaged."""
    read, seeds, tokens = READERS[what]
    for data in mutations(seeds, tokens, seed, count, copied=40):
        read(data)
