"""Settings: every variable, its default and its rule."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from reporter.errors import SettingsError
from reporter.sidecar.settings import Settings, salvage

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
    "result_trust": "at-once",
    "report_running": True,
    "report_condition": True,
    "report_events": True,
    "report_details": False,
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
    ("RESULT_TRUST", "at-exit", "at-exit"),
    ("RESULT_REQUIRED", "True", True),
    ("REPORT_RUNNING", "0", False),
    ("REPORT_CONDITION", "0", False),
    ("REPORT_EVENTS", "f", False),
    ("REPORT_DETAILS", "true", True),
    ("KUBERNETES_RELAX_X509_STRICT", "true", True),
    ("REPORTER_FORM", "native", "native"),
    ("EXIT_POLICY", "never", "never"),
    ("RESULTS_PATH", "/a b/result", "/a b/result"),
    ("PROGRESS_PATH", "/elsewhere/p.json", "/elsewhere/p.json"),
    ("ADAPTER_CONTAINER_NAME", "adapter", "adapter"),
    ("REPORTER_CONTAINER_NAME", "sidecar", "sidecar"),
]

NO_INTEGERS = (
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

BAD = [
    *(("MAX_WAIT_TIME_SECONDS", value) for value in NO_INTEGERS),
    ("MAX_WAIT_TIME_SECONDS", "2147483648"),
    ("MAX_WAIT_TIME_SECONDS", "9223372036854775808"),
    ("MAX_WAIT_TIME_SECONDS", "9" * 5000),
    ("RESULT_TRUST", "never"),
    ("RESULT_TRUST", "At-Exit"),
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
    ("RESULT_REQUIRED", "yes"),
    ("REPORTER_FORM", "Native"),
    ("EXIT_POLICY", "always"),
    ("KUBERNETES_RELAX_X509_STRICT", "yes"),
    ("JOB_NAME", "a/b"),
    ("JOB_NAME", ".."),
    ("JOB_NAME", "check\n"),
    ("JOB_NAMESPACE", "team/../kube-system"),
    ("POD_NAME", "Pod_1"),
    ("POD_NAME", "a" * 254),
]

HARMLESS = [
    *(("POLL_INTERVAL_SECONDS", value, 2) for value in NO_INTEGERS),
    ("POLL_INTERVAL_SECONDS", "300", 2),
    ("LOG_LEVEL", "loud\x1b[31m", "info"),
    ("LOG_FORMAT", "text", "json"),
    ("METRICS_PORT", "-1", 9464),
    ("METRICS_PORT", "65536", 9464),
    ("METRICS_PORT", "http://10.0.0.1:9090", 9464),
    ("METRICS_ADDRESS", "localhost", ""),
    ("METRICS_ADDRESS", "1.2.3", ""),
    ("METRICS_LINGER_SECONDS", "-1", 0),
    ("METRICS_LINGER_SECONDS", "9" * 5000, 0),
    ("PROGRESS_PATH", "progress.json", None),
    ("PROGRESS_PATH", "/results/", None),
    ("REPORT_RUNNING", "2", True),
    ("REPORT_CONDITION", "sometimes", True),
    ("REPORT_EVENTS", "sometimes", True),
    ("REPORT_DETAILS", "all", False),
]
"""What cannot change the verdict: a bad value, and what is used in its place."""


def problems(environ):
    """The problems that these variables have."""
    with pytest.raises(SettingsError) as caught:
        Settings.read(environ)
    return caught.value.problems


def test_only_the_required_variables_are_needed():
    """Everything else has the published default."""
    assert DEFAULTS == Settings.read(NAMES).model_dump()


@pytest.mark.parametrize(("variable", "value", "read"), GOOD)
def test_a_good_value_is_read(variable, value, read):
    """Values inside the rules arrive as they were meant."""
    loaded = Settings.read({**NAMES, variable: value})

    assert read == getattr(loaded, variable.lower())
    assert () == loaded.warnings


@pytest.mark.parametrize(("variable", "value"), BAD)
def test_a_bad_value_is_one_line_with_variable_value_and_rule(variable, value):
    """One problem, one line that names all three and nothing raw."""
    (line,) = problems({**NAMES, variable: value})

    rule = next(found.rule for found in Settings.described() if found.name == variable)
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
    blank = {found.name: " " for found in Settings.described()}

    assert DEFAULTS == Settings.read({**blank, **NAMES}).model_dump()


def test_all_problems_come_in_one_go():
    """Nobody has to fix settings one deployment at a time."""
    lines = problems(
        {
            "JOB_NAME": "a/b",
            "RESULTS_PATH": "x",
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
        "EXIT_POLICY",
    ]
    assert expected == [line.split("=")[0].split(" ")[0] for line in lines]


@pytest.mark.parametrize(("variable", "value", "used"), HARMLESS)
def test_what_cannot_change_the_verdict_never_costs_one(variable, value, used):
    """One warning with variable, value, rule and what is used instead; nothing is refused."""
    loaded = Settings.read({**NAMES, variable: value})

    assert {**DEFAULTS, variable.lower(): used} == loaded.model_dump()
    (line,) = loaded.warnings
    rule = next(found.rule for found in Settings.described() if found.name == variable)
    in_force = dict(loaded.in_force())[variable]
    shown = json.dumps(value if len(value) <= 64 else value[:64] + "...")
    assert f"{variable}={shown}: must be {rule}; using {in_force}" == line
    assert line.isprintable()


@pytest.mark.parametrize(("length", "used"), [(55, True), (56, False), (63, False)])
def test_details_need_a_type_that_leaves_room_for_their_annotations_name(length, used):
    """A name over 63 bytes would be refused together with the verdict."""
    loaded = Settings.read({**NAMES, "CONDITION_TYPE": "a" * length, "REPORT_DETAILS": "true"})

    assert used == loaded.report_details
    assert (not used) == any("REPORT_DETAILS" in line for line in loaded.warnings)


def test_all_of_them_at_once_are_one_warning_each():
    """They do not hide each other."""
    environ = {variable: value for variable, value, _ in HARMLESS}
    used = {variable.lower(): used for variable, _, used in HARMLESS}
    loaded = Settings.read({**NAMES, **environ})

    assert {**DEFAULTS, **used} == loaded.model_dump()
    assert sorted(environ) == sorted(line.split("=")[0] for line in loaded.warnings)


def test_a_refused_setting_beside_a_harmless_one_is_the_only_problem():
    """Whoever reads the problems fixes what stops the reporter."""
    (line,) = problems({**NAMES, "METRICS_PORT": "x", "EXIT_POLICY": "?"})

    assert line.startswith("EXIT_POLICY=")


@pytest.mark.parametrize(
    ("wait", "asked", "used"),
    [
        ("300", None, 2),
        ("3", None, 2),
        ("2", None, 1),
        ("1", None, 1),
        ("7", "7", 2),
        ("7", "6", 6),
        ("2", "2", 1),
        ("1", "1", 1),
        ("1", "soon", 1),
    ],
)
def test_the_interval_is_shorter_than_the_wait(wait, asked, used):
    """Unset it fits by itself, set too long it falls back with a warning."""
    environ = {"POLL_INTERVAL_SECONDS": asked} if asked else {}
    loaded = Settings.read({**NAMES, "MAX_WAIT_TIME_SECONDS": wait, **environ})

    assert used == loaded.poll_interval_seconds
    assert (asked not in (None, str(used)) or wait == asked) == bool(loaded.warnings)


@pytest.mark.parametrize("scheme", ["tcp", "udp", "sctp"])
def test_what_a_service_is_called_is_no_setting(scheme):
    """For a Service `metrics` the kubelet sets METRICS_PORT: the default, and a line to log."""
    link = f"{scheme}://10.0.0.1:9090"
    loaded = Settings.read({**NAMES, "METRICS_PORT": link})

    assert (DEFAULTS, ()) == (loaded.model_dump(), loaded.warnings)
    assert (
        f"METRICS_PORT='{link}': set by Kubernetes for a Service, not a setting; using 9464",
    ) == (loaded.ignored)


def test_such_a_value_is_bad_where_no_service_can_have_set_it():
    """Kubernetes makes names that end in _PORT."""
    (line,) = problems({**NAMES, "RESULTS_PATH": "tcp://10.0.0.1:9090"})

    assert line.startswith("RESULTS_PATH=")


def test_progress_lies_beside_the_result():
    """The default follows RESULTS_PATH."""
    loaded = Settings.read({**NAMES, "RESULTS_PATH": "/data/out/r.json"})

    assert "/data/out/progress.json" == loaded.progress_path


def test_settings_cannot_be_changed():
    """What `--check` printed is what stays in force."""
    loaded = Settings.read(NAMES)

    with pytest.raises(ValidationError):
        loaded.job_name = "other"


def test_only_the_given_environment_counts(monkeypatch, tmp_path):
    """Neither the process's environment nor a .env file is read, in any spelling."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("METRICS_PORT=1\n")
    monkeypatch.setenv("METRICS_PORT", "2")
    monkeypatch.setenv("metrics_linger_seconds", "3")

    loaded = Settings.read({**NAMES, "metrics_port": "4", "WARNINGS": "x"})
    assert DEFAULTS == loaded.model_dump()


