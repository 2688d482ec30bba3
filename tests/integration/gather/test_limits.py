"""L13: gatherers that misbehave: limits hold, the others' output is there, gather.json tells."""

import argparse
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reporter.gather.limits import GathererLimits, add_options, chosen_limits
from reporter.settings import aggregator
from tests.forked import Forked

LAUNCHER = str(Path("cmd/status-ctl.py").absolute())
BOUND = 60.0
SMALL = ("--bytes", "100000", "--files", "50")
BRIEF = ("--seconds", "4")  # many times what starting a program takes
LAST = "90-tells"
BECOMES = """\
import os, signal, subprocess, sys
# Whoever runs the tests may ignore them, as `nohup` does.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.SIG_DFL)
with open("other", "x") as file:
    file.write(str(subprocess.Popen(["sleep", "600"]).pid))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Becomes the command; the child that it has left is not the command's."""


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


def gather(programs: Path, *options: str) -> tuple[int, dict[str, dict], Path]:
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
    assert sorted(records) == sorted(os.listdir(place / "out"))
    return process.returncode, records, place / "out"


def alive(pids: Path) -> list[str]:
    """Return which of the processes that a file lists are still there."""
    return [pid for pid in pids.read_text().split() if Path(f"/proc/{pid}").exists()]


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


def test_one_that_hangs_is_ended_with_all_that_it_started(programs: Path) -> None:
    """Fifty children that leave its group and its session, and one that ignores signals."""
    script(
        programs,
        "10-hangs",
        f"""#!{sys.executable}
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(50):
    if not os.fork():
        os.setsid()
        os.close(2)
        with open("pids", "a") as pids:
            pids.write(f"{{os.getpid()}} ")
        time.sleep(600)
time.sleep(600)""",
    )

    code, records, out = gather(programs, *BRIEF)

    assert (0, "seconds", "partial") == (
        code,
        records["hangs"]["limit"],
        records["hangs"]["status"],
    )
    assert 50 == len((out / "hangs" / "pids").read_text().split())
    assert [] == alive(out / "hangs" / "pids")


def test_what_a_program_leaves_behind_is_ended_when_it_ends(programs: Path) -> None:
    script(programs, "10-leaves", "setsid sleep 600 & echo $! >pids")

    code, records, out = gather(programs)

    assert (0, "complete") == (code, records["leaves"]["status"])
    assert [] == alive(out / "leaves" / "pids")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("head -c 1000000000 /dev/zero >one; exit 0", id="one file"),
        pytest.param("exec head -c 1000000000 /dev/zero", id="standard output"),
        pytest.param(
            "i=0; while :; do head -c 30000 /dev/zero >$i; i=$((i + 1)); done", id="many files"
        ),
    ],
)
def test_output_over_the_limit_is_kept_up_to_it(programs: Path, text: str) -> None:
    """Whether its own write ends it or we do: a gigabyte never lies on the disk."""
    script(programs, "10-large", text)

    code, records, out = gather(programs)

    large = records["large"]
    kept = sum(path.stat().st_size for path in (out / "large").iterdir())
    assert (0, "bytes") == (code, large.get("limit", "bytes"))
    assert 100_000 == large["bytes"] == kept - (out / "large" / "gather.json").stat().st_size
    assert (True, "partial") == (large["truncated"], large["status"])


def test_all_together_have_a_limit_too(programs: Path) -> None:
    """Who comes later has what is left, down to nothing; all are run, and marked."""
    for name in ("10-first", "20-second", "30-third"):
        script(programs, name, "mkdir d; exec head -c 300000 /dev/zero >d/large")
    script(programs, LAST, "[ -e good ] || >good")  # takes no room
    totals = ("--total-bytes", "600000", "--total-files", "11", "--bytes", "290000")

    place = programs.parent
    command = [LAUNCHER, "gather", "--out", str(place / "out"), "--gatherers", str(programs)]
    with Forked([*command, "-o", "json", *totals], stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=BOUND)

    records = {each["name"]: each for each in json.loads(out)["gatherers"]}
    # Nothing is left of it. Whether it ended before that was seen, or because of it, is chance.
    assert records["tells"].pop("status") in {"partial", "failed"}
    assert {
        "first": (290_000, 2, True, "partial"),
        # Less 64 KiB for each record so far.
        "second": (600_000 - 290_000 - 65_536, 2, True, "partial"),
        "third": (0, 1, True, "partial"),
        "tells": (0, 0, True, None),
    } == {
        name: (each["bytes"], each["files"], each["truncated"], each.get("status"))
        for name, each in records.items()
    }
    assert sorted(records) == sorted(os.listdir(place / "out"))


