"""`status-ctl try`: real processes as the adapter, from the outside."""

import json
import os
import shutil

import pytest
import yaml

from tests import forked
from tests.blackbox.ctl.trying import (
    BOUND,
    FAILURE,
    STATUS_CTL,
    SUCCESS,
    Run,
    finish,
    started,
    status_ctl_try,
)


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


@pytest.mark.parametrize(("setting", "details"), [("true", {"a": 1}), ("false", None), ("", None)])
def test_details_are_shown_where_the_reporter_would_write_them(setting, details):
    """With REPORT_DETAILS=true they have an annotation of their own."""
    with started("--", "sh", "-c", FAILURE, env={**os.environ, "REPORT_DETAILS": setting}) as run:
        shown = finish(run).job["metadata"]["annotations"]

    assert details == json.loads(shown.get("status-reporter.io/Available.details", "null"))


def test_a_temporary_directory_behind_a_link_is_no_link_on_a_volume(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    environ = {**os.environ, "TMPDIR": str(tmp_path / "link")}
    with started("--", "sh", "-c", SUCCESS, env=environ) as process:
        run = finish(process)

    assert ("True", "Fine", "It works") == run.condition


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


@pytest.mark.parametrize("words", [["-o", "yaml"], []])
def test_the_condition_stands_before_the_annotation(words):
    """Four kilobytes of evidence must not hide it, and are shown on demand alone."""
    out = forked.run(
        [*STATUS_CTL, "try", *words, "--", "sh", "-c", FAILURE],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        env={**os.environ, "REPORT_DETAILS": "true"},
    ).stdout
    kept = ["status-reporter.io/Available"] * bool(words) + ["status-reporter.io/Available.details"]

    assert 0 < out.index("\nstatus:\n") < out.index("annotations:")
    assert kept == sorted(yaml.safe_load(out)["metadata"]["annotations"])
