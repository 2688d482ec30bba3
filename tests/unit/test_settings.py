"""Settings: every variable, its default and its rule."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from pydantic import ValidationError

from reporter.errors import SettingsError
from reporter.settings import sidecar as settings

NAMES = {"JOB_NAME": "check", "JOB_NAMESPACE": "team-a", "POD_NAME": "check-x7k2p"}

DEFAULTS = {
    "job_name": "check",
    "job_namespace": "team-a",
    "pod_name": "check-x7k2p",
    "results_path": "/results/adapter-result.json",
    "poll_interval_seconds": 2,
    "max_wait_time_seconds": 300,
    "condition_type": "Available",
    "log_level": "info",
    "adapter_container_name": "",
    "reporter_container_name": "status-reporter",
    "reporter_form": "auto",
    "result_required": True,
    "report_running": True,
    "exit_policy": "infrastructure",
    "progress_path": "/results/progress.json",
    "metrics_port": 9464,
    "metrics_address": "",
    "metrics_linger_seconds": 0,
    "log_format": "json",
    "kubernetes_relax_x509_strict": False,
}

GOOD = [
    ("POLL_INTERVAL_SECONDS", "+5", 5),
    ("POLL_INTERVAL_SECONDS", "007", 7),
    ("POLL_INTERVAL_SECONDS", "299", 299),
    ("MAX_WAIT_TIME_SECONDS", "2147483647", 2**31 - 1),
    ("MAX_WAIT_TIME_SECONDS", "3", 3),
    ("METRICS_PORT", "0", 0),
    ("METRICS_PORT", "-0", 0),
    ("METRICS_PORT", "65535", 65535),
    ("METRICS_LINGER_SECONDS", "90", 90),
    ("METRICS_ADDRESS", "127.0.0.1", "127.0.0.1"),
    ("METRICS_ADDRESS", "::", "::"),
    ("CONDITION_TYPE", "Ready", "Ready"),
    ("CONDITION_TYPE", "example.org/Ready", "example.org/Ready"),
    ("CONDITION_TYPE", "complete", "complete"),
    ("CONDITION_TYPE", "a" * 63, "a" * 63),
    ("LOG_LEVEL", "debug", "debug"),
    ("LOG_LEVEL", "warn", "warning"),
    ("LOG_LEVEL", "error", "error"),
    ("LOG_FORMAT", "console", "console"),
    ("RESULT_REQUIRED", "false", False),
    ("RESULT_REQUIRED", "True", True),
    ("REPORT_RUNNING", "0", False),
    ("KUBERNETES_RELAX_X509_STRICT", "true", True),
    ("REPORTER_FORM", "native", "native"),
    ("EXIT_POLICY", "never", "never"),
    ("RESULTS_PATH", "/a b/result", "/a b/result"),
    ("PROGRESS_PATH", "/elsewhere/p.json", "/elsewhere/p.json"),
    ("ADAPTER_CONTAINER_NAME", "adapter", "adapter"),
    ("REPORTER_CONTAINER_NAME", "sidecar", "sidecar"),
]

BAD = [
    *(
        (variable, value)
        for variable in ("POLL_INTERVAL_SECONDS", "MAX_WAIT_TIME_SECONDS")
        for value in (
            "0",
            "-1",
            "5.0",
            "1_000",
            "1e3",
            "0x10",
            " 5",
            "5 ",
            "\u0663",
            "\uff15",
            "+",
            "five",
        )
    ),
    ("MAX_WAIT_TIME_SECONDS", "2147483648"),
    ("MAX_WAIT_TIME_SECONDS", "9223372036854775808"),
    ("MAX_WAIT_TIME_SECONDS", "9" * 5000),
    ("METRICS_PORT", "-1"),
    ("METRICS_PORT", "65536"),
    ("METRICS_LINGER_SECONDS", "-1"),
    ("METRICS_ADDRESS", "localhost"),
    ("METRICS_ADDRESS", "1.2.3"),
    ("CONDITION_TYPE", "Complete"),
    ("CONDITION_TYPE", "Failed"),
    ("CONDITION_TYPE", "FailureTarget"),
    ("CONDITION_TYPE", "SuccessCriteriaMet"),
    ("CONDITION_TYPE", "Suspended"),
    ("CONDITION_TYPE", "a" * 64),
    ("CONDITION_TYPE", "My Type"),
    ("CONDITION_TYPE", "/Ready"),
    ("CONDITION_TYPE", "Ready-"),
    ("CONDITION_TYPE", "Ready\n"),
    ("CONDITION_TYPE", "Bereit\u00e4"),
    ("RESULTS_PATH", "results/adapter-result.json"),
    ("RESULTS_PATH", "/results/"),
    ("RESULTS_PATH", "/"),
    ("RESULTS_PATH", "/results/.."),
    ("PROGRESS_PATH", "progress.json"),
    ("PROGRESS_PATH", "/results/"),
    ("RESULT_REQUIRED", "yes"),
    ("REPORT_RUNNING", "2"),
    ("REPORTER_FORM", "Native"),
    ("EXIT_POLICY", "always"),
    ("LOG_FORMAT", "text"),
    ("JOB_NAME", "a/b"),
    ("JOB_NAME", ".."),
    ("JOB_NAME", "check\n"),
    ("JOB_NAMESPACE", "team/../kube-system"),
    ("POD_NAME", "Pod_1"),
    ("POD_NAME", "a" * 254),
]


def problems(environ):
    """The problems that these variables have."""
    with pytest.raises(SettingsError) as caught:
        settings.load(environ)
    return caught.value.problems


def test_only_the_required_variables_are_needed():
    """Everything else has the published default."""
    assert DEFAULTS == settings.load(NAMES).model_dump()


@pytest.mark.parametrize(("variable", "value", "read"), GOOD)
def test_a_good_value_is_read(variable, value, read):
    """Values inside the rules arrive as they were meant."""
    loaded = settings.load({**NAMES, variable: value})

    assert read == getattr(loaded, variable.lower())
    assert () == loaded.warnings


@pytest.mark.parametrize(("variable", "value"), BAD)
def test_a_bad_value_is_one_line_with_variable_value_and_rule(variable, value):
    """One problem, one line that names all three and nothing raw."""
    (line,) = problems({**NAMES, variable: value})

    rule = next(found.rule for found in settings.describe() if found.name == variable)
    shown = value if len(value) <= 64 else value[:64] + "..."
    assert f"{variable}={json.dumps(shown)}: must be {rule}" == line
    assert line.isprintable()


@pytest.mark.parametrize("variable", sorted(NAMES))
@pytest.mark.parametrize("value", [None, "", "  ", "\t\n"])
def test_a_required_variable_that_is_unset_empty_or_blank_is_a_problem(variable, value):
    """Empty and white space count as unset."""
    environ = {**NAMES, variable: value}
    if value is None:
        del environ[variable]

    (line,) = problems(environ)
    assert line.startswith(f"{variable} is unset (required): must be ")


def test_a_blank_value_means_the_default():
    """Every optional variable may be blank."""
    blank = {found.name: " " for found in settings.describe()}

    assert DEFAULTS == settings.load({**blank, **NAMES}).model_dump()


def test_all_problems_come_in_one_go():
    """Nobody has to fix settings one deployment at a time."""
    lines = problems(
        {
            "JOB_NAME": "a/b",
            "RESULTS_PATH": "x",
            "POLL_INTERVAL_SECONDS": "0",
            "MAX_WAIT_TIME_SECONDS": "soon",
            "EXIT_POLICY": "?",
        }
    )

    expected = [
        "JOB_NAME",
        "JOB_NAMESPACE",
        "POD_NAME",
        "RESULTS_PATH",
        "MAX_WAIT_TIME_SECONDS",
        "POLL_INTERVAL_SECONDS",
        "EXIT_POLICY",
    ]
    assert expected == [line.split("=")[0].split(" ")[0] for line in lines]


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (
            {"POLL_INTERVAL_SECONDS": "300"},
            'POLL_INTERVAL_SECONDS="300": must be a positive integer, '
            "less than MAX_WAIT_TIME_SECONDS",
        ),
        (
            {"MAX_WAIT_TIME_SECONDS": "2"},
            "POLL_INTERVAL_SECONDS is unset (2): must be a positive integer, "
            "less than MAX_WAIT_TIME_SECONDS",
        ),
        (
            {"POLL_INTERVAL_SECONDS": "7", "MAX_WAIT_TIME_SECONDS": "7"},
            'POLL_INTERVAL_SECONDS="7": must be a positive integer, '
            "less than MAX_WAIT_TIME_SECONDS",
        ),
    ],
)
def test_the_interval_must_be_shorter_than_the_wait(environ, line):
    """Also when only one of the two was set."""
    assert [line] == problems({**NAMES, **environ})


def test_the_interval_is_judged_although_another_setting_is_bad():
    """The rule between two variables does not wait for the others to be right."""
    assert 2 == len(problems({**NAMES, "POLL_INTERVAL_SECONDS": "300", "METRICS_PORT": "x"}))


def test_another_log_level_is_info_with_a_warning():
    """A log level is no reason to stop."""
    loaded = settings.load({**NAMES, "LOG_LEVEL": "loud\x1b[31m"})

    assert "info" == loaded.log_level
    (line,) = loaded.warnings
    assert line.startswith('LOG_LEVEL="loud\\u001b[31m": must be debug, info, ')


def test_progress_lies_beside_the_result():
    """The default follows RESULTS_PATH."""
    loaded = settings.load({**NAMES, "RESULTS_PATH": "/data/out/r.json"})

    assert "/data/out/progress.json" == loaded.progress_path


def test_settings_cannot_be_changed():
    """What `--check` printed is what stays in force."""
    loaded = settings.load(NAMES)

    with pytest.raises(ValidationError):
        loaded.job_name = "other"


def test_only_the_given_environment_counts(monkeypatch, tmp_path):
    """Neither the process's environment nor a .env file is read, in any spelling."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("METRICS_PORT=1\n")
    monkeypatch.setenv("METRICS_PORT", "2")
    monkeypatch.setenv("metrics_linger_seconds", "3")

    loaded = settings.load({**NAMES, "metrics_port": "4", "WARNINGS": "x"})
    assert DEFAULTS == loaded.model_dump()


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({**NAMES, "METRICS_PORT": "x"}, ("team-a", "check", "check-x7k2p", "Available", False)),
        ({**NAMES, "CONDITION_TYPE": "Ready"}, ("team-a", "check", "check-x7k2p", "Ready", False)),
        (
            {**NAMES, "CONDITION_TYPE": "Failed"},
            ("team-a", "check", "check-x7k2p", "Available", False),
        ),
        ({**NAMES, "POD_NAME": " "}, ("team-a", "check", None, "Available", False)),
        ({**NAMES, "POD_NAME": "a/b"}, ("team-a", "check", None, "Available", False)),
        (
            {**NAMES, "LOG_FORMAT": "x", "KUBERNETES_RELAX_X509_STRICT": "True"},
            ("team-a", "check", "check-x7k2p", "Available", True),
        ),
        ({**NAMES, "JOB_NAME": "a/b"}, None),
        ({**NAMES, "JOB_NAMESPACE": ""}, None),
        ({}, None),
    ],
)
def test_the_job_is_named_as_far_as_it_can_be(environ, named):
    """Bad settings are shown on the Job if namespace and name are usable."""
    assert named == settings.named_job(environ)


