"""Shells that are asked what they complete: bash and zsh by keys on a terminal, fish by lines.

Each finds `status-ctl` on its PATH and has sourced what `completion` prints.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self

import pytest

from tests.blackbox.ctl.scripted import BOUND, STATUS_CTL, Home

PROMPT = b"READY>"
COMPLAINT = re.compile(rb"(bash|zsh|_[a-z-]+|comp[a-z]+):")
REPORT = b"\x18\x10"
"""Ctrl-X Ctrl-P: what is on the line then is the answer, and the line is empty again."""

# Each writes down what is offered where the shell itself puts it together.
BASH = r"""
PS1='READY>' HISTFILE=
bind 'set enable-bracketed-paste off' 'set completion-query-items 0' 'set page-completions off'
source <(status-ctl completion bash) 2>errors
offered() {
  _status_ctl "$@"
  ((${#COMPREPLY[@]} == 0)) || printf '+%s\n' "${COMPREPLY[@]}" >&"$REPORT"
}
complete -F offered status-ctl
report() { printf '=%s\n' "$READLINE_LINE" >&"$REPORT"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\C-x\C-p": report'
"""
ZSH = r"""
PS1='READY>' HISTFILE= LISTMAX=10000
unsetopt prompt_cr prompt_sp beep
FOUND autoload -Uz compinit && compinit -u -D 2>errors
SOURCED
compadd() {
  if [[ "${@[1,(i)(-|--)]}" != *-[OAD]' '* ]]; then
    local -a __offered
    builtin compadd -O __offered "$@"
    (($#__offered == 0)) || print -u "$REPORT" -l -- "+"${^__offered}
  fi
  builtin compadd "$@"
}
report() { print -u "$REPORT" -r -- "=$BUFFER"; BUFFER=; }
zle -N report
bindkey '^X^P' report
"""


class Answer(NamedTuple):
    """What was offered, sorted, and the line as it was afterwards, without space at its end."""

    offered: list[str]
    line: str


class Keys:
    """A shell on a terminal, in a folder."""

    def __init__(self, command: list[str], environ: dict[str, str], folder: Path) -> None:
        self._reports, reports = os.pipe()
        self._terminal, terminal = pty.openpty()
        self._shown, self._changed = b"", threading.Condition()
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *command],  # so that it has a terminal it may control
            env=environ | {"REPORT": str(reports)},
            cwd=folder,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            pass_fds=[reports],
        )
        os.close(reports)
        os.close(terminal)
        self._reader = threading.Thread(target=self._show)
        self._reader.start()

    def _show(self) -> None:
        while True:
            try:
                piece = os.read(self._terminal, 65536)
            except OSError:  # nobody has the terminal any more
                return
            with self._changed:
                self._shown += piece
                self._changed.notify_all()

    def __enter__(self) -> Self:
        try:
            with self._changed:
                # With the prompt the shell reads key by key.
                assert self._changed.wait_for(lambda: PROMPT in self._shown, BOUND), self._shown
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join(BOUND)
        os.close(self._terminal)
        os.close(self._reports)

    def ask(self, line: str) -> Answer:
        """Type a line and TAB."""
        os.write(self._terminal, line.encode() + b"\t" + REPORT)
        told = b""
        while not re.search(rb"(?m)^=.*\n\Z", told):
            ready, _, _ = select.select([self._reports], [], [], BOUND)
            assert ready, self._shown
            piece = os.read(self._reports, 65536)
            assert piece, self._shown
            told += piece
        *offered, line = told.decode().splitlines()
        # A shell asks again to sort what it has.
        assert not COMPLAINT.search(self._shown), self._shown
        return Answer(sorted({each.removeprefix("+") for each in offered}), line[1:].rstrip())


class Fish:
    """A fish that answers a line with what it can be completed to."""

    def __init__(self, fish: str, environ: dict[str, str], folder: Path) -> None:
        code = (
            "status-ctl completion fish | source 2>>errors; "
            "while read line; complete -C $line 2>>errors; echo =; end"
        )
        with (folder / "errors").open("ab") as errors:
            self._process = subprocess.Popen(
                [fish, "--no-config", "-c", code],
                env=environ,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                bufsize=1,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=BOUND)

    def ask(self, line: str) -> Answer:
        """Ask what a line can be completed to."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        told = []
        while (offered := self._process.stdout.readline()) != "=\n":
            assert offered, "fish has ended"
            told.append(offered)
        return Answer(sorted(each.rstrip("\n").partition("\t")[0] for each in told), line)


@contextmanager
def shell(name: str, folder: Path, *, found: bool = False) -> Iterator[Keys | Fish]:
    """Start a shell; `found`: zsh has the script where it finds completions by itself."""
    program = shutil.which(name)
    if program is None:
        reason = f"there is no {name}: tests/bed/setup.sh installs it"
        if os.environ.get("REQUIRE_CLUSTER") == "1":
            pytest.fail(f"REQUIRE_CLUSTER=1, but {reason}", pytrace=False)
        pytest.skip(reason)
    home = Home(folder)
    (folder / "bin").mkdir()
    launcher = folder / "bin" / "status-ctl"
    launcher.write_text(f'#!/bin/sh\nexec {shlex.join(STATUS_CTL)} "$@"\n')
    launcher.chmod(0o755)
    environ = home.environ | {
        "PATH": f"{folder}/bin:{home.environ['PATH']}",
        "TERM": "vt100",
        "ZDOTDIR": str(folder),
    }
    if name == "fish":
        with Fish(program, environ, folder) as asked:
            yield asked
        return
    sourced = "source <(status-ctl completion zsh) 2>>errors"
    if found:
        (folder / "functions").mkdir()
        (folder / "functions" / "_status-ctl").write_text(home.run("completion", "zsh")[1])
        sourced = ""
    (folder / ".zshrc").write_text(
        ZSH.replace("SOURCED", sourced).replace("FOUND", "fpath=(./functions $fpath);" * found)
    )
    (folder / ".bashrc").write_text(BASH)
    commands = {"bash": ["--rcfile", ".bashrc", "-i"], "zsh": ["-d", "-i"]}
    with Keys([program, *commands[name]], environ, folder) as keys:
        yield keys
