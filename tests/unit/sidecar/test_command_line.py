"""What the sidecar answers when a person asks: help, check, version."""

import pytest

from reporter import __version__
from reporter.common.lifecycle import Stop
from reporter.sidecar.main import main
from reporter.sidecar.settings import Settings
from tests.aggregators.identities import identities

GOOD = {"JOB_NAME": "job", "JOB_NAMESPACE": "default", "POD_NAME": "pod"}


def ask(*arguments: str, **environ: str) -> int:
    stop = Stop()
    try:
        return main(list(arguments), environ, stop)
    finally:
        stop.wake.close()


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_lists_every_variable_with_its_default(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Generated from the settings class: nothing can be missing."""
    assert 0 == ask(option)
    shown = capsys.readouterr().out
    for variable in Settings.described():
        assert f"  {variable.name} (default: {variable.default})\n" in shown
        assert variable.rule in shown


def test_check_prints_what_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    """Defaults included, and exit 0; it needs no cluster."""
    assert 0 == ask("--check", **GOOD, MAX_WAIT_TIME_SECONDS="7")
    lines = capsys.readouterr().out.splitlines()
    assert [variable.name for variable in Settings.described()] == [
        line.partition("=")[0] for line in lines
    ]
    assert {"JOB_NAME=job", "MAX_WAIT_TIME_SECONDS=7", "POLL_INTERVAL_SECONDS=2"} <= set(lines)


def test_check_names_every_problem(capsys: pytest.CaptureFixture[str]) -> None:
    """One line each on stderr, exit 2, nothing on stdout."""
    assert 2 == ask("--check", JOB_NAME="job", EXIT_POLICY="maybe")
    out, err = capsys.readouterr()
    assert "" == out
    assert {"JOB_NAMESPACE", "POD_NAME", "EXIT_POLICY"} == {
        line.partition("=")[0].split()[0] for line in err.splitlines()
    }


def test_check_shows_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    """They are no error."""
    assert 0 == ask("--check", **GOOD, LOG_LEVEL="loud")
    assert capsys.readouterr().err.startswith("warning: LOG_LEVEL=")


def linked(**changes: str) -> dict[str, str]:
    """Settings with a link to an aggregator."""
    who = identities()
    link = {
        "AGGREGATOR_URL": "https://aggregator.example:8080/",
        "RESULT_TYPE": "e2e",
        "CA_CERT": who.ca.pem,
        "CLIENT_CERT": who.client.certificate,
        "CLIENT_KEY": who.client.sec1,
    }
    return {**GOOD, **link, **changes}


def test_check_shows_the_link(capsys: pytest.CaptureFixture[str]) -> None:
    """Where to, and as whom; nothing of the key."""
    twice = identities().ca.pem * 2
    assert 0 == ask("--check", **linked(AGGREGATOR_SCOPE="node", NODE_NAME="node1", CA_CERT=twice))
    out, err = capsys.readouterr()
    assert "AGGREGATOR_URL=https://aggregator.example:8080 (e2e/node1)" == out.splitlines()[-1]
    assert "warning: CA_CERT: the first of 2 certificates is used\n" == err
    assert "PRIVATE KEY" not in out


def test_check_names_every_problem_of_the_link(capsys: pytest.CaptureFixture[str]) -> None:
    """At once; the sidecar itself would run without a link."""
    wrong = linked(AGGREGATOR_SCOPE="galaxy", RESULT_TYPE="", CLIENT_KEY="no key")
    assert 2 == ask("--check", **wrong)
    lines = capsys.readouterr().err.splitlines()
    prefix = "no link to the aggregator: "
    assert all(line.startswith(prefix) for line in lines)
    assert {"AGGREGATOR_SCOPE", "RESULT_TYPE", "CLIENT_KEY"} == {
        line.removeprefix(prefix).partition(":")[0] for line in lines
    }


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """One word."""
    assert 0 == ask("--version")
    assert f"{__version__}\n" == capsys.readouterr().out


@pytest.mark.parametrize("arguments", [("--chekc",), ("run",), ("--help", "--check")])
def test_anything_else_is_refused(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2 and the usage on stderr."""
    assert 2 == ask(*arguments, **GOOD)
    out, err = capsys.readouterr()
    assert "" == out
    assert err.startswith("usage: status-reporter")
