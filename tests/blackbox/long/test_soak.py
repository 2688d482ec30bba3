"""Drawn Jobs and runs under drawn faults, compared with a model of the contract."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.bed.product_image import PROJECT

SEED = "long"
# The soak starts a cluster of its own like that of `make cluster`, before this one is started.
pytestmark = [pytest.mark.long, pytest.mark.node, pytest.mark.people, pytest.mark.timeout(1800)]


def test_three_minutes_without_a_contradiction():
    command = [sys.executable, "-m", "tests.blackbox.soak", "--minutes", "3", "--seed", SEED]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("soak: no contradiction\n")
