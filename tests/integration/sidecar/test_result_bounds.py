"""The promise about hostile files: bounded memory, bounded time; and how fast an ordinary one is.

Measured in a process of its own that forks for each case, so that every peak is a case's own.
"""

import json
import statistics
import subprocess
import sys
import time

import pytest

from reporter.sidecar.files import ResultFile
from reporter.verdict.facts import FileValid

LIMIT = 1024 * 1024
ORDINARY = b'{"status": "success", "reason": "R", "message": "m"}'


def fill(head, unit, tail=b""):
    """Fill nearly 1 MiB with the unit, as often as it fits."""
    return head + unit * ((LIMIT - len(head) - len(tail)) // len(unit)) + tail


MESSAGE = b'{"status":"success","message":"'
DETAILS = b'{"status":"success","details":['
CASES = {
    "opening brackets": fill(b"", b"["),
    "opening brackets in details": fill(DETAILS, b"["),
    "opening objects": fill(b"", b'{"a":'),
    "small nested objects": fill(DETAILS, b'{"a":{"a":{}}},', b"0]}"),
    "small nested members": fill(b"{", b'"a":{"a":{}},', b'"status":"success"}'),
    "empty arrays": fill(DETAILS, b"[],", b"0]}"),
    "arrays in arrays": fill(DETAILS, b"[[0]],", b"0]}"),
    "towers of arrays": fill(DETAILS, b"[" * 990 + b"]" * 990 + b",", b"0]}"),
    "towers of objects": fill(DETAILS, b'{"":' * 900 + b"0" + b"}" * 900 + b",", b"0]}"),
    "towers of both": fill(DETAILS, b'[{"":' * 450 + b"0" + b"}]" * 450 + b",", b"0]}"),
    "numbers": fill(DETAILS, b"0,", b"0]}"),
    "members": fill(b"{", b'"":0,', b'"status":"success"}'),
    "repeated wanted members": fill(b"{", b'"message":0,', b'"status":"success","message":""}'),
    "keys that may be wanted": fill(b"{", b'"A":0,', b'"status":"success"}'),
    "string with escapes": fill(DETAILS + b'"', rb"a\n", b'"]}'),
    "string with one emoji": fill(DETAILS + b'"\xf0\x9f\x98\x80', b"a", b'"]}'),
    "message": fill(MESSAGE, b"a", b'"}'),
    "message with one emoji": fill(MESSAGE + b"\xf0\x9f\x98\x80", b"a", b'"}'),
    "message ending in an emoji": fill(MESSAGE, b"a", b'\xf0\x9f\x98\x80"}'),
    "message of emojis": fill(MESSAGE, b"\xf0\x9f\x98\x80", b'"}'),
    "message of lone surrogates": fill(MESSAGE, rb"\ud800", b'"}'),
    "message of escaped controls": fill(MESSAGE, rb"\u0001", b'"}'),
    "message of controls and emojis": fill(MESSAGE, b"\x7f", b'\xf0\x9f\x98\x80"}'),
    "message of white space": fill(MESSAGE, b" ", b'x"}'),
    "message of invalid bytes": fill(MESSAGE, b"\xff", b'"}'),
    "status": fill(b'{"status":"', b"a", b'"}'),
    "digits": fill(b'{"status":', b"1", b"}"),
    "digits in details": fill(DETAILS, b"1", b"]}"),
    "key": fill(b'{"', b"k", b'":0,"status":"success"}'),
    "key of escapes": fill(b'{"', rb"\u0073", b'":0,"status":"success"}'),
    "string without an end": fill(MESSAGE, b"a"),
    "white space": fill(b"", b" "),
    "empty lines": fill(DETAILS, b"\n"),
    "one byte too many": b" " * (LIMIT + 1),
}

PROBE = r"""
import json, os, sys, time
from pathlib import Path
from reporter.sidecar.files import ResultFile

def peak_kib():
    "The process's own peak of resident memory."
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])

directory = Path(sys.argv[1])
CONTROL = 12 * 1024 * 1024
for path in sorted(directory.iterdir()):
    if os.fork() == 0:
        ResultFile(directory / "ordinary").look()
        before, started = peak_kib(), time.process_time()
        look = bytearray(CONTROL) if path.name == "control" else ResultFile(path).look()
        seconds, grown = time.process_time() - started, peak_kib() - before
        print(json.dumps([path.name, type(look).__name__, grown, seconds]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """By case: the kind of look, how many KiB the peak grew, CPU seconds."""
    if not sys.platform.startswith("linux"):
        pytest.skip("VmHWM is only shown by Linux")
    directory = tmp_path_factory.mktemp("hostile")
    (directory / "ordinary").write_bytes(ORDINARY)
    (directory / "control").touch()
    for name, data in CASES.items():
        (directory / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(directory)],
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    assert "" == done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    for file in directory.iterdir():
        file.unlink()
    return {name: rest for name, *rest in rows}


def test_every_hostile_file_was_judged(measured):
    """The probe has lost no case, and both kinds are among them."""
    assert {"ordinary", "control", *CASES} == measured.keys()
    assert {"FileValid", "FileInvalid", "bytearray"} == {kind for kind, *_ in measured.values()}


def test_as_many_members_as_a_mebibyte_holds_are_valid(measured):
    """How many there are is nobody's fault."""
    assert "FileValid" == measured["members"][0]


def test_a_hostile_file_raises_the_peak_by_at_most_8_mib(measured):
    """Promise: over an ordinary result, whatever stands in the file; the control is 12 MiB."""
    raised = {name: kib for name, (_, kib, _) in measured.items() if kib > 8 * 1024}
    assert {"control"} == raised.keys(), raised


def test_no_file_takes_long(measured):
    """A second of CPU is far above what any takes on a calm machine; the bound has slack."""
    assert {} == {name: cpu for name, (_, _, cpu) in measured.items() if cpu > 5}


def test_a_small_result_is_read_decoded_and_validated_within_a_millisecond(tmp_path):
    """Promise: the median of many looks at fresh files, with all that belongs to a look."""
    path = tmp_path / "adapter-result.json"
    seconds = []
    for number in range(200):
        path.write_text(
            json.dumps(
                {
                    "status": "failure",
                    "reason": "QuotaExceeded",
                    "message": f"run {number}: 3 of 12 checks failed",
                    "details": {"checks": [{"name": "dns", "ok": True}] * 5},
                }
            )
        )
        results = ResultFile(path)
        started = time.thread_time()
        look = results.look()
        seconds.append(time.thread_time() - started)
        assert isinstance(look, FileValid)
    assert statistics.median(seconds) < 0.001
