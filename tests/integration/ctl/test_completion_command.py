"""`status-ctl completion`: what a shell offers."""

import subprocess

import pytest

from reporter.ctl.main import COMMANDS
from tests.integration.ctl.scripted import Home


def offered(script: str, *words: str) -> list[str]:
    """Return what bash completes the last word to."""
    line = " ".join(f"'{word}'" for word in words)
    code = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _status_ctl; "
    done = subprocess.run(
        ["bash", "--norc", "-c", code + 'printf "%s\\n" "${COMPREPLY[@]}"'],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "" == done.stderr
    return done.stdout.split()


@pytest.fixture(scope="module")
def script(tmp_path_factory) -> str:
    code, out, err = Home(tmp_path_factory.mktemp("home")).run("completion", "bash")
    assert (0, "") == (code, err)
    return out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["status-ctl", "sta"], ["status"]),
        (["status-ctl", "w"], ["wait", "watch"]),
        (["status-ctl", "status", "--no"], ["--no-color"]),
        (["status-ctl", "status", "-o", "j"], ["json"]),
        (["status-ctl", "wait", "--url", "x", "--fail"], ["--fail-fast"]),
        (["status-ctl", "status", "--ca", "x"], []),
        (["status-ctl", "completion", "z"], ["zsh"]),
        (["status-ctl", "validate", "--pro"], ["--progress"]),
    ],
    ids=" ".join,
)
def test_bash(script: str, words: list[str], expected: list[str]) -> None:
    """Commands, options and their values; files where there is no word to offer."""
    assert expected == offered(script, *words)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_every_script(home: Home, shell: str) -> None:
    """With the options it declares."""
    code, out, err = home.run("completion", shell)

    assert (0, "") == (code, err)
    assert [] == [command.name for command in COMMANDS if command.name not in out]
    assert "fail-fast" in out


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"]])
def test_usage(home: Home, words: list[str]) -> None:
    """2."""
    code, out, err = home.run("completion", *words)

    assert (2, "") == (code, out)
    assert "error: " in err