def test_the_limits_where_nobody_chooses() -> None:
    """As docs/gatherers.md promises them, with and without options that could be given."""
    promised = GathererLimits(60, 64 * 2**20, 10_000, 384 * 2**20, 18_000)
    parser = argparse.ArgumentParser()
    add_options(parser)

    assert promised == GathererLimits()
    assert promised == chosen_limits(parser.parse_args([]))


def test_an_aggregator_takes_whatever_gatherers_may_leave() -> None:
    """By the numbers of both, as they are shipped: contents, names and headers of a tar."""
    ours, theirs = GathererLimits(), aggregator.load({"PLAN": "p", "STATE": "s", "OUTPUT": "o"})
    many = 20  # gatherers that are run although nothing is left
    files = ours.total_files + 2 * many
    header = 3 * 512 + 4096  # of a name of any length, with padding

    assert files < theirs.archive_max_members
    assert ours.total_bytes + files * header < theirs.max_result_bytes
    assert ours.total_bytes < theirs.archive_max_bytes
    assert ours.bytes < theirs.archive_max_file_bytes


def test_too_many_files(programs: Path) -> None:
    """In one directory and in a deep tree."""
    script(programs, "10-files", "mkdir d; cd d; i=0; while :; do i=$((i + 1)); echo >$i; done")
    script(
        programs,
        "20-deep",
        f"""#!{sys.executable}
import os
place = os.getcwd()
above = "{programs.parent}"  # where nobody counts yet
os.chdir(above)
for _ in range(3000):
    os.mkdir("d")
    os.chdir("d")
os.chmod(".", 0)
os.rename(f"{{above}}/d", f"{{place}}/d")""",
    )

    code, records, out = gather(programs)

    assert (0, "files") == (code, records["files"]["limit"])
    assert (
        51 == len([path for path in (out / "files").rglob("*") if path.name != "gather.json"]) + 1
    )
    for name in ("files", "deep"):
        assert (50, True) == (records[name]["files"], records[name]["truncated"])
        assert "partial" == records[name]["status"]


def test_nothing_that_a_program_leaves_can_spoil_the_archive(programs: Path) -> None:
    """Links, pipes, directories that cannot be entered, its own gather.json, other places."""
    script(
        programs, "10-links", "ln -s /etc/passwd p; mkfifo f; mkdir d; echo a >d/a; chmod 0 d/a d"
    )
    script(programs, "20-forges", "mkdir gather.json; echo a >gather.json/a; echo b >../outside")
    script(programs, "30-takes", "mkdir ../../tells; echo mine >../../tells/good")
    script(programs, "40-replaces", "cd ..; rm -r replaces; ln -s / replaces")

    code, records, out = gather(programs)

    assert 0 == code
    assert 2 == records["links"]["removed"]
    assert "a\n" == (out / "links/d/a").read_text()
    assert (["outside"], ["tells"]) == (records["forges"]["outside"], records["takes"]["outside"])
    assert ["gather.json"] == os.listdir(out / "replaces")
    assert "complete" == records["replaces"]["status"]


