"""Runs test modules in a copy of the working tree, each run in a process of its own.

It is forked from one that has imported everything, so that a start costs little.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import coverage
import pytest

PRODUCT = "reporter"
OPTIONS = ["-x", "-q", "-m", "not cluster and not node and not long", "-p", "no:cacheprovider"]
OPTIONS += ["-p", "no:cov", "-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
OPTIONS += ["--hypothesis-seed=0"]
OUTPUT = Path("output.txt")
LONGEST = 120.0
"""Seconds: a test module that takes longer is left out."""
PARTS = (6, 30)
"""So many test modules go first: most faults are noticed by them."""


def enter_copy(root: Path, copy: Path) -> None:
    """Work in a new copy of the tree."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=root, text=True).splitlines():
        with suppress(FileNotFoundError):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)
    os.chdir(copy)
    sys.path.insert(0, str(copy))
    os.environ["PYTHONPATH"] = str(copy)
    # Else each process would compile the product and the tests again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    for module in pkgutil.walk_packages([PRODUCT], f"{PRODUCT}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    _forget("tests")


def _forget(package: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]


def run_tests(modules: list[str], limit: float, data: Path | None = None) -> str:
    """Return the first test that fails, "time" where the limit ends it, "" where all pass.

    What is executed is written to files beside `data`; without it the product is imported anew.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.setitimer(signal.ITIMER_REAL, limit)
        _be_pytest(modules, data)
    _, status = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        return ""
    if code == -signal.SIGALRM:
        return "time"
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", OUTPUT.read_text(errors="replace"), re.MULTILINE)
    return failed[1] if failed else f"exit code {code}"


def _be_pytest(modules: list[str], data: Path | None) -> None:
    code = -1
    try:
        output = os.open(OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if data:
            measured = coverage.Coverage(data_file=str(data), data_suffix=True, source=[PRODUCT])
            measured.set_option("run:patch", ["subprocess", "fork", "_exit"])
            measured.set_option("run:disable_warnings", ["module-not-measured"])
            measured.start()
        else:
            _forget(PRODUCT)
        code = int(pytest.main([*OPTIONS, *modules]))
    finally:
        sys.stdout.flush()
        os._exit(code)  # saves what was measured


def record(module: str) -> tuple[float, dict[str, list[int]]]:
    """Return a test module's seconds and the lines it executes; none if it cannot be used."""
    lines: dict[str, set[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        failed = run_tests([module], LONGEST, Path(folder, "data"))
        seconds = time.monotonic() - began
        for path in () if failed else Path(folder).iterdir():
            found = coverage.CoverageData(str(path))
            with suppress(coverage.exceptions.DataError):  # its process was killed
                found.read()
            for file in found.measured_files():
                name = os.path.relpath(file)
                lines.setdefault(name, set()).update(found.lines(file) or ())
    return seconds, {name: sorted(each) for name, each in lines.items() if each}


def play(path: str, change: Callable[[bytes], bytes], tests: list[tuple[str, float]]) -> str:
    """Return which test notices the change of a file; "" where none does."""
    file, compiled = Path(path), Path(importlib.util.cache_from_source(path))
    source = file.read_bytes()
    file.write_bytes(change(source))
    compiled.unlink(missing_ok=True)
    try:
        for first, last in pairwise([0, *PARTS, len(tests)]):
            part = tests[first:last]
            limit = 20 + 4 * sum(seconds for _, seconds in part)
            if part and (failed := run_tests([name for name, _ in part], limit)):
                return failed
        return ""
    finally:
        file.write_bytes(source)
        compiled.unlink(missing_ok=True)
