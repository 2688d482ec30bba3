"""A worker's settings: all problems at once, before any network."""

import json
import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.link import ConfigError, WorkerConfig
from reporter.link.config import duration
from tests.aggregators.identities import Authority, identities

EC_PARAMETERS = """-----BEGIN EC PARAMETERS-----
BggqhkjOPQMBBw==
-----END EC PARAMETERS-----
"""


def environment(**changes: str) -> dict[str, str]:
    """A complete environment, changed."""
    who = identities()
    return {
        "AGGREGATOR_URL": "https://aggregator.example:8080",
        "RESULT_TYPE": "e2e",
        "CA_CERT": who.ca.pem,
        "CLIENT_CERT": who.client.certificate,
        "CLIENT_KEY": who.client.sec1,
        **changes,
    }


def problems(environ: dict[str, str], **options: str) -> list[str]:
    """What is wrong with an environment."""
    with pytest.raises(ConfigError) as caught:
        WorkerConfig.from_env(environ, **options)
    assert str(caught.value) == "; ".join(caught.value.problems)
    return caught.value.problems


def names(environ: dict[str, str], **options: str) -> list[str]:
    """The variables that are wrong."""
    return sorted(problem.split(":")[0] for problem in problems(environ, **options))


def test_defaults_are_the_contracts():
    """What Sonobuoy's worker takes when it is not told."""
    config = WorkerConfig.from_env(environment(NODE_NAME="of a node's worker only"))
    assert ("aggregator.example", 8080) == (config.host, config.port)
    assert ("e2e", "global") == (config.plugin, config.node)
    assert ("/tmp/sonobuoy/results", 8099) == (str(config.results_dir), config.progress_port)
    assert (None, 15.0, 120.0, 60.0) == (
        config.done_file_delay,
        config.heartbeat_seconds,
        config.upload_window_seconds,
        config.grace_seconds,
    )
    assert () == config.warnings


def test_every_variable_is_taken():
    """Each under its own name, numbers up to their highest; unknown ones are ignored."""
    config = WorkerConfig.from_env(
        environment(
            NODE_NAME="node1",
            SONOBUOY_RESULTS_DIR="/r",
            SONOBUOY_PROGRESS_PORT="65535",
            SONOBUOY_DONE_FILE_DELAY="1m30s",
            SONOBUOY_NS="ns",
            SONOBUOY_PLUGIN_POD="pod",
            SONOBUOY_WORKER_CONTAINER="worker",
            WORKER_HEARTBEAT_SECONDS="0",
            WORKER_UPLOAD_WINDOW_SECONDS="3600",
            WORKER_GRACE_SECONDS="86400",
            WORKER_UNHEARD_OF="x",
        ),
        scope="node",
    )
    assert ("node1", "/r", 65535, 90.0) == (
        config.node,
        str(config.results_dir),
        config.progress_port,
        config.done_file_delay,
    )
    assert ("ns", "pod", "worker") == (config.namespace, config.plugin_pod, config.worker_container)
    assert (0.0, 3600.0, 86400.0) == (
        config.heartbeat_seconds,
        config.upload_window_seconds,
        config.grace_seconds,
    )


def test_w16_missing_variables_are_one_message():
    """W16: all of them at once; an empty one counts as missing."""
    assert ["AGGREGATOR_URL", "CA_CERT", "CLIENT_CERT", "CLIENT_KEY", "RESULT_TYPE"] == names({})
    empty = dict.fromkeys(environment(), "")
    assert problems({}) == problems(empty)


def test_w16_everything_wrong_is_one_message():
    """W16: bad values and missing ones together."""
    environ = environment(
        AGGREGATOR_URL="http://x:1",
        RESULT_TYPE="-bad-",
        CA_CERT="nothing",
        CLIENT_CERT="",
        CLIENT_KEY="nothing",
        WORKER_HEARTBEAT_SECONDS="nan",
        WORKER_GRACE_SECONDS="soon",
    )
    assert [
        "AGGREGATOR_URL",
        "CA_CERT",
        "CLIENT_CERT",
        "CLIENT_KEY",
        "NODE_NAME",
        "RESULT_TYPE",
        "WORKER_GRACE_SECONDS",
        "WORKER_HEARTBEAT_SECONDS",
    ] == names(environ, scope="node")


@pytest.mark.parametrize("form", ["sec1", "pkcs8", "parameters first"])
def test_w16_forms_of_the_key(form):
    """W16: SEC1, PKCS#8, and SEC1 with its parameters before it."""
    pair = identities().client
    key = {"sec1": pair.sec1, "pkcs8": pair.pkcs8}.get(form, EC_PARAMETERS + pair.sec1)
    config = WorkerConfig.from_env(environment(CLIENT_KEY=key))
    assert config.client_key.strip() == (pair.pkcs8 if form == "pkcs8" else pair.sec1).strip()