def test_nothing_that_a_program_does_around_it_costs_the_others(programs: Path) -> None:
    """Its directory's parent goes, is closed, or leads elsewhere; the others' output is sought."""
    script(programs, "10-first", "echo mine >a")
    script(programs, "20-removes", 'rm -rf "$(dirname "$GATHER_OUT")"')
    script(programs, "30-closes", 'echo b >b; chmod 0 "$(dirname "$GATHER_OUT")"')
    script(programs, "40-links", 'up=$(dirname "$GATHER_OUT"); rm -rf "$up"; ln -s / "$up"')
    script(programs, "50-forges", "for a in ../../*/; do echo forged >$a/a; done; rm -rf ../../*/*")

    mode = Path("/").stat().st_mode
    code, records, out = gather(programs)

    assert 1 == code
    lost = ("failed", "output lost: its directory was removed")
    assert lost == (records["removes"]["status"], records["removes"]["error"])
    assert lost == (records["links"]["status"], records["links"]["error"])
    assert ("complete", "b\n") == (records["closes"]["status"], (out / "closes/b").read_text())
    assert "mine\n" == (out / "first/a").read_text()
    assert mode == Path("/").stat().st_mode


def test_what_is_written_beside_the_directory_counts(programs: Path) -> None:
    """It would fill the disk while the program runs."""
    script(programs, "10-first", "head -c 90000 /dev/zero >a")
    script(
        programs, "20-in", "head -c 60000 /dev/zero >../a; head -c 60000 /dev/zero >b; sleep 600"
    )
    script(programs, "30-above", "head -c 90000 /dev/zero | tee ../../a >../../b; sleep 600")

    _, records, _ = gather(programs)

    assert ("complete", 90_000) == (records["first"]["status"], records["first"]["bytes"])
    assert ("bytes", "partial", ["a"]) == tuple(
        records["in"][name] for name in ("limit", "status", "outside")
    )
    assert ("bytes", ["a", "b"]) == (records["above"]["limit"], records["above"]["outside"])


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
time.sleep(600)""",
    )

    code, records, out = gather(programs, *BRIEF)

    assert (out / "stuck/traced").exists()
    assert (1, "failed", "cannot be killed") == (
        code,
        records["stuck"]["status"],
        records["stuck"]["error"],
    )


@pytest.mark.parametrize("kill", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_what_ends_the_command_ends_what_runs_and_keeps_what_is_there(
    tmp_path: Path, kill: signal.Signals
) -> None:
    """Also where it cannot do that itself any more."""
    programs = tmp_path / "gatherers.d"
    programs.mkdir()
    os.mkfifo(tmp_path / "ready")
    script(
        programs,
        "10-hangs",
        f"setsid sleep 600 & echo $$ $! >pids; echo >{tmp_path}/ready; sleep 600",
    )
    script(programs, LAST, "echo good >good")
    command = [LAUNCHER, "gather", "--out", str(tmp_path / "out"), "--gatherers", str(programs)]

    with Forked(command, env={"PATH": os.environ["PATH"]}, stderr=subprocess.PIPE) as process:
        (tmp_path / "ready").read_bytes()
        process.send_signal(kill)
        process.communicate(timeout=BOUND)  # until nobody can write there any more

    record = json.loads((tmp_path / "out/hangs/gather.json").read_text())
    codes = {signal.SIGKILL: -signal.SIGKILL}
    assert codes.get(kill, 130) == process.returncode
    assert (True, "failed") == (record["stopped"], record["status"])
    assert [] == alive(tmp_path / "out/hangs/pids")
    assert ["hangs"] == os.listdir(tmp_path / "out")


@pytest.mark.parametrize(
    ("twice", "code"), [(signal.SIGHUP, 130), (signal.SIGINT, 130), (None, 128 + signal.SIGKILL)]
)
def test_nothing_lives_on_where_the_command_is_ended_twice_or_killed_inside(
    tmp_path: Path, twice: signal.Signals | None, code: int
) -> None:
    """A closed terminal sends SIGHUP twice, and the output is kept; Ctrl-C twice is impatience.

    Without a signal, the process that gathers is killed, as by the kernel without memory.
    """
    programs = tmp_path / "gatherers.d"
    programs.mkdir()
    os.mkfifo(tmp_path / "ready")
    script(
        programs,
        "10-hangs",
        f"setsid sleep 600 & echo $$ $! >{tmp_path}/pids; echo >{tmp_path}/ready; sleep 600",
    )
    command = [LAUNCHER, "gather", "--out", str(tmp_path / "out"), "--gatherers", str(programs)]
    with subprocess.Popen(
        [sys.executable, "-c", BECOMES, sys.executable, *command],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
    ) as process:
        (tmp_path / "ready").read_bytes()
        if twice:
            for _ in range(2):
                process.send_signal(twice)
                while process.poll() is None and _pending(process.pid):
                    pass
        else:
            gatherer = int((tmp_path / "pids").read_text().split()[0])
            os.kill(_parent(gatherer), signal.SIGKILL)
        assert code == process.wait(BOUND)

    assert [] == alive(tmp_path / "pids")
    (left,) = alive(tmp_path / "other")
    os.kill(int(left), signal.SIGKILL)
    if twice == signal.SIGHUP:
        assert json.loads((tmp_path / "out/hangs/gather.json").read_text())["stopped"]


def test_both_processes_of_the_command_are_killed(tmp_path: Path) -> None:
    """The gatherer goes with them, although nobody is left to end it."""
    programs = tmp_path / "gatherers.d"
    programs.mkdir()
    os.mkfifo(tmp_path / "ready")
    script(
        programs, "10-hangs", f"echo $$ >{tmp_path}/pids; echo >{tmp_path}/ready; exec sleep 600"
    )
    command = [LAUNCHER, "gather", "--out", str(tmp_path / "out"), "--gatherers", str(programs)]

    with subprocess.Popen(
        [sys.executable, *command], env={"PATH": os.environ["PATH"]}, stdout=subprocess.PIPE
    ) as process:
        (tmp_path / "ready").read_bytes()
        (pid,) = (tmp_path / "pids").read_text().split()
        gathering = _parent(int(pid))
        process.send_signal(signal.SIGSTOP)  # else it ends the gatherer before it is killed
        gone = os.pidfd_open(int(pid))
        os.kill(gathering, signal.SIGKILL)
        process.kill()
        assert select.select([gone], [], [], BOUND)[0]
        os.close(gone)


def _status(pid: int, field: str) -> str:
    found = re.search(rf"^{field}:\s*(\S+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return found[1]


def _pending(pid: int) -> bool:
    """Return whether a signal waits that asks it to end."""
    asked = 1 << signal.SIGHUP - 1 | 1 << signal.SIGINT - 1
    return bool(int(_status(pid, "ShdPnd"), 16) & asked)


def _parent(pid: int) -> int:
    return int(_status(pid, "PPid"))


def test_the_directory_for_the_output_must_be_empty(programs: Path) -> None:
    """What lies there would be taken for something that was gathered."""
    command = [LAUNCHER, "gather", "--out", str(programs), "--gatherers", str(programs)]
    with Forked(command, stderr=subprocess.PIPE, text=True) as process:
        _, err = process.communicate(timeout=BOUND)

    assert (2, f"status-ctl: {programs} is not empty\n") == (process.returncode, err)


@pytest.mark.parametrize("place", ["file", "file/out"])
def test_the_directory_for_the_output_cannot_be_made(
    place: str, programs: Path, tmp_path: Path
) -> None:
    """1, as for any output that cannot be written: what was asked for is right."""
    (tmp_path / "file").touch()
    out = tmp_path / place
    command = [LAUNCHER, "gather", "--out", str(out), "--gatherers", str(programs)]
    with Forked(command, stderr=subprocess.PIPE, text=True) as process:
        _, err = process.communicate(timeout=BOUND)

    assert (1, f"status-ctl: cannot write to {out}: ") == (
        process.returncode,
        err[: err.rindex(":") + 2],
    )


def test_the_examples_for_authors_work_as_they_are_written(programs: Path) -> None:
    page = Path("docs/gatherers.md").read_text()
    examples = dict(re.findall(r"<!-- example: (\S+) -->\n```\w+\n(.*?)```", page, re.DOTALL))
    for name, text in examples.items():
        script(programs, name, text)

    code, records, out = gather(programs)

    assert 0 == code
    assert {"complete"} == {each["status"] for each in records.values()}
    assert {"time", "users", "tells"} == set(records)
    assert json.loads((out / "users/users.json").read_text())["users"] > 0