@pytest.mark.parametrize(
    ("environ", "differs"),
    [
        ({"CONDITION_TYPE": "Ready"}, {"condition_type": "Ready"}),
        ({"CONDITION_TYPE": "Failed", "REPORTER_FORM": "native"}, {"reporter_form": "native"}),
        ({"REPORTER_FORM": "sidecar", "METRICS_PORT": "1"}, {"metrics_port": 1}),
        ({"METRICS_PORT": "x", "METRICS_ADDRESS": "here"}, {}),
        ({"POD_NAME": " "}, {"pod_name": ""}),
        ({"POD_NAME": "a/b", "JOB_NAME": "a/b"}, {"pod_name": "", "job_name": ""}),
        ({"JOB_NAMESPACE": ""}, {"job_namespace": ""}),
        ({"KUBERNETES_RELAX_X509_STRICT": "True"}, {"kubernetes_relax_x509_strict": True}),
        # Good beside the setting that is bad, but not beside the default in its place.
        ({"MAX_WAIT_TIME_SECONDS": "soon", "POLL_INTERVAL_SECONDS": "600"}, {}),
    ],
)
def test_what_is_good_of_bad_settings(environ, differs):
    """It says whose Job they belong to and how the reporter runs."""
    found = salvage({**NAMES, "EXIT_POLICY": "maybe", **environ})

    assert Settings.read(NAMES).model_dump() | differs == found.model_dump()


def test_every_variable_is_described():
    """The published table, three of them required, each in words."""
    table = Settings.described()

    assert [name.upper() for name in Settings.model_fields] == [row.name for row in table]
    assert set(DEFAULTS) == {row.name.lower() for row in table}
    assert sorted(NAMES) == sorted(row.name for row in table if row.default == "required")
    assert all(row.default and row.rule and row.meaning for row in table)


def test_the_effective_settings_are_shown_in_the_spelling_of_the_environment():
    """What `--check` prints can be given back, except for what is found by itself."""
    loaded = Settings.read({**NAMES, "RESULT_REQUIRED": "F", "LOG_LEVEL": "warn"})
    shown = dict(loaded.in_force())

    assert "false" == shown["RESULT_REQUIRED"]
    assert "warning" == shown["LOG_LEVEL"]
    assert "/results/progress.json" == shown["PROGRESS_PATH"]
    assert "auto-detected" == shown["ADAPTER_CONTAINER_NAME"]
    assert "all interfaces" == shown["METRICS_ADDRESS"]
    assert [found.name for found in Settings.described()] == list(shown)
