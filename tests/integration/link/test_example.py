"""The example for authors, run as it stands, also in an environment that a plugin has bent."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.aggregators.identities import Authority
from tests.aggregators.scripted import Scripted
from tests.scripted_server import Say

EXAMPLE = Path(__file__).parents[3] / "examples" / "worker.py"


def run(environ: dict[str, str], *arguments: object) -> subprocess.CompletedProcess[str]:
    """The example in a process of its own."""
    return subprocess.run(
        [sys.executable, EXAMPLE, *map(str, arguments)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(EXAMPLE.parents[1]), **environ},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_worker_of_twenty_lines(tmp_path):
    """It tells of its progress and delivers."""
    (tmp_path / "report.json").write_text("{}")
    with Scripted() as server:
        done = run(server.environment(), tmp_path / "report.json")
        progress = server.heard(3, "progress")
        (result,) = server.heard(1, "results")
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("accepted ")
    assert b'{"msg":"step 3","total":3,"completed":3}' == progress[-1].body
    assert ("application/json", b"{}") == (result.headers["content-type"], result.body)


def test_worker_without_settings():
    """Everything that is missing, at once."""
    done = run({}, "x")
    assert 2 == done.returncode
    assert 5 == len(done.stderr.splitlines())


def test_worker_that_is_refused_or_deceived(tmp_path):
    """Not delivered is 1, whoever's fault it is."""
    (tmp_path / "report.json").write_text("{}")
    with Scripted(results=[Say(403, b"result e2e/global unexpected\n")]) as server:
        done = run(server.environment(), tmp_path / "report.json")
        assert (1, "unexpected" in done.stdout) == (done.returncode, True)
        done = run(server.environment(), tmp_path / "none.json")
        assert (1, "none.json: No such file or directory\n") == (done.returncode, done.stderr)
    with Scripted(server=Authority().server()) as server:
        done = run(server.environment(), tmp_path / "report.json")
        assert (1, []) == (done.returncode, server.requests)
        assert "certificate is not trusted" in done.stderr


def test_w21_environment_of_a_plugin_has_no_effect(tmp_path):
    """W21: no key log is written, no proxy asked, no other CA trusted."""
    (tmp_path / "report.json").write_text("{}")
    keys = tmp_path / "keys.log"
    with socket.create_server(("127.0.0.1", 0)) as proxy, Scripted() as server:
        proxy.setblocking(False)
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        bent = {
            "SSLKEYLOGFILE": str(keys),
            "SSL_CERT_FILE": "/dev/null",
            "SSL_CERT_DIR": str(tmp_path),
            "REQUESTS_CA_BUNDLE": "/dev/null",
            "NO_PROXY": "",
            **dict.fromkeys(names, address),
        }
        done = run({**server.environment(), **bent}, tmp_path / "report.json")
        assert (0, "") == (done.returncode, done.stderr)
        assert 1 == len(server.heard(1, "results"))
        try:
            proxy.accept()[0].close()
            asked = True
        except BlockingIOError:
            asked = False
    assert (False, False) == (keys.exists(), asked)
