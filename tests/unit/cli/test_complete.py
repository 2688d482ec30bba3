"""What `kubectl job-verdict` completes: choices, and what the shell may offer besides."""

import pytest

from reporter import status_ctl as main
from reporter.cli.kubectl_completion import choices_for
from reporter.status_ctl import COMMANDS

ANYTHING, NOTHING, FOLDERS = ":0", ":4", ":16"


@pytest.mark.parametrize(
    ("line", "choices", "directive"),
    [
        ("wai", ["wait"], NOTHING),
        ("--v", ["--version"], NOTHING),
        ("nonsense ", [], NOTHING),
        ("status -o j", ["json"], NOTHING),
        ("status --output ", ["table", "wide", "json", "yaml", "name"], NOTHING),
        ("status --output=y", ["--output=yaml"], NOTHING),
        ("status --ca ", [], ANYTHING),
        ("status --ca=x", [], ANYTHING),
        ("retrieve --extract ", [], FOLDERS),
        ("retrieve -x --forc", ["--force"], NOTHING),
        ("wait --fail-", ["--fail-fast"], NOTHING),
        ("wait --for ", [], NOTHING),
        ("explain ", [], NOTHING),
        ("validate ", [], ANYTHING),
        ("lint -f ", [], ANYTHING),
        ("completion ", ["bash", "zsh", "fish"], NOTHING),
        ("try -- cat ", [], ANYTHING),
    ],
)
def test_what_a_word_may_become(line, choices, directive):
    """The last word is the one that is being written."""
    *before, word = line.split(" ")
    found, told = choices_for(before, word, COMMANDS)

    assert (choices, directive) == ([each.split("\t")[0] for each in found], told)


def test_by_its_name(monkeypatch, capsys):
    """Kubectl calls it with the words alone, none at first."""
    monkeypatch.setattr("sys.argv", ["/opt/kubectl_complete-job_verdict", "explai"])

    assert 0 == main.main()
    assert "explain\texplain what happened to a Job and what to do\n:4\n" == capsys.readouterr().out
    assert 0 == main.main([])
    assert len(COMMANDS) < len(capsys.readouterr().out.splitlines())
