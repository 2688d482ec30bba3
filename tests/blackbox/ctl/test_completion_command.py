"""`status-ctl completion`: what real shells offer."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.shells import Answer, Fish, Keys, shell

FORMS = ["json", "name", "table", "wide", "yaml"]


class Opened(NamedTuple):
    """A shell, and the folder it is in."""

    name: str
    shell: Keys | Fish
    folder: Path

    def ask(self, line: str) -> Answer:
        """Ask it; nothing has ever been said against the script."""
        answer = self.shell.ask(line)
        assert "" == (self.folder / "errors").read_text()
        return answer

    def completes(self, line: str, ending: str) -> None:
        """Assert that a line can only go on in one way."""
        answer = self.ask(line)
        if self.name == "fish":
            assert [ending] == [each.rstrip("/") for each in answer.offered]
        else:
            before = line[: len(line) - len(line.rsplit(" ", maxsplit=1)[-1])]
            assert before + ending == answer.line.rstrip("/")


@pytest.fixture(
    scope="module", params=["bash", "zsh", "zsh that finds it", "fish"], ids=lambda name: name
)
def opened(request, tmp_path_factory) -> Iterator[Opened]:
    """A shell in a folder with a file and a folder."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "own.pem").touch()
    (folder / "outbox").mkdir()
    name = request.param.split(" ")[0]
    with shell(name, folder, found="finds" in request.param) as keys:
        yield Opened(name, keys, folder)


def test_commands(opened: Opened, tmp_path: Path) -> None:
    """All of them, and nothing else: no files."""
    _, helped, _ = Home(tmp_path).run("--help")
    names = re.findall(r"(?m)^  (\w\S+)  ", helped)

    assert sorted(names) == [each for each in opened.ask("status-ctl ").offered if each[0] != "-"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("status-ctl w", ["wait", "watch"]),
        ("status-ctl --", ["--help", "--version"]),
        ("status-ctl status -o ", FORMS),
        ("status-ctl completion ", ["bash", "fish", "zsh"]),
        ("status-ctl validate --", ["--help", "--no-color", "--plugin", "--progress"]),
        ("status-ctl explain ", []),
    ],
)
def test_what_is_offered(opened: Opened, line: str, expected: list[str]) -> None:
    """Commands, the options of a command, values; nothing where only a person knows."""
    assert expected == opened.ask(line).offered


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("status-ctl sta", "status"),
        ("status-ctl status -o j", "json"),
        ("status-ctl status --output=j", "--output=json"),
        ("status-ctl wait --fail-", "--fail-fast"),
        ("status-ctl status --ca ow", "own.pem"),
        ("status-ctl status --ca=ow", "--ca=own.pem"),
        ("status-ctl retrieve --extract ou", "outbox"),
        ("status-ctl validate ow", "own.pem"),
        ("status-ctl try --timeout 5 -- cat ow", "own.pem"),
    ],
)
def test_a_line_that_goes_on_in_one_way(opened: Opened, line: str, ending: str) -> None:
    """Also in the same word, of which bash makes three; files where a file is wanted."""
    opened.completes(line, ending)


def test_a_program_that_is_not_there(opened: Opened) -> None:
    """Nothing is said about it at the prompt."""
    opened.ask("~/missing/status-ctl expl")


@pytest.mark.parametrize("words", [[], ["tcsh"], ["bash", "zsh"]])
def test_usage(home: Home, words: list[str]) -> None:
    """2."""
    code, out, err = home.run("completion", *words)

    assert (2, "") == (code, out)
    assert "error: " in err
