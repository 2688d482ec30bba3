"""Prometheus' own tool, which knows what is wrong with metrics and rules."""

import os
import shutil
import subprocess

import pytest


def promtool(*arguments: str, given: bytes = b"") -> tuple[str, str]:
    """Return what it says, on standard output and standard error; it must not fail."""
    program = shutil.which("promtool")
    if program is None:
        reason = "promtool is not on PATH (Debian's package prometheus has it)"
        (pytest.fail if os.environ.get("REQUIRE_CLUSTER") == "1" else pytest.skip)(reason)
    done = subprocess.run([program, *arguments], input=given, capture_output=True, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert 0 == done.returncode, out + err
    return out, err
