"""`status-ctl validate`: what an author is told about a file, from the outside."""

import os
import pty
from pathlib import Path

import pytest
import yaml

from tests import forked

ROOT = Path(__file__).resolve().parents[3]
STATUS_CTL = [str(ROOT / "cmd" / "status-ctl.py")]
BOUND = 60.0


def validate(*arguments, data=b""):
    """Run it; return exit code, remarks, condition and standard error."""
    done = forked.run(
        [*STATUS_CTL, "validate", *arguments],
        input=data,
        capture_output=True,
        timeout=BOUND,
    )
    out = done.stdout.decode()
    remarks = [line[2:] for line in out.splitlines() if line.startswith("# ")]
    *_, shown = [None, *yaml.safe_load_all(out)]
    return done.returncode, remarks, shown, done.stderr.decode()


def condition(status, reason, message):
    return [{"type": "Available", "status": status, "reason": reason, "message": message}]


def test_a_valid_file_shows_its_condition(tmp_path):
    """Exit code 0, no remark."""
    file = tmp_path / "result.json"
    file.write_text('{"status": "success", "reason": "Fine", "message": "It works"}')

    assert (0, [], condition("True", "Fine", "It works"), "") == validate(str(file))


def test_everything_that_is_wrong_is_told_with_line_and_field(tmp_path):
    """Not only the first problem; the condition says what the reporter would say."""
    file = tmp_path / "result.json"
    file.write_text('{\n  "status": "good",\n  "reason": 5,\n  "Message": "m"\n}\n')

    code, remarks, shown, err = validate(str(file))

    assert (1, "") == (code, err)
    assert [
        f"{file}: line 2, column 13: error: status: must be either 'success' or 'failure', "
        'found "good"',
        f"{file}: line 3, column 13: error: reason: must be a string, found 5",
        f"{file}: line 4, column 14: note: message: the key 'Message' is read as 'message'",
    ] == remarks
    assert (
        condition(
            "False",
            "InvalidResultFormat",
            "Failed to parse adapter result: status: must be either 'success' or 'failure'; "
            "reason: must be a string",
        )
        == shown
    )


def test_notes_do_not_make_a_file_invalid():
    """What will be cut or replaced is worth knowing, and no error."""
    code, remarks, shown, _ = validate("-", data=b'{"status": "failure", "reason": ""}')

    assert 0 == code
    assert ["note"] == [remark.split(": ")[2] for remark in remarks]
    assert condition("False", "NoReasonProvided", "No message provided") == shown


