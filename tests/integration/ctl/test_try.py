"""`status-ctl try`: real processes as the adapter, from the outside."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from reporter.trial.memory_cgroup import places
from tests import forked
from tests.forked import Forked

ROOT = Path(__file__).resolve().parents[3]
STATUS_CTL = [str(ROOT / "cmd" / "status-ctl.py")]
BOUND = 60.0
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}

SUCCESS = """echo '{"status":"success","reason":"Fine","message":"It works"}' >"$RESULTS_PATH"; """
FAILURE = """echo '{"status":"failure","reason":"Bad","details":{"a":1}}' >"$RESULTS_PATH"; """


class Run:
    """What one run left: exit code, both outputs, and the Job."""

    def __init__(self, process, out, err):
        self.code, self.pid, self.err = process.returncode, process.pid, err
        self.job = yaml.safe_load(out)
        self.events = [line for line in out.splitlines() if line.startswith("# ")]

    @property
    def condition(self):
        (condition,) = self.job["status"]["conditions"]
        return condition["status"], condition["reason"], condition["message"]

    @property
    def note(self):
        return json.loads(self.job["metadata"]["annotations"]["status-reporter.io/Available"])


def status_ctl_try(*arguments, before=()):
    with started(*arguments, before=before) as process:
        return finish(process)


@contextlib.contextmanager
def started(*arguments, before=(), **options):
    """A run that is under way, for signals."""
    program = [*STATUS_CTL, "try", *arguments]
    process = (
        subprocess.Popen([*before, sys.executable, *program], **PIPES, **options)
        if before
        else Forked(program, **PIPES, **options)
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(BOUND)
        process.stdout.close()
        process.stderr.close()


WITHOUT_WAITID = """
import os, runpy, sys
del os.waitid
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""As on macOS before Python 3.13."""


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        (SUCCESS + "sleep 0.2", 0, "Fine"),
        ("exit 3", 3, "AdapterExitedWithError"),
        ("sleep 600 & exit 3", 3, "AdapterExitedWithError"),
    ],
    ids=["a result", "an early end", "something is left running"],
)
def test_a_system_that_cannot_wait_without_reaping(script, code, reason):
    """The end is seen all the same, and ends what the command has left running."""
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_WAITID, *STATUS_CTL, "try", "--", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
    )

    (condition,) = yaml.safe_load(process.stdout)["status"]["conditions"]
    assert (code, reason) == (process.returncode, condition["reason"])


def finish(process):
    out, err = process.communicate(timeout=BOUND)
    return Run(process, out, err)


def eventually(what, *arguments):
    """Wait until something is true."""
    end = time.monotonic() + BOUND
    while not (found := what(*arguments)):
        assert time.monotonic() < end, f"{what.__name__}{arguments} did not come true"
        time.sleep(0.01)
    return found


def number_in(path):
    """The process id that a script has written, once it is complete."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else None