def test_w16_broken_key_is_named_and_not_shown():
    """W16: whatever is in it must not end in a log."""
    lines = identities().client.sec1.splitlines()
    del lines[2]
    (found,) = problems(environment(CLIENT_KEY="\n".join(lines)))
    assert found.startswith("CLIENT_KEY: cannot be used (")
    assert not any(line in found for line in lines[1:-1])


def test_key_of_somebody_else():
    """The certificate and the key do not belong together."""
    other = Authority().client()
    assert ["CLIENT_KEY: does not belong to CLIENT_CERT"] == problems(
        environment(CLIENT_KEY=other.sec1)
    )


@pytest.mark.parametrize("form", ["PKCS#8", "SEC1"])
def test_encrypted_key_never_asks_on_the_terminal(tmp_path, form):
    """OpenSSL would wait for somebody to type a passphrase."""
    path = tmp_path / "key.pem"
    path.write_text(identities().client.sec1)
    command = ["openssl", "pkcs8", "-topk8"] if form == "PKCS#8" else ["openssl", "ec", "-aes128"]
    encrypted = subprocess.run(
        [*command, "-in", path, "-passout", "pass:secret"], capture_output=True, check=True
    ).stdout.decode()
    assert ["CLIENT_KEY: is encrypted; a key without a passphrase is needed"] == problems(
        environment(CLIENT_KEY=encrypted)
    )


def test_first_ca_counts_and_more_are_a_warning():
    """As Sonobuoy's worker takes it. Of its own certificate the whole chain is kept."""
    first, second = identities().ca.pem, Authority().pem
    chain = identities().client.certificate + first
    config = WorkerConfig.from_env(
        environment(CA_CERT="text\n" + first + second, CLIENT_CERT=chain)
    )
    assert (first.strip(), chain) == (config.ca_cert.strip(), config.client_cert)
    assert ("CA_CERT: the first of 2 certificates is used",) == config.warnings


def test_what_a_service_is_called_is_no_port():
    """For a Service `sonobuoy-progress` the kubelet sets this variable: the default holds."""
    link = "tcp://10.0.0.1:80"
    config = WorkerConfig.from_env(environment(SONOBUOY_PROGRESS_PORT=link))
    said = f"SONOBUOY_PROGRESS_PORT='{link}': set by Kubernetes for a Service, not a setting"
    assert (8099, (), (said,)) == (config.progress_port, config.warnings, config.ignored)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h:8080", "https://h:8080"),
        ("https://H.Example:8080/", "https://h.example:8080"),
        ("https://h:8080/api/v1/?x#y", "https://h:8080"),
        ("https://h", "https://h:443"),
        ("https://[FD00::1]:8080", "https://[fd00::1]:8080"),
        (" https://10.0.0.1:8080\n", "https://10.0.0.1:8080"),
    ],
)
def test_address_is_reduced_to_host_and_port(url, expected):
    """A path in it is dropped."""
    assert expected == WorkerConfig.from_env(environment(AGGREGATOR_URL=url)).aggregator_url


UNENCODABLE = "-----BEGIN {0}-----\n\udcff\n-----END {0}-----\n"
WRONG = {
    "AGGREGATOR_URL": [
        "http://h:1",
        "h:8080",
        "https://",
        "https://h:0",
        "https://h:99999",
        "https://h:x",
        "https://[::1",
        "https://u:p@h:1",
        "ftp://h",
        "https://a b:1",
        "https://" + "a" * 64 + ":1",
    ],
    "NODE_NAME": ["", "a/b", ".", "..", "global", "a\0b"],
    "CA_CERT": [UNENCODABLE.format("CERTIFICATE")],
    "CLIENT_CERT": [UNENCODABLE.format("CERTIFICATE")],
    "CLIENT_KEY": [UNENCODABLE.format("PRIVATE KEY")],
    "WORKER_GRACE_SECONDS": ["0.9", "86401", "9" * 5000],
}


@pytest.mark.parametrize("variable", WRONG)
def test_w2_w16_what_is_no_value(variable):
    """Each by itself: an address with TLS, a part of a path, text, a number with an end."""
    for text in WRONG[variable]:
        found = names(environment(**{"NODE_NAME": "node1", variable: text}), scope="node")
        assert [variable] == found, text


@pytest.mark.parametrize(
    ("text", "expected", "warned"),
    [
        ("0s", 0.0, False),
        ("garbage", 5.0, True),
        ("-3s", 5.0, True),
        ("9999999h", 5.0, True),
        ("9" * 400 + "h", 5.0, True),
    ],
)
def test_w8_done_file_delay(text, expected, warned):
    """W8: what cannot be read, or is negative, is the default and a warning."""
    config = WorkerConfig.from_env(environment(SONOBUOY_DONE_FILE_DELAY=text))
    assert (expected, warned) == (config.done_file_delay, bool(config.warnings))


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1", "9" * 5000, "$(PORT)"])
def test_what_is_no_progress_port_costs_no_result(text):
    """A value of the cluster, which nobody could check before: the default and a warning."""
    config = WorkerConfig.from_env(environment(SONOBUOY_PROGRESS_PORT=text))
    said = f"SONOBUOY_PROGRESS_PORT: {text[:40]!r} is not a port; using 8099"
    assert (8099, (said,)) == (config.progress_port, config.warnings)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5s", 5.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        ("300ms", 0.3),
        ("+2s", 2.0),
        (".5s", 0.5),
        ("1us2ns", 1.002e-06),
        ("-1s", -1.0),
        ("0", 0.0),
        ("", None),
        ("s", None),
        ("1", None),
        ("1s 2s", None),
        ("1e3s", None),
        ("5S", None),
    ],
)
def test_go_durations(text, expected):
    """The notation that Go's programs are configured with."""
    found = duration(text)
    assert found is None if expected is None else found == pytest.approx(expected)


