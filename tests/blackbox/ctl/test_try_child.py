"""`status-ctl try`: adapters that hang, are stopped, or leave something running."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests import forked
from tests.blackbox.ctl.trying import BOUND, STATUS_CTL, SUCCESS, finish, started, status_ctl_try


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


def test_no_thread_runs_where_the_adapter_is_forked():
    """What it calls before exec could wait for ever for a lock of such a thread."""
    run = status_ctl_try("--", "sh", "-c", f"grep Threads /proc/$PPID/status >&2; {SUCCESS}")

    assert (0, ["Threads:", "1"]) == (run.code, run.err.split())