def gone(pid):
    """Whether a process has ended; a zombie has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def test_a_success_is_the_adapters_own_word():
    """Exit code 0, all six fields, and the annotation of a final verdict."""
    run = status_ctl_try("--", "sh", "-c", SUCCESS)

    assert 0 == run.code
    assert ("True", "Fine", "It works") == run.condition
    fields = {"type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime"}
    assert fields == set(run.job["status"]["conditions"][0])
    assert ("batch/v1", "Job") == (run.job["apiVersion"], run.job["kind"])
    assert (True, "R") == (run.note["final"], run.note["rule"])


def test_a_failure_with_details_is_the_adapters_own_word():
    """Exit code 1, and the defaults where the adapter said nothing."""
    run = status_ctl_try("--", "sh", "-c", FAILURE)

    assert 1 == run.code
    assert ("False", "Bad", "No message provided") == run.condition


@pytest.mark.parametrize(
    ("script", "reason", "message"),
    [
        ("exit 3", "AdapterExitedWithError", "Adapter container exited with code 3: Error"),
        (
            "exit 0",
            "AdapterMissingResults",
            "Adapter container exited successfully (code 0) but did not produce a valid result "
            "file: Completed",
        ),
        (
            "kill -SEGV $$",
            "AdapterExitedWithError",
            "Adapter container exited with code 139: Error",
        ),
        (
            'echo \'{"status":"good"}\' >"$RESULTS_PATH"',
            "InvalidResultFormat",
            "Failed to parse adapter result: status: must be either 'success' or 'failure'",
        ),
        (
            'mkfifo "$RESULTS_PATH"',
            "InvalidResultFormat",
            "Failed to parse adapter result: the file is a named pipe (FIFO), not a regular file",
        ),
    ],
)
def test_an_adapter_that_reports_nothing_valid(script, reason, message):
    """A verdict of our own, exit code 3, with the words of the real reporter."""
    run = status_ctl_try("--", "sh", "-c", script)

    assert 3 == run.code
    assert "False" == run.condition[0]
    assert reason == run.condition[1]
    assert message in run.condition[2]


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda _: "no-such-command", "executable file not found in $PATH"),
        (lambda at: str(at / "absent"), "no such file or directory"),
        (lambda at: str(shutil.copy(__file__, at / "plain")), "permission denied"),
        (str, "permission denied"),
    ],
    ids=["not in PATH", "no such path", "not executable", "a directory"],
)
def test_a_command_that_cannot_be_started(tmp_path, make, cause):
    """As the runtime says it: StartError, never by the exit code alone."""
    command = make(tmp_path)
    run = status_ctl_try("--", command)

    assert 3 == run.code
    assert ("False", "AdapterStartFailed") == run.condition[:2]
    assert f'StartError: exec: "{command}": {cause}' in run.condition[2]


def test_the_condition_over_time_is_told_in_comments(tmp_path):
    """Running first, progress as it comes, then the verdict; the output is YAML throughout."""
    script = f"""
    echo to stdout; echo to stderr >&2
    until [ -e {tmp_path}/go ]; do sleep 0.05; done
    echo '{{"total":4,"completed":2,"msg":"half"}}' >"$PROGRESS_PATH"
    until [ -e {tmp_path}/on ]; do sleep 0.05; done
    {SUCCESS}
    """
    with started("--", "sh", "-c", script) as process:
        told = [process.stdout.readline() for _ in ("header", "running")]
        (tmp_path / "go").touch()
        told.append(process.stdout.readline())
        (tmp_path / "on").touch()
        out, err = process.communicate(timeout=BOUND)

    run = Run(process, "".join(told) + out, err)
    words = [line.split()[2:5] for line in run.events]
    assert ["STATUS", "FINAL", "REASON"] == words[0]
    assert ["Unknown", "no", "AdapterRunning"] == words[1]
    assert ["progress:", "2", "of"] == words[2]
    # Its end may be seen together with its result.
    assert [["True", "yes", "Fine"], ["the", "adapter", "exited"]] == sorted(words[3:])
    assert (0, "to stdout\nto stderr\n") == (run.code, run.err)


def test_an_exit_code_that_contradicts_a_success_is_shown():
    """The result stands, and the annotation says what came after."""
    run = status_ctl_try("--", "sh", "-c", SUCCESS + "sleep 0.5; exit 7")

    assert 0 == run.code
    assert ("True", "Fine") == run.condition[:2]
    assert 7 == run.note["after"]["exitCode"]
    assert any("contradicts" in line for line in run.events)


def test_an_adapter_that_hangs_is_stopped_when_the_wait_time_is_over(tmp_path):
    """AdapterTimeout, and its process is gone."""
    run = status_ctl_try(
        "--timeout", "1", "--", "sh", "-c", f"echo $$ >{tmp_path}/pid; exec sleep 600"
    )

    assert 3 == run.code
    assert ("False", "AdapterTimeout", "Adapter did not produce results within 1s") == run.condition
    assert gone(number_in(tmp_path / "pid"))


def test_an_adapter_that_stays_after_its_result_is_stopped_too(tmp_path):
    """The result settles the verdict; the wait for the end is bounded by the wait time."""
    script = f"echo $$ >{tmp_path}/pid; {SUCCESS} exec sleep 600"
    run = status_ctl_try("--timeout", "1", "--", "sh", "-c", script)

    assert 0 == run.code
    assert ("True", "Fine") == run.condition[:2]
    assert gone(number_in(tmp_path / "pid"))


def test_what_the_adapter_leaves_running_is_killed(tmp_path):
    """As in a container, also when it has hidden in a session of its own."""
    script = f"""
    sh -c 'echo $$ >{tmp_path}/one; exec sleep 600' &
    setsid sh -c 'echo $$ >{tmp_path}/two; exec sleep 600' &
    until [ -s {tmp_path}/one ] && [ -s {tmp_path}/two ]; do sleep 0.01; done
    {SUCCESS}
    """
    run = status_ctl_try("--", "sh", "-c", script)

    assert 0 == run.code
    assert [True, True] == [gone(number_in(tmp_path / name)) for name in ("one", "two")]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_is_the_deletion_of_the_pod(tmp_path, number, code):
    """The adapter gets SIGTERM; what it cannot say any more is nobody's guess."""
    script = f"echo $$ >{tmp_path}/pid; exec sleep 600"
    with started("--", "sh", "-c", script) as process:
        pid = eventually(number_in, tmp_path / "pid")
        process.send_signal(number)
        run = finish(process)

    assert code == run.code
    assert ("Unknown", "AdapterInterrupted") == run.condition[:2]
    assert run.note["final"]
    assert gone(pid)


