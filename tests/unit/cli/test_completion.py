"""What `status-ctl __complete` answers: choices, and what the shell may offer besides."""

import re

import pytest

from reporter.cli.completion import answer
from reporter.status_ctl import COMMANDS, main, parser_of

SUMMARIES = {name: command.summary for name, command in COMMANDS.items()}
FILES, NOTHING, FOLDERS = ":0", ":4", ":16"


def asked(*words: str) -> list[str]:
    return answer(words, SUMMARIES, parser_of)


@pytest.mark.parametrize(
    ("line", "choices", "besides"),
    [
        ("wai", ["wait"], NOTHING),
        ("--v", ["--version"], NOTHING),
        ("nonsense ", [], NOTHING),
        ("status -o j", ["json"], NOTHING),
        ("status --output ", ["table", "wide", "json", "yaml", "name"], NOTHING),
        ("status --output=y", ["--output=yaml"], NOTHING),
        ("status --ca ", [], FILES),
        ("status --ca=x", [], FILES),
        ("retrieve --extract ", [], FOLDERS),
        ("retrieve -x --forc", ["--force"], NOTHING),
        ("wait --fail-", ["--fail-fast"], NOTHING),
        ("wait --for ", [], NOTHING),
        ("explain ", [], NOTHING),
        ("validate ", [], FILES),
        ("lint -f ", [], FILES),
        ("completion ", ["bash", "zsh", "fish"], NOTHING),
        ("try cat ", [], FILES),
        ("try -- cat -", [], FILES),
    ],
)
def test_what_a_word_may_become(line, choices, besides):
    """The last word is the one that is being written."""
    *found, told = asked(*line.split(" "))

    assert (choices, besides) == ([each.split("\t")[0] for each in found], told)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option(command):
    """As the help lists them, each with its meaning: in a few words, and whole."""
    *offered, _ = asked(command, "-")
    meanings = dict(each.split("\t") for each in offered)
    options = re.findall(r"(?m)^  (-.+?)(?:  |$)", parser_of(command).format_help())

    assert set(re.findall(r"(?<!\S)-[\w-]+", " ".join(options))) == set(meanings)
    assert [] == [each for each in meanings.values() if not each or set("()%;") & set(each)]


def test_by_the_name_that_kubectl_calls(monkeypatch, capsys):
    """With the words alone, none at first."""
    monkeypatch.setattr("sys.argv", ["/opt/kubectl_complete-job_verdict", "explai"])

    assert 0 == main()
    assert "explain\texplain what happened to a Job and what to do\n:4\n" == capsys.readouterr().out
    assert 0 == main([])
    assert len(COMMANDS) < len(capsys.readouterr().out.splitlines())


def test_by_the_word_that_the_scripts_put_first(capsys):
    assert 0 == main(["__complete", "status", "--all"])
    assert "--all-namespaces\tsearch all namespaces\n:4\n" == capsys.readouterr().out