def test_every_variable_is_described():
    """The published table: 20 variables, three of them required, each in words."""
    table = settings.describe()

    assert [name.upper() for name in settings.Settings.model_fields] == [row.name for row in table]
    assert set(DEFAULTS) == {row.name.lower() for row in table}
    assert sorted(NAMES) == sorted(row.name for row in table if row.default == "required")
    assert all(row.default and row.rule and row.meaning for row in table)


def test_the_effective_settings_are_shown_in_the_spelling_of_the_environment():
    """What `--check` prints can be given back, except for what is found by itself."""
    loaded = settings.load({**NAMES, "RESULT_REQUIRED": "F", "LOG_LEVEL": "warn"})
    shown = dict(settings.effective(loaded))

    assert "false" == shown["RESULT_REQUIRED"]
    assert "warning" == shown["LOG_LEVEL"]
    assert "/results/progress.json" == shown["PROGRESS_PATH"]
    assert "found by itself" == shown["ADAPTER_CONTAINER_NAME"]
    assert "all interfaces" == shown["METRICS_ADDRESS"]
    assert [found.name for found in settings.describe()] == list(shown)


def test_nothing_heavy_comes_along():
    """The optional parts of pydantic stay out of memory."""
    code = (
        "import sys, reporter.settings.sidecar;"
        "heavy = {'email_validator', 'pydantic.networks', 'yaml', 'tomllib', 'pydantic.v1'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]\n" == done.stdout