def test_an_adapter_that_reports_while_it_is_stopped_is_heard(tmp_path):
    """Its result counts; the exit code is the signal's."""
    script = f"trap '{SUCCESS.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))} exit 0' TERM"
    script += f"; echo $$ >{tmp_path}/pid; while :; do sleep 0.05; done"
    with started("--", "sh", "-c", script) as process:
        eventually(number_in, tmp_path / "pid")
        process.send_signal(signal.SIGTERM)
        run = finish(process)

    assert 143 == run.code
    assert ("True", "Fine", "It works") == run.condition


def test_a_second_signal_kills_a_stubborn_adapter_at_once(tmp_path):
    """Nothing is left behind then either."""
    script = f"trap '' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.05; done"
    with started("--", "sh", "-c", script, env={**os.environ, "TMPDIR": str(tmp_path)}) as process:
        pid = eventually(number_in, tmp_path / "pid")
        process.send_signal(signal.SIGINT)
        while "AdapterInterrupted" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=BOUND)

    assert 130 == process.returncode
    assert gone(pid)
    assert [] == list(tmp_path.glob("status-ctl-*"))


def test_a_stubborn_adapter_is_killed_when_the_grace_period_is_over(tmp_path):
    """SIGTERM, five seconds, SIGKILL."""
    script = f"trap '' TERM; echo $$ >{tmp_path}/pid; while :; do sleep 0.05; done"
    # Time enough for a shell to say that it is stubborn, on a busy machine too.
    run = status_ctl_try("--timeout", "5", "--", "sh", "-c", script)

    assert 3 == run.code
    assert "AdapterTimeout" == run.condition[1]
    # The kill is sent while the loop looks: the end has to be told all the same.
    assert any("SIGKILL" in line for line in run.events), run.events
    assert gone(number_in(tmp_path / "pid"))


def test_the_adapter_dies_with_a_killed_status_ctl(tmp_path):
    """SIGKILL leaves no time to clean up, so the kernel has to."""
    script = f"echo $$ >{tmp_path}/pid; exec sleep 600"
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with started("--", "sh", "-c", script, env=environ) as process:
        pid = eventually(number_in, tmp_path / "pid")
        process.kill()

        eventually(gone, pid)


def test_nobody_reads_the_output_any_more(tmp_path):
    """As with `| head -1`: the adapter is stopped, and nobody sees a traceback."""
    script = f"echo $$ >{tmp_path}/pid; sleep 0.5; echo '{{}}' >$PROGRESS_PATH; exec sleep 600"
    with started("--", "sh", "-c", script) as process:
        pid = eventually(number_in, tmp_path / "pid")
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(BOUND)

    assert (141, "") == (process.returncode, errors)
    assert gone(pid)


def test_the_directory_of_the_results_is_removed(tmp_path):
    """Nothing stays in TMPDIR."""
    done = forked.run(
        [*STATUS_CTL, "try", "--", "sh", "-c", SUCCESS],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        timeout=BOUND,
        check=False,
    )

    assert 0 == done.returncode
    assert [] == list(tmp_path.iterdir())


def test_the_adapter_reads_an_empty_standard_input():
    """As a container without `stdin: true`; nobody waits for a keyboard."""
    run = status_ctl_try("--", "sh", "-c", f'[ -z "$(cat)" ] && {SUCCESS}')

    assert 0 == run.code


@pytest.fixture(scope="session")
def cgroup_problem():
    """Why no memory cgroup can be made here; empty where it can."""
    return status_ctl_try("--memory", "64Mi", "--", "true").err


@pytest.fixture
def real_limit(cgroup_problem):
    """A machine that lets us make a memory cgroup."""
    if cgroup_problem:
        pytest.skip(cgroup_problem)


def cgroups_of(run):
    """The cgroups that this run has left behind."""
    mounts, own = Path("/proc/self/mountinfo"), Path("/proc/self/cgroup")
    parents = [parent for _, parent in places(mounts.read_text(), own.read_text())]
    return [left for parent in parents for left in parent.glob(f"status-ctl-{run.pid}")]


@pytest.mark.usefixtures("real_limit")
@pytest.mark.parametrize(
    ("script", "codes"),
    [("exec tail /dev/zero", {137}), ("tail /dev/zero; exit 9", {9, 137})],
    ids=["the main process", "a child of it"],
)
def test_a_real_oom_kill(script, codes):
    """The kernel's own counter says so, whatever the exit code."""
    run = status_ctl_try("--memory", "32Mi", "--", "sh", "-c", script)

    assert 3 == run.code
    assert (
        "False",
        "AdapterOOMKilled",
        "Adapter container was killed due to out of memory (OOMKilled)",
    ) == run.condition
    # A child's kill takes the whole container along in cgroup v2, and not in v1.
    assert run.note["evidence"]["adapter"]["exitCode"] in codes
    assert [] == cgroups_of(run)


