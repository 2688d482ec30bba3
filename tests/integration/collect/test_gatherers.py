"""L13: gatherers that misbehave: limits hold, the others' output is there, gather.json tells."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from reporter.collect.gatherers import GathererLimits, add_options, chosen_limits
from reporter.run.settings import Settings
from tests.forked import Forked

LAUNCHER = str(Path("cmd/status-ctl.py").absolute())
BOUND = 60.0
SMALL = ("--bytes", "100000", "--files", "50")
BRIEF = ("--seconds", "4")  # many times what starting a program takes
LAST = "90-tells"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory whose last gatherer always succeeds."""
    (tmp_path / "gatherers.d").mkdir()
    script(tmp_path / "gatherers.d", LAST, "echo good >good")
    return tmp_path / "gatherers.d"


def script(programs: Path, name: str, text: str, mode: int = 0o755) -> None:
    """Put a gatherer there: sh, or Python where the first line says so."""
    shebang = "" if text.startswith("#!") else "#!/bin/sh\n"
    (programs / name).write_text(f"{shebang}{text}\n")
    (programs / name).chmod(mode)


def gather(
    programs: Path, *options: str, beside: Collection[str] = ()
) -> tuple[int, dict[str, dict], Path]:
    """Run them: exit code, what gather.json of each says, and where the output is."""
    place = programs.parent
    command = [LAUNCHER, "gather", "--out", str(place / "out"), "--gatherers", str(programs)]
    with Forked(
        [*command, "-o", "json", *(options or SMALL)],
        env={"PATH": os.environ["PATH"]},
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, err = process.communicate(timeout=BOUND)
    assert out, err
    records = {each["name"]: each for each in json.loads(out)["gatherers"]}
    written = {
        path.parent.name: json.loads(path.read_text())
        for path in (place / "out").glob("*/gather.json")
    }
    assert records == written
    assert ("complete", "good\n") == (
        records["tells"]["status"],
        (place / "out" / "tells" / "good").read_text(),
    )
    assert set(records) == set(os.listdir(place / "out")) - set(beside)
    return process.returncode, records, place / "out"


def all_end(pids: Path) -> bool:
    """Return whether the processes that a file lists are gone, or about to be."""
    end = time.monotonic() + BOUND
    while left := [pid for pid in pids.read_text().split() if _runs(pid)]:
        if time.monotonic() > end:
            return not left
        time.sleep(0.01)
    return True


def _runs(pid: str) -> bool:
    """Whether it is there and more than a zombie, which is its parent's to remove."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_every_end_of_a_program_has_its_status(programs: Path) -> None:
    """What one wrote before it failed is kept, and so is what it said."""
    script(programs, "10-partial", "echo a; exit 1")
    script(programs, "20-not-here", "exit 2")
    script(programs, "30-fails", "echo half >half; echo no disk >&2; exit 3")
    script(programs, "40-crashes", "kill -SEGV $$")
    script(programs, "50-no-exec-bit", "echo a >a", 0o644)
    script(programs, "60-no-interpreter", "#!/no/such/program\n")

    code, records, out = gather(programs)

    assert 1 == code
    assert {
        "partial": ("partial", 1),
        "not-here": ("not_applicable", 2),
        "fails": ("failed", 3),
        "crashes": ("failed", None),
        "no-exec-bit": ("failed", None),
        "no-interpreter": ("failed", None),
        "tells": ("complete", 0),
    } == {name: (each["status"], each["exit"]) for name, each in records.items()}
    assert ("half\n", "no disk\n") == ((out / "fails/half").read_text(), records["fails"]["stderr"])
    assert "a\n" == (out / "partial" / "stdout.txt").read_text()
    assert signal.SIGSEGV == records["crashes"]["signal"]
    assert "cannot be started: Permission denied" == records["no-exec-bit"]["error"]
    assert not (out / "not-here" / "stdout.txt").exists()


def test_one_that_hangs_is_killed_with_all_that_it_started(programs: Path) -> None:
    """Fifty children, and itself ignores signals; it has failed, and what it wrote is kept."""
    script(
        programs,
        "10-hangs",
        f"""#!{sys.executable}
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(50):
    if not os.fork():
        with open("pids", "a") as pids:
            pids.write(f"{{os.getpid()}} ")
        time.sleep(600)
time.sleep(600)""",
    )

    code, records, out = gather(programs, *BRIEF)

    hangs = records["hangs"]
    assert (1, "seconds", "failed") == (code, hangs["limit"], hangs["status"])
    assert 50 == len((out / "hangs" / "pids").read_text().split())
    assert all_end(out / "hangs" / "pids")


def test_what_a_program_leaves_running_is_killed_when_it_ends(programs: Path) -> None:
    script(programs, "10-leaves", "sleep 600 & echo $! >pids")

    code, records, out = gather(programs)

    assert (0, "complete") == (code, records["leaves"]["status"])
    assert all_end(out / "leaves" / "pids")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        pytest.param("head -c 1000000000 /dev/zero >one; exit 0", "bytes", id="one file"),
        pytest.param("exec head -c 1000000000 /dev/zero", "bytes", id="standard output"),
        pytest.param(
            "i=0; while :; do head -c 30000 /dev/zero >$i; i=$((i + 1)); done",
            "bytes",
            id="many large files",
        ),
        pytest.param(
            "mkdir d; cd d; i=0; while :; do i=$((i + 1)); echo >$i; done", "files", id="many files"
        ),
        pytest.param("head -c 60000 /dev/zero | tee a >../b; sleep 600", "bytes", id="beside it"),
    ],
)
def test_one_over_its_limit_is_killed_and_its_output_is_kept(
    programs: Path, text: str, limit: str
) -> None:
    """Whether its own write ends it or we do: a gigabyte never lies on the disk."""
    script(programs, "10-large", text)

    code, records, out = gather(programs, beside=("b",))

    large = records["large"]
    assert (1, "failed", limit) == (code, large["status"], large["limit"])
    written = [path for path in out.rglob("*") if path.parent != out / "tells"]
    kept = [path for path in written if path.is_file() and path.name != "gather.json"]
    assert large["bytes"] == sum(path.stat().st_size for path in kept)
    assert 100_000 < large["bytes"] < 2**28 if limit == "bytes" else 50 < large["files"]


def test_all_together_have_a_limit_too(programs: Path) -> None:
    """What would be over it is removed; who comes later has what is left, down to nothing."""
    script(programs, "10-first", "head -c 300000 /dev/zero >large")
    script(programs, "20-second", "head -c 300000 /dev/zero >large")
    script(programs, "30-third", "echo small >small")
    totals = ("--total-bytes", "400000")

    code, records, out = gather(programs, *totals)

    second = records["second"]
    assert (1, "complete", "complete") == (
        code,
        records["first"]["status"],
        records["third"]["status"],
    )
    assert ("failed", "bytes", 0) == (second["status"], second["limit"], second["bytes"])
    assert "output removed: the limit of all gatherers is reached" == second["error"]
    assert ["gather.json"] == os.listdir(out / "second")
    assert 300_000 == (out / "first" / "large").stat().st_size


def test_the_limits_where_nobody_chooses() -> None:
    """As docs/host-facts.md promises them, with and without options that could be given."""
    promised = GathererLimits(60, 64 * 2**20, 10_000, 384 * 2**20, 18_000)
    parser = argparse.ArgumentParser()
    add_options(parser)

    assert promised == GathererLimits()
    assert promised == chosen_limits(parser.parse_args([]))


def test_an_aggregator_takes_whatever_gatherers_may_leave() -> None:
    """By the numbers of both, as they are shipped: contents, names and headers of a tar."""
    ours, theirs = GathererLimits(), Settings.read({"PLAN": "p", "STATE": "s", "OUTPUT": "o"})
    many = 20  # gatherers that are run although nothing is left
    files = ours.total_files + 2 * many
    header = 3 * 512 + 4096  # of a name of any length, with padding

    assert files < theirs.archive_max_members
    assert ours.total_bytes + files * header < theirs.max_result_bytes
    assert ours.total_bytes < theirs.archive_max_bytes
    assert ours.bytes < theirs.archive_max_file_bytes


def test_what_a_program_leaves_unreadable_can_be_packed(programs: Path) -> None:
    script(
        programs,
        "10-closes",
        "mkdir -p d/e; echo a >d/e/a; chmod 0 d/e/a; chmod 0 d/e; chmod 0 d .",
    )

    code, records, out = gather(programs)

    assert (0, 2, "a\n") == (code, records["closes"]["bytes"], (out / "closes/d/e/a").read_text())


def test_a_program_that_removes_its_directory(programs: Path) -> None:
    """It has nothing but its record."""
    script(programs, "10-removes", 'rm -r "$GATHER_OUT"')

    code, _, out = gather(programs)

    assert (0, ["gather.json"]) == (code, os.listdir(out / "removes"))


def test_one_that_cannot_be_killed_does_not_hold_the_others(programs: Path) -> None:
    """As on a disk that does not answer. Here somebody traces it, who alone learns of its end."""
    script(
        programs,
        "10-stuck",
        f"""#!{sys.executable}
import ctypes, os, time
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(0x59616D61, ctypes.c_ulong(-1))  # PR_SET_PTRACER: anybody
libc.ptrace.argtypes = [ctypes.c_long] * 4
stuck = os.getpid()
if not os.fork():
    os.setsid()
    if not libc.ptrace(0x4206, stuck, 0, 0):  # PTRACE_SEIZE
        open("traced", "x").close()
    time.sleep(15)
    os._exit(0)
time.sleep(600)""",
    )

    code, records, out = gather(programs, *BRIEF)

    assert (out / "stuck/traced").exists()
    assert (1, "failed", "cannot be killed") == (
        code,
        records["stuck"]["status"],
        records["stuck"]["error"],
    )


@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGHUP] * 2])
def test_what_ends_the_command_ends_what_runs_and_keeps_what_is_there(
    tmp_path: Path, signals: list[signal.Signals]
) -> None:
    """A closed terminal sends SIGHUP twice."""
    programs = tmp_path / "gatherers.d"
    programs.mkdir()
    os.mkfifo(tmp_path / "ready")
    script(programs, "10-hangs", f"sleep 600 & echo $$ $! >pids; echo >{tmp_path}/ready; sleep 600")
    script(programs, LAST, "echo good >good")
    command = [LAUNCHER, "gather", "--out", str(tmp_path / "out"), "--gatherers", str(programs)]

    with Forked(command, env={"PATH": os.environ["PATH"]}, stderr=subprocess.PIPE) as process:
        (tmp_path / "ready").read_bytes()
        for each in signals:
            process.send_signal(each)
        process.communicate(timeout=BOUND)

    record = json.loads((tmp_path / "out/hangs/gather.json").read_text())
    assert 130 == process.returncode
    assert (True, "failed") == (record["stopped"], record["status"])
    assert all_end(tmp_path / "out/hangs/pids")
    assert ["hangs"] == os.listdir(tmp_path / "out")


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("gatherers.d", 2, "status-ctl: {} is not empty\n"),
        ("file", 1, "status-ctl: cannot write to {}: "),
        ("file/out", 1, "status-ctl: cannot write to {}: "),
    ],
)
def test_a_directory_that_the_output_cannot_go_to(
    place: str, code: int, said: str, programs: Path, tmp_path: Path
) -> None:
    """What lies there would be taken for something that was gathered."""
    (tmp_path / "file").touch()
    out = tmp_path / place
    command = [LAUNCHER, "gather", "--out", str(out), "--gatherers", str(programs)]
    with Forked(command, stderr=subprocess.PIPE, text=True) as process:
        _, err = process.communicate(timeout=BOUND)

    assert (code, True) == (process.returncode, err.startswith(said.format(out))), err


def test_the_example_for_authors_works_as_it_is_written(programs: Path) -> None:
    page = Path("docs/host-facts.md").read_text()
    ((name, text),) = re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL)
    script(programs, name, text)

    code, records, out = gather(programs)

    assert 0 == code
    assert {"complete"} == {each["status"] for each in records.values()}
    assert {"time", "tells"} == set(records)
    assert (out / "time/stdout.txt").read_text().split()