@given(st.text(max_size=30))
def test_any_text_is_a_duration_or_none(text):
    """Never an error."""
    assert duration(text) is None or isinstance(duration(text), float | int)


def test_pem_texts_from_files(tmp_path):
    """`_FILE` instead of the text."""
    who = identities()
    environ = environment(CA_CERT="", CLIENT_CERT="", CLIENT_KEY="")
    for name, text in (
        ("CA_CERT", who.ca.pem),
        ("CLIENT_CERT", who.client.certificate),
        ("CLIENT_KEY", who.client.pkcs8),
    ):
        (tmp_path / name).write_text(text)
        environ[f"{name}_FILE"] = str(tmp_path / name)
    assert who.client.pkcs8 == WorkerConfig.from_env(environ).client_key


def test_files_that_cannot_be_taken(tmp_path):
    """Which of two was meant nobody can know; a decoder's message would show what it decodes."""
    (tmp_path / "key").write_bytes(b"\xff\xfesecret")
    environ = environment(
        CA_CERT_FILE="/x",
        CLIENT_CERT="",
        CLIENT_CERT_FILE=str(tmp_path / "none"),
        CLIENT_KEY="",
        CLIENT_KEY_FILE=str(tmp_path / "key"),
    )
    assert [
        "CA_CERT_FILE: must not be set together with CA_CERT",
        "CLIENT_CERT_FILE: cannot be read: No such file or directory",
        "CLIENT_KEY_FILE: cannot be read: invalid content",
    ] == problems(environ)


def test_config_file_with_the_same_facts(tmp_path):
    """A variable wins over it."""
    who = identities()
    path = tmp_path / "worker.json"
    facts = {
        "aggregatorurl": "https://file:1",
        "nodename": "node1",
        "resulttype": "e2e",
        "resultsdir": "/r",
        "progressport": 1234,
        "CACert": who.ca.pem,
        "clientcert": who.client.certificate,
        "clientkey": who.client.sec1,
        "other": {},
    }
    path.write_text(json.dumps(facts))
    environ = {"WORKER_CONFIG_FILE": str(path), "RESULT_TYPE": "sysd"}
    config = WorkerConfig.from_env(environ, scope="node")
    assert ("https://file:1", "sysd", "node1", 1234) == (
        config.aggregator_url,
        config.plugin,
        config.node,
        config.progress_port,
    )


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"nodename": []}',
        b'{"nodename": true}',
        pytest.param(b"[" * 200_000, id="without a bottom"),
    ],
)
def test_bad_config_file_is_one_problem_more(tmp_path, content):
    """W16: named by the variable that named it."""
    path = tmp_path / "worker.json"
    path.write_bytes(content)
    assert ["WORKER_CONFIG_FILE"] == names(environment(WORKER_CONFIG_FILE=str(path)))


def test_key_is_dropped_from_the_environment_on_request():
    """Also when something else is wrong; children and dumps do not see it then."""
    environ = environment()
    WorkerConfig.from_env(environ)
    assert "CLIENT_KEY" in environ
    WorkerConfig.from_env(environ, drop_key=True)
    assert "CLIENT_KEY" not in environ
    environ = environment(RESULT_TYPE="")
    with pytest.raises(ConfigError):
        WorkerConfig.from_env(environ, drop_key=True)
    assert "CLIENT_KEY" not in environ


def test_key_never_shows():
    """Neither in what is printed nor as an open file."""
    before = set(os.listdir("/proc/self/fd"))
    config = WorkerConfig.from_env(environment())
    assert before == set(os.listdir("/proc/self/fd"))
    assert "PRIVATE KEY" not in repr(config)


def test_settings_by_keyword_are_checked_too():
    """All problems at once there as well."""
    who = identities()
    with pytest.raises(ConfigError) as caught:
        WorkerConfig(
            aggregator_url="x",
            plugin="",
            node="",
            ca_cert=who.ca.pem,
            client_cert=who.client.certificate,
            client_key="",
            grace_seconds=0,
        )
    assert ["AGGREGATOR_URL", "RESULT_TYPE", "NODE_NAME", "CLIENT_KEY", "WORKER_GRACE_SECONDS"] == [
        problem.split(":")[0] for problem in caught.value.problems
    ]
