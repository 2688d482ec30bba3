"""What the launcher does before anything else: it looks at the result file."""

import os
import time

import pytest

from reporter.sidecar.__main__ import RESULTS_PATH, file_before_start
from reporter.sidecar.settings import Settings


def test_the_first_look_finds_the_file_or_none(tmp_path):
    path = tmp_path / "r.json"
    environ = {"RESULTS_PATH": str(path)}
    assert file_before_start(environ)[0] is None
    assert file_before_start({"RESULTS_PATH": str(path / "below")})[0] is None
    path.symlink_to("nowhere")
    before = time.time()
    found, at = file_before_start(environ)

    assert path.lstat().st_ino == found.st_ino
    assert before <= at <= time.time()


def test_a_first_look_that_fails_says_nothing(monkeypatch):
    def fail(path):
        raise OSError(116, "Stale file handle", path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", fail)
        assert file_before_start({}) is None


@pytest.mark.parametrize("environ", [{}, {"RESULTS_PATH": " "}])
def test_the_first_look_is_at_the_default_path(monkeypatch, environ):
    looked = []
    with monkeypatch.context() as patched:
        patched.setattr(os, "lstat", looked.append)
        file_before_start(environ)

    assert [RESULTS_PATH] == looked
    assert Settings.model_fields["results_path"].default == RESULTS_PATH