@pytest.mark.usefixtures("real_limit")
def test_a_limit_that_is_enough_changes_nothing():
    """The adapter has its memory and reports."""
    run = status_ctl_try("--memory", "64Mi", "--", "sh", "-c", SUCCESS)

    assert (0, "") == (run.code, run.err)
    assert "Fine" == run.condition[1]


def test_where_no_cgroup_may_be_made_it_says_so(cgroup_problem):
    """Plainly, and the verdict does not pretend: failed allocations are no OOM kill."""
    before = []
    if not cgroup_problem:
        # A mount namespace in which the cgroup tree is an empty directory.
        hide = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
        before = ["unshare", "--mount", "sh", "-c", hide, "sh"]
        if (
            shutil.which("unshare") is None
            or subprocess.run([*before, "true"], check=False).returncode
        ):
            pytest.skip("a memory cgroup can be made here, and nothing lets us hide the tree")

    run = status_ctl_try("--memory", "32Mi", "--", "tail", "/dev/zero", before=before)

    assert 3 == run.code
    assert "no memory cgroup can be made here" in run.err
    assert "AdapterExitedWithError" == run.condition[1]


@pytest.mark.parametrize(
    ("environ", "script", "code", "condition"),
    [
        (
            {"RESULT_REQUIRED": "false"},
            "exit 0",
            3,
            ("True", "AdapterSucceeded", "Adapter container exited successfully (code 0)"),
        ),
        ({"RESULT_TRUST": "at-exit"}, SUCCESS + "exit 4", 3, ("False", "AdapterExitedWithError")),
        ({"RESULT_TRUST": "at-exit"}, SUCCESS, 0, ("True", "Fine", "It works")),
        (
            {"MAX_WAIT_TIME_SECONDS": "1"},
            "exec sleep 600",
            3,
            ("False", "AdapterTimeout", "Adapter did not produce results within 1s"),
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_the_reporters_settings_are_obeyed(environ, script, code, condition):
    """An author sees what the Job would show with them."""
    with started("--", "sh", "-c", script, env={**os.environ, **environ}) as process:
        run = finish(process)

    assert (code, "") == (run.code, run.err)
    assert condition == run.condition[: len(condition)]


def test_the_type_of_the_condition_is_a_setting():
    """Its annotation follows."""
    environ = {**os.environ, "CONDITION_TYPE": "example.com/Checked", "REPORT_RUNNING": "false"}
    with started("--", "sh", "-c", SUCCESS, env=environ) as process:
        run = finish(process)

    assert ["example.com/Checked"] == [each["type"] for each in run.job["status"]["conditions"]]
    assert ["status-reporter.io/example.com.Checked"] == list(run.job["metadata"]["annotations"])
    assert not any("AdapterRunning" in line for line in run.events)


def test_an_option_outranks_the_environment():
    """And is a length of time."""
    environ = {**os.environ, "MAX_WAIT_TIME_SECONDS": "600"}
    with started("--timeout", "1s", "--", "sleep", "600", env=environ) as process:
        assert "within 1s" in finish(process).condition[2]


def test_bad_settings_are_told(tmp_path):
    """Every one, before anything is run: exit code 2, as the reporter's own."""
    environ = {**os.environ, "RESULT_REQUIRED": "maybe", "CONDITION_TYPE": "Complete"}
    with started("--", "touch", str(tmp_path / "ran"), env=environ) as process:
        out, err = process.communicate(timeout=BOUND)

    assert (2, "") == (process.returncode, out)
    assert ["CONDITION_TYPE", "RESULT_REQUIRED"] == sorted(
        line.split("status-ctl: ")[1].partition("=")[0] for line in err.splitlines()
    )
    assert not (tmp_path / "ran").exists()


def test_what_is_wrong_with_the_file_is_told_like_validate_does():
    """The condition has no room for it: what was found, slips, and a mode."""
    script = (
        """printf '{"status": "Success",\\n"resaon": "x"}' >"$RESULTS_PATH"; """
        """chmod 600 "$RESULTS_PATH" """
    )
    run = status_ctl_try("--", "sh", "-c", script)
    told = [line.split("result file: ")[1] for line in run.events if "result file: " in line]

    assert 3 == run.code
    assert [
        "warning: mode 0600: a reporter that runs as another user cannot read it; chmod 644",
        "line 1, column 12: error: status: must be either 'success' or 'failure', found "
        '"Success"',
        "line 2, column 1: warning: unknown field 'resaon': did you mean 'reason'?",
    ] == told


def test_the_condition_stands_before_the_annotation():
    """Four kilobytes of evidence must not hide it."""
    out = forked.run(
        [*STATUS_CTL, "try", "--", "sh", "-c", SUCCESS],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    ).stdout

    assert 0 < out.index("\nstatus:\n") < out.index("annotations:")
