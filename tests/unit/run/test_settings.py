"""The aggregator's settings: every variable, its default and its rule."""

from __future__ import annotations

import pytest

from reporter.errors import SettingsError
from reporter.run.settings import HostPort, Settings

PATHS = {"PLAN": "plan.json", "STATE": "state", "OUTPUT": "out"}

LIMITS = {
    "retry_window_seconds": 120,
    "retry_window_cap_seconds": 600,
    "hold_seconds": 20,
    "package_give_up_seconds": 3_600,
    "upload_give_up_seconds": 3600,
    "linger_seconds": 120,
    "heartbeat_interval_seconds": 15,
    "heartbeat_timeout_seconds": 120,
    "max_result_bytes": 512 * 2**20,
    "disk_reserve_bytes": 64 * 2**20,
    "connection_memory_bytes": 128 * 2**20,
    "archive_max_members": 20_000,
    "archive_max_file_bytes": 2**30,
    "archive_max_bytes": 2**31,
    "archive_seconds": 60,
}
"""The published limits; none may change unseen."""

DEFAULTS = LIMITS | {
    "plan": "plan.json",
    "launch": "",
    "state": "state",
    "output": "out",
    "listen": HostPort("0.0.0.0", 8080),
    "status_listen": HostPort("0.0.0.0", 8081),
    "export_certs": "",
    "export_secrets": "",
    "keep_blobs": False,
    "advertise_address": "",
    "sonobuoy_advertise_ip": "",
    "server_names": "",
    "exit_when_finished": False,
    "upload_url_file": "",
    "upload_ca": "",
    "worker_ca": "",
    "status_tls_cert": "",
    "status_tls_key": "",
    "status_tls_client_ca": "",
    "status_scope": "local",
    "status_values": "sonobuoy",
    "pod_namespace": "",
    "pod_name": "",
    "kubernetes_relax_x509_strict": False,
    "log_level": "info",
    "log_format": "json",
}

GOOD = [
    ("LISTEN", "127.0.0.1:0", HostPort("127.0.0.1", 0)),
    ("LISTEN", "[::]:8443", HostPort("::", 8443)),
    ("LISTEN", "[0:0::1]:65535", HostPort("::1", 65535)),
    ("LISTEN", "aggregator.example.org:80", HostPort("aggregator.example.org", 80)),
    ("ADVERTISE_ADDRESS", "status-aggregator.team-a.svc:443", "status-aggregator.team-a.svc:443"),
    ("ADVERTISE_ADDRESS", "status-aggregator", "status-aggregator"),
    ("ADVERTISE_ADDRESS", "10.0.0.7", "10.0.0.7"),
    ("ADVERTISE_ADDRESS", "[fd00::7]:8080", "[fd00::7]:8080"),
    ("ADVERTISE_ADDRESS", "fd00::7", "fd00::7"),
    ("SONOBUOY_ADVERTISE_IP", "fd00:0::7", "fd00::7"),
    ("SERVER_NAMES", "a, b.svc,10.0.0.7", "a,b.svc,10.0.0.7"),
    ("STATUS_SCOPE", "any", "any"),
    ("STATUS_VALUES", "strict", "strict"),
    ("KEEP_BLOBS", "true", True),
    ("MAX_RESULT_BYTES", "4294967296", 2**32),
    ("HEARTBEAT_TIMEOUT_SECONDS", "0", 0),
    ("HEARTBEAT_TIMEOUT_SECONDS", "30", 30),
    ("RETRY_WINDOW_SECONDS", "1", 1),
    ("RETRY_WINDOW_CAP_SECONDS", "120", 120),
    ("POD_NAME", "aggregator-0", "aggregator-0"),
]

BAD = [
    ("PLAN", "a\0b"),
    ("LISTEN", "8080"),
    ("LISTEN", ":8080"),
    ("LISTEN", "::1:8080"),
    ("LISTEN", "[127.0.0.1]:8080"),
    ("LISTEN", "127.0.0.1:"),
    ("LISTEN", "127.0.0.1:65536"),
    ("LISTEN", "127.0.0.1:+80"),
    ("LISTEN", "127.0.0.1:\u0668\u0660"),
    ("LISTEN", "300.0.0.1:80"),
    ("LISTEN", "a b:80"),
    ("STATUS_LISTEN", "http://127.0.0.1:80"),
    ("ADVERTISE_ADDRESS", "https://aggregator"),
    ("ADVERTISE_ADDRESS", "aggregator:x"),
    ("ADVERTISE_ADDRESS", "a..b:8080"),
    ("SERVER_NAMES", "a,b..c"),
    ("SONOBUOY_ADVERTISE_IP", "aggregator"),
    ("SERVER_NAMES", "a,,b"),
    ("SERVER_NAMES", "a:80"),
    ("WORKER_CA", "ca.pem"),
    ("STATUS_TLS_KEY", "key.pem"),
    ("STATUS_TLS_CLIENT_CA", "ca.pem"),
    ("UPLOAD_CA", "ca.pem"),
    ("STATUS_SCOPE", "all"),
    ("STATUS_VALUES", "Strict"),
    ("KEEP_BLOBS", "maybe"),
    ("POD_NAMESPACE", "a/b"),
    ("POD_NAME", "Pod_1"),
    ("MAX_RESULT_BYTES", "4294967297"),
    ("MAX_RESULT_BYTES", "0"),
    ("MAX_RESULT_BYTES", "1 GiB"),
    ("HEARTBEAT_TIMEOUT_SECONDS", "29.5"),
    ("HEARTBEAT_TIMEOUT_SECONDS", "-1"),
    ("RETRY_WINDOW_CAP_SECONDS", "119"),
    ("RETRY_WINDOW_CAP_SECONDS", "0"),
]


