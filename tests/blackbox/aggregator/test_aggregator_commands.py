"""What the aggregator answers by hand, and what it does not start with."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from tests.blackbox.aggregator.process import BOUND, KEYS, PLAN, Aggregator, Site, site
from tests.blackbox.ctl.cluster import kubeconfig
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.starting import DEFINITION, START
from tests.fakekube import FakeKube


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    """A folder with the usual plan: e2e once, sysd on two nodes."""
    with site(tmp_path) as found:
        yield found


class TestRefusals:
    """What it does not start with."""

    def refusals(self, started: Aggregator) -> list[str]:
        """Wait for the end with exit code 2, and return what was wrong."""
        assert (2, "") == started.end()
        return [event["problem"] for event in started.said("Invalid setting")]

    def test_bad_settings(self, here):
        """All in one go."""
        problems = self.refusals(
            here.start(PLAN="", MAX_RESULT_BYTES="0", STATUS_SCOPE="all", STATUS_TLS_KEY="k")
        )

        assert ["PLAN", "STATUS_TLS_KEY", "STATUS_SCOPE", "MAX_RESULT_BYTES"] == [
            problem.split("=")[0].split()[0] for problem in problems
        ]

    @pytest.mark.parametrize(
        ("plan", "words"),
        [
            ({"run": "r", "plugins": [{"name": "a", "nodes": ["global"]}]}, "global is reserved"),
            ({"run": "r", "plugins": [{"name": "a"}, {"name": "a"}]}, "more than once"),
            ({"run": "r", "plugins": [{"name": "a", "nodes": ["n", "n"]}]}, "more than once"),
            ({"run": "r", "plugins": [{"name": "a", "nodes": [""]}]}, "not a node name"),
            ({"run": "r", "plugins": [{"name": "a/b"}]}, "not a name"),
            ({"plugins": []}, "run: "),
            ("{", "not JSON"),
            ("[" * 100_000, "not JSON"),
            ("[]", "not a JSON object"),
        ],
    )
    def test_bad_plan(self, here, plan, words):
        """A54: a key that collides or that nobody can meet is found at the start."""
        here.write_plan(plan)
        (problem,) = self.refusals(here.start())

        assert problem.startswith("plan.json: ")
        assert words in problem
        assert not (here.folder / "state").exists()

    def test_no_plan(self, here):
        """The file is named."""
        assert ["missing.json: No such file or directory"] == self.refusals(
            here.start(PLAN="missing.json")
        )
        # As a Job it is tried again: the ConfigMap may not be mounted yet.
        assert (4, "") == here.start(PLAN="missing.json", EXIT_WHEN_FINISHED="true").end()

    def test_nobody_gets_the_certificates(self, here):
        """Without an export no worker could ever connect."""
        (problem,) = self.refusals(here.start(EXPORT_CERTS=""))

        assert problem.startswith("EXPORT_CERTS and EXPORT_SECRETS are unset")
        # Nothing was kept: the next start is the first one still.
        here.start().ready()

    @pytest.mark.parametrize("lost", ["file", "directory"])
    def test_the_plan_is_gone_after_the_first_start(self, here, lost):
        """The run has it: a ConfigMap that was deleted does not end the run."""
        assert (0, "") == here.start().ready().end(signal.SIGTERM)
        (here.folder / "plan.json").unlink()
        if lost == "directory":
            (here.folder / "gone").touch()
        again = here.start(PLAN="plan.json" if lost == "file" else "gone/plan.json").ready()
        (said,) = again.said("Plan file is missing, the run continues with its stored plan")
        assert "plan.json" in said["problem"]
        assert "running" == again.status()["status"]
        assert (0, "") == again.end(signal.SIGTERM)

    def test_a_new_pod_without_the_config_map(self, here):
        """What is launched is in the state as well, before anything is launched.

        It ends with 4: with 0 it would be the last Pod of its Job.
        """
        home = Home(here.folder / "home")
        with FakeKube(role="admin") as fake:
            kubeconfig(home.folder / ".kube" / "config", fake)
            (home.folder / "quota.yaml").write_text(DEFINITION)
            code, manifests, err = home.run(*START, "--dry-run", "-o", "yaml")
            assert 0 == code, err
            found = yaml.safe_load_all(manifests)
            (made,) = (each for each in found if each["kind"] == "ConfigMap")
            for name, content in made["data"].items():
                (here.folder / name).write_text(content)
            variables = {
                "SERVER": fake.server,
                "CA_FILE": fake.ca_file,
                "TOKEN_FILE": fake.token_file,
                "LAUNCH": "launch.json",
                "POD_NAMESPACE": made["metadata"]["namespace"],
                "EXPORT_CERTS": "",
            }
            assert (4, "") == here.start(**variables).ready().end(signal.SIGTERM)
            for name in made["data"]:
                (here.folder / name).unlink()
            again = here.start(**variables).ready()
            assert again.said("Plan file is missing, the run continues with its stored plan")
            assert again.said("Launch file is missing, the run continues with its stored one")
            assert json.loads(made["data"]["plan.json"])["run"] == again.status()["run"]
            assert (4, "") == again.end(signal.SIGTERM)

    @pytest.mark.parametrize("broken", ["half-written", "empty", "a directory", "an invalid plan"])
    def test_the_plan_is_broken_after_the_first_start(self, here, broken):
        """Refused: it may be another run's. The run goes on once the file is removed or right."""
        assert (0, "") == here.start().ready().end(signal.SIGTERM)
        plan = here.folder / "plan.json"
        if broken == "a directory":
            plan.unlink()
            plan.mkdir()
        elif broken == "an invalid plan":
            here.write_plan({**PLAN, "plugins": [{"name": "a/b"}]})
        else:
            plan.write_text('{"run":' if broken == "half-written" else "")
        problem, hint = self.refusals(here.start())
        assert problem.startswith("plan.json: ")
        assert "plan.json: remove the file to continue run run-1 with its stored plan" == hint

        if broken == "a directory":
            plan.rmdir()
        else:
            here.write_plan(PLAN)
        again = here.start().ready()
        assert "running" == again.status()["status"]
        assert (0, "") == again.end(signal.SIGTERM)

    def test_a_plan_that_contradicts_the_run(self, here):
        """Refused, with what differs; the run is as it was."""
        assert (0, "") == here.start().ready().end(signal.SIGTERM)
        changed = {**PLAN, "plugins": [*PLAN["plugins"], {"name": "third"}]}
        here.write_plan(changed)
        second = here.start()
        assert (1, "") == second.end()
        (said,) = second.said("Aggregator cannot run")
        assert "WrongRun: run run-1 started with a different plan: third is new" == said["error"]
        here.write_plan(PLAN)
        assert (0, "") == here.start().ready().end(signal.SIGTERM)

    def test_another_run_in_the_state_directory(self, here):
        """Runs are never mixed."""
        assert 0 == here.start().ready().end(signal.SIGTERM)[0]
        here.write_plan(PLAN | {"run": "run-2"})
        second = here.start()

        assert (1, "") == second.end()
        assert "run-2" in second.said("Aggregator cannot run")[0]["error"]

    def test_two_at_once(self, here):
        """The second leaves the first alone."""
        first = here.start().ready()
        second = here.start()

        assert (1, "") == second.end()
        assert 1 == len(second.said("Aggregator cannot run"))
        assert 200 == first.upload(KEYS[0]).status

    def test_port_taken(self, here):
        """Exit 1 with the reason, and nothing half started."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            started = here.start(LISTEN=f"127.0.0.1:{taken.getsockname()[1]}")
            assert (1, "") == started.end()

        assert "Address already in use" in started.said("Aggregator cannot run")[0]["error"]

    def test_bad_certificate_of_the_status_listener(self, here):
        """A file that does not fit is named."""
        (here.folder / "cert.pem").write_text("x")
        started = here.start(STATUS_TLS_CERT="cert.pem", STATUS_TLS_KEY="cert.pem")

        assert (1, "") == started.end()
        assert "cert.pem" in started.said("Aggregator cannot run")[0]["error"]


class TestCommands:
    """What it answers by hand."""

    @pytest.mark.parametrize("arguments", [(), ("walk",), ("run", "--walk"), ("run", "x")])
    def test_wrong_usage(self, here, arguments):
        """Exit 2, usage on stderr."""
        done = here.run(*arguments)

        assert (2, "") == (done.returncode, done.stdout)
        assert done.stderr.startswith("usage: status-aggregator")

    def test_version(self, here):
        """One word."""
        done = here.run("--version")

        assert (0, "") == (done.returncode, done.stderr)
        assert re.fullmatch(r"\d+(\.\d+)+\S*\n", done.stdout)

    def test_check(self, here):
        """Judges settings and plan without touching anything."""
        paths = {"PLAN": "plan.json", "STATE": "state", "OUTPUT": "out"}
        done = here.run("--check", **paths)
        assert (0, "") == (done.returncode, done.stderr)
        assert "RETRY_WINDOW_SECONDS=120" in done.stdout.splitlines()
        done = here.run("run", "--check", "--retry-window-seconds", "0", **paths)
        assert (2, "") == (done.returncode, done.stdout)
        assert done.stderr.startswith('RETRY_WINDOW_SECONDS="0"')
        here.write_plan("[]")
        assert 2 == here.run("--check", **paths).returncode
        assert ["plan.json"] == os.listdir(here.folder)

    def test_certificates_of_the_status_listener(self, here):
        """`certs` makes them; with them run data is for its clients, probes are for everybody."""
        done = here.run("certs", "--for", "status", "--host", "127.0.0.1", "--out", "st")
        assert (0, "") == (done.returncode, done.stderr)
        running = here.start(
            STATUS_TLS_CERT="st/server.crt",
            STATUS_TLS_KEY="st/server.key",
            STATUS_TLS_CLIENT_CA="st/ca.pem",
        ).ready()
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.load_verify_locations(here.folder / "st" / "ca.pem")
        reader = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        reader.load_verify_locations(here.folder / "st" / "ca.pem")
        reader.load_cert_chain(here.folder / "st" / "client.crt", here.folder / "st" / "client.key")

        def status(context: ssl.SSLContext, path: str) -> int:
            address = ("127.0.0.1", running.status_port)
            with (
                socket.create_connection(address, BOUND) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                secure.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                return int(secure.recv(64).split()[1])

        assert (200, 403) == (status(nobody, "/livez"), status(nobody, "/status"))
        assert (200, 200) == (status(reader, "/livez"), status(reader, "/status"))

        # A new certificate counts from the next connection on, and the CA before no longer does.
        again = ("certs", "--for", "status", "--host", "127.0.0.1", "--out", "st")
        assert 2 == here.run(*again).returncode
        assert 0 == here.run(*again, "--force").returncode
        with pytest.raises(ssl.SSLCertVerificationError):
            status(reader, "/livez")
        reader = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        reader.load_verify_locations(here.folder / "st" / "ca.pem")
        reader.load_cert_chain(here.folder / "st" / "client.crt", here.folder / "st" / "client.key")
        assert 200 == status(reader, "/status")
        running.wait_log("The status listener's certificate was reloaded")

        file = here.folder / "st" / "connection.json"
        fields = json.loads(file.read_text())
        assert "https://127.0.0.1:8081" == fields["host_address"]
        fields["host_address"] = f"https://127.0.0.1:{running.status_port}"
        file.write_text(json.dumps(fields))
        launcher = Path(__file__).parents[3] / "cmd" / "status-ctl.py"
        shown = subprocess.run(
            [sys.executable, str(launcher), "status", "--connection", str(file), "-o", "name"],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(launcher.parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (0, "") == (shown.returncode, shown.stderr)
        assert "e2e" in shown.stdout

    def test_a_ca_that_is_there_is_not_replaced(self, here):
        """Whoever trusts it would be locked out: exit 2, everything as it was; --force replaces."""
        arguments = ("certs", "--for", "status", "--host", "127.0.0.1", "--out", "st")
        assert 0 == here.run(*arguments).returncode
        made = {path.name: path.read_bytes() for path in (here.folder / "st").iterdir()}
        done = here.run(*arguments)

        assert (2, "") == (done.returncode, done.stdout)
        assert "st/ca.pem already exists" in done.stderr
        assert made == {path.name: path.read_bytes() for path in (here.folder / "st").iterdir()}
        assert 0 == here.run(*arguments, "--force").returncode
        assert made["ca.pem"] != (here.folder / "st" / "ca.pem").read_bytes()

    @pytest.mark.parametrize(("options", "days"), [((), 30), (("--days", "2"), 2)])
    def test_how_long_certificates_are_valid(self, here, options, days):
        """A month where nothing else is said."""
        here.run("certs", "--for", "status", "--host", "127.0.0.1", "--out", "st", *options)

        for name in ("ca.pem", "server.crt", "client.crt"):
            made = x509.load_pem_x509_certificate((here.folder / "st" / name).read_bytes())
            left = made.not_valid_after_utc - datetime.now(UTC)
            assert days - 1 < left / timedelta(days=1) <= days

    @pytest.mark.parametrize(
        ("arguments", "code"),
        [
            (("--for", "status", "--host", "a b", "--out", "st"), 1),
            (("--for", "status", "--host", "h", "--out", "plan.json"), 1),
            (("--for", "workers", "--host", "h", "--out", "st"), 2),
            (("--for", "status", "--host", "h", "--out", "st", "--days", "0"), 2),
        ],
    )
    def test_certificates_that_cannot_be_made(self, here, arguments, code):
        """One line says why."""
        done = here.run("certs", *arguments)

        assert (code, "") == (done.returncode, done.stdout)
        assert "certs: " in done.stderr