def test_a_pipe_is_read_like_a_file():
    """So that `validate <(adapter)` works."""
    reader, writer = os.pipe()
    os.write(writer, b'{"status": "success"}')
    os.close(writer)
    done = forked.run(
        [*STATUS_CTL, "validate", f"/dev/fd/{reader}"],
        pass_fds=[reader],
        capture_output=True,
        timeout=BOUND,
    )
    os.close(reader)

    assert (0, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize("name", ["absent.json", "."])
def test_a_file_that_cannot_be_read_is_no_verdict(tmp_path, name):
    """Exit code 2, said on standard error, nothing on standard output."""
    code, remarks, shown, err = validate(str(tmp_path / name))

    assert (2, [], None) == (code, remarks, shown)
    assert f"cannot read {tmp_path / name}" in err


def test_several_files_at_once(tmp_path):
    """A document each, in their order; one that cannot be read hides none of the others."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text('{"status": "success"}')
    bad.write_text('{"status": "Success", "resaon": 5}')
    done = forked.run(
        [*STATUS_CTL, "validate", str(bad), str(tmp_path / "absent"), str(good)],
        capture_output=True,
        text=True,
        timeout=BOUND,
    )

    assert (2, f"status-ctl: cannot read {tmp_path}/absent: No such file or directory\n") == (
        done.returncode,
        done.stderr,
    )
    assert [["InvalidResultFormat"], ["NoReasonProvided"]] == [
        [each["reason"] for each in document] for document in yaml.safe_load_all(done.stdout)
    ]
    assert [
        f"# {bad}",
        f"# {bad}: line 1, column 12: error: status: must be either 'success' or 'failure', "
        'found "Success"',
        f"# {bad}: line 1, column 23: warning: unknown field 'resaon': did you mean 'reason'?",
        f"# {good}",
    ] == [line for line in done.stdout.splitlines() if line.startswith("#")]
    assert 1 == validate(str(bad), str(good))[0]
    assert 0 == validate(str(good), str(good))[0]


LINKED = "a symbolic link, not a regular file"


def test_a_symbolic_link_is_invalid_as_it_is_for_the_reporter(tmp_path):
    """The reporter follows no link, whatever it leads to; what is in the file is told even so."""
    file, link = tmp_path / "report-7.json", tmp_path / "result.json"
    file.write_text('{"status": "success", "resaon": "Fine"}')
    link.symlink_to(file)
    code, remarks, shown, _ = validate(str(link))

    assert 1 == code
    assert [
        f"{link}: error: {LINKED}: the reporter does not follow it; give the file this name",
        f"{link}: line 1, column 23: warning: unknown field 'resaon': did you mean 'reason'?",
    ] == remarks
    cause = f"Failed to parse adapter result: the file is {LINKED}"
    assert condition("False", "InvalidResultFormat", cause) == shown


def test_a_link_to_progress_is_ignored_as_by_the_reporter(tmp_path):
    """Nothing of it is in the condition."""
    file, link = tmp_path / "now.json", tmp_path / "progress.json"
    file.write_text('{"total": 4, "completed": 1}')
    link.symlink_to(file)
    code, (told,), shown, _ = validate("--progress", str(link))

    assert (1, True) == (code, LINKED in told)
    assert condition("Unknown", "AdapterRunning", "Adapter container is running") == shown


def test_a_directory_may_be_a_link(tmp_path):
    """It belongs to whoever made the mount, not to the adapter."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "result.json").write_text('{"status": "success"}')
    (tmp_path / "results").symlink_to("real")

    assert (0, []) == validate(str(tmp_path / "results" / "result.json"))[:2]


def test_standard_input_by_its_path_is_no_link_of_the_adapter(tmp_path):
    """On Linux /dev/stdin is a link, to a regular file here."""
    file = tmp_path / "result.json"
    file.write_text('{"status": "success"}')
    with file.open("rb") as opened:
        done = forked.run(
            [*STATUS_CTL, "validate", "/dev/stdin"],
            stdin=opened,
            capture_output=True,
            timeout=BOUND,
        )

    assert (0, False) == (done.returncode, b"symbolic" in done.stdout)


@pytest.mark.parametrize(("mode", "warned"), [(0o600, True), (0o640, True), (0o644, False)])
def test_a_mode_that_keeps_the_reporter_out(tmp_path, mode, warned):
    """It mostly runs as another user than the adapter; the file is valid all the same."""
    file = tmp_path / "result.json"
    file.write_text('{"status": "success"}')
    file.chmod(mode)
    code, remarks, _, _ = validate(str(file))
    told = (
        f"{file}: warning: mode {mode:04o}: a reporter that runs as another user cannot read it; "
        "chmod 644"
    )

    assert (0, [told] if warned else []) == (code, remarks)


def test_a_progress_file_shows_its_message():
    """What the condition says while the adapter runs."""
    data = b'{"total": 4, "completed": 1, "failures": ["a"]}'

    assert (
        0,
        [],
        condition(
            "Unknown",
            "AdapterRunning",
            "Adapter container is running; 1 of 4 completed, 1 failed",
        ),
        "",
    ) == validate("--progress", "-", data=data)


def test_a_bad_progress_file_is_told():
    """It would be ignored, and its author should know."""
    code, remarks, shown, _ = validate("--progress", "-", data=b"{")

    assert 1 == code
    assert ["standard input: line 1, column 2: error: unexpected end of the document"] == remarks
    assert "Adapter container is running" == shown[0]["message"]


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_without_no_color(tmp_path, no_color, coloured):
    """A person sees the severity in colour unless they asked not to."""
    file = tmp_path / "result.json"
    file.write_text("{}")
    ours, theirs = pty.openpty()
    environ = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    forked.run(
        [*STATUS_CTL, "validate", str(file)],
        stdout=theirs,
        env=environ,
        timeout=BOUND,
    )
    shown = os.read(ours, 65536)
    os.close(theirs)
    os.close(ours)

    assert b"error" in shown
    assert coloured == (b"\x1b[31merror\x1b[0m" in shown)