def problems(**environ: str) -> list[str]:
    """Return what is wrong with these variables, beside the paths that are always needed."""
    with pytest.raises(SettingsError) as raised:
        Settings.read(PATHS | environ)
    return raised.value.problems


def test_defaults():
    """Three paths are enough, and the limits are the published ones."""
    assert DEFAULTS == Settings.read(PATHS).model_dump()


@pytest.mark.parametrize(("variable", "text", "value"), GOOD)
def test_a_good_value_is_read(variable: str, text: str, value: object):
    """Addresses come out in one spelling."""
    loaded = Settings.read(PATHS | {variable: text})

    assert value == getattr(loaded, variable.lower())
    assert () == loaded.warnings


@pytest.mark.parametrize(("variable", "text"), BAD)
def test_a_bad_value_is_one_line_with_variable_value_and_rule(variable: str, text: str):
    """Nothing is guessed."""
    rule = next(found.rule for found in Settings.described() if found.name == variable)
    (line,) = problems(**{variable: text})

    assert line.startswith(f"{variable}=")
    assert line.endswith(f": must be {rule}")


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_every_limit_has_bounds_on_both_sides(name: str):
    """No limit can be turned into none."""
    for value in (-1, 2**53):
        (line,) = problems(**{name.upper(): str(value)})
        assert line.startswith(f"{name.upper()}=")


def test_all_problems_come_at_once():
    """Who starts it by hand fixes everything in one go."""
    found = problems(PLAN="", LISTEN="x", MAX_RESULT_BYTES="0", STATUS_TLS_KEY="key.pem")

    assert ["PLAN", "LISTEN", "STATUS_TLS_KEY", "MAX_RESULT_BYTES"] == [
        line.split("=")[0].split()[0] for line in found
    ]


def test_one_mistake_gives_one_line():
    """Rules about two variables stay silent while one of them is wrong by itself."""
    (line,) = problems(RETRY_WINDOW_SECONDS="x")
    assert line.startswith("RETRY_WINDOW_SECONDS=")
    (line,) = problems(HEARTBEAT_INTERVAL_SECONDS="x")
    assert line.startswith("HEARTBEAT_INTERVAL_SECONDS=")
    (line,) = problems(STATUS_TLS_CERT="a\0b", STATUS_TLS_KEY="key.pem")
    assert line.startswith("STATUS_TLS_CERT=")
    (line,) = problems(EXPORT_CERTS="a\0b", WORKER_CA="ca.pem")
    assert line.startswith("EXPORT_CERTS=")


def test_certificate_without_its_key():
    """The pair is complete or absent."""
    (line,) = problems(STATUS_TLS_CERT="cert.pem")

    assert line.startswith("STATUS_TLS_KEY is unset")


def test_status_tls():
    """All three together."""
    names = ("STATUS_TLS_CERT", "STATUS_TLS_KEY", "STATUS_TLS_CLIENT_CA")
    loaded = Settings.read(PATHS | {name: f"{name}.pem" for name in names})

    assert "STATUS_TLS_CLIENT_CA.pem" == loaded.status_tls_client_ca


def test_an_address_says_itself():
    """As it stands in a URL."""
    assert "[::1]:80" == str(HostPort("::1", 80))
    assert "a.svc:80" == str(HostPort("a.svc", 80))


def test_describe_lists_every_variable_with_default_and_rule():
    """`--help`, the flags and the documents are made from it."""
    table = Settings.described()

    assert set(DEFAULTS) == {row.name.lower() for row in table}
    assert sorted(PATHS) == sorted(row.name for row in table if row.default == "required")
    assert all(row.default and row.rule and row.meaning for row in table)


def test_the_effective_settings_are_shown_in_the_spelling_of_the_environment():
    """What `--check` prints can be given back."""
    loaded = Settings.read(PATHS | {"LISTEN": "[::]:1", "KEEP_BLOBS": "t"})
    shown = dict(loaded.in_force())

    assert "[::]:1" == shown["LISTEN"]
    assert "true" == shown["KEEP_BLOBS"]
    assert "0.0.0.0:8081" == shown["STATUS_LISTEN"]
    assert "plain HTTP" == shown["STATUS_TLS_CERT"]


def test_how_it_logs_is_no_reason_to_stop():
    """The defaults, and one warning each."""
    loaded = Settings.read(PATHS | {"LOG_LEVEL": "loud", "LOG_FORMAT": "text"})

    assert ("info", "json") == (loaded.log_level, loaded.log_format)
    assert ["LOG_LEVEL", "LOG_FORMAT"] == [line.split("=")[0] for line in loaded.warnings]


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, "box:8080"),
        ({"SONOBUOY_ADVERTISE_IP": "fd00::7"}, "[fd00::7]:8080"),
        ({"SONOBUOY_ADVERTISE_IP": "fd00::7", "ADVERTISE_ADDRESS": "a.svc"}, "a.svc:8080"),
        ({"ADVERTISE_ADDRESS": "a.svc:443"}, "a.svc:443"),
        ({"ADVERTISE_ADDRESS": "fd00::8"}, "[fd00::8]:8080"),
        ({"ADVERTISE_ADDRESS": "[fd00::8]:1"}, "[fd00::8]:1"),
    ],
)
def test_the_address_that_workers_are_given(environ: dict[str, str], address: str):
    """ADVERTISE_ADDRESS, else Sonobuoy's variable, else the host name."""
    assert address == str(Settings.read(PATHS | environ).advertised("box", 8080))
