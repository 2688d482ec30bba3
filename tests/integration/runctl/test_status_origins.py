"""Where `status-ctl status` finds a run: the connection file, the cluster, or nowhere."""

import argparse
import json
import os
import shutil
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reporter.runctl import origin
from reporter.runctl.origin import read_connection
from reporter.runctl.server import Address
from tests.blackbox.ctl.cluster import add_aggregator, kubeconfig, plugin
from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.fakekube import Answer, FakeKube
from tests.fakekube.certs import Authority
from tests.scripted_server import Say

RUN = run_status("running", entry("e2e"))


class Site:
    """A status listener that wants a certificate of its CA, and the file that leads to it."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(strict=True)
        self.pem = dict[str, str]()
        self.authority.write(folder / "ca.pem")
        for name in ("server", "client"):
            self.authority.write_pair(
                folder / f"{name}.crt", folder / f"{name}.key", ("127.0.0.1",)
            )
        self.folder = folder
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.context.load_verify_locations(folder / "ca.pem")
        self.context.verify_mode = ssl.CERT_REQUIRED

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def write(self, path: Path, address: str, *, mode: int = 0o600, **changed: object) -> Path:
        fields = {
            "host_address": address,
            "created_at": datetime.now(UTC).isoformat(),
            "ca_cert": self.text("ca.pem"),
            "client_cert": self.text("client.crt"),
            "client_key": self.text("client.key"),
            **changed,
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(fields))
        path.chmod(mode)
        return path


@pytest.fixture
def site(tmp_path: Path) -> Site:
    folder = tmp_path / "certificates"
    folder.mkdir()
    return Site(folder)


@pytest.fixture
def server(site: Site) -> Iterator[Scripted]:
    with Scripted(site.context, status=Say(body=RUN)) as server:
        yield server


class TestConnectionFile:
    """A file with the address of the status listener and the certificates for it."""

    @pytest.mark.parametrize("form", ["url", "host and port"])
    def test_it_is_found_in_the_state_directory(
        self, home: Home, site: Site, server: Scripted, form: str
    ) -> None:
        """With its CA, certificate and key, nothing else has to be said."""
        address = server.url if form == "url" else f"127.0.0.1:{server.port}"
        site.write(home.connection, address)
        code, out, err = home.run("status", "-o", "name")

        assert (0, "e2e/global\n", "") == (code, out, err)

    def test_another_one_can_be_named(self, home: Home, site: Site, server: Scripted) -> None:
        """Then the usual one is not looked at."""
        site.write(home.connection, server.url, mode=0o644)
        other = site.write(home.folder / "other.json", server.url)

        assert (0, "e2e/global\n", "") == home.run(
            "status", "-o", "name", "--connection", str(other)
        )

    @pytest.mark.parametrize(
        ("changed", "words"),
        [
            ({"created_at": "2020-01-01T00:00:00Z"}, "is too old: created "),
            ({"host_address": "ftp://x"}, "is invalid: not a URL"),
            ({"client_key": "rubbish"}, "is invalid: the certificates cannot be used"),
            ({"ca_cert": "rubbish"}, "is invalid: ca_cert: not a PEM certificate"),
        ],
    )
    def test_one_that_is_refused(
        self, home: Home, site: Site, server: Scripted, changed: dict[str, object], words: str
    ) -> None:
        """4, and what is wrong with it, by name."""
        path = site.write(home.folder / "c.json", server.url, **changed)
        code, out, err = home.run("status", "--connection", str(path))

        assert (4, "") == (code, out)
        assert f"status-ctl: {path} {words}" in err
        assert [] == server.requests

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
    def test_one_that_others_may_read(self, home, site, server, mode: int) -> None:
        """The key may be known to them."""
        path = site.write(home.folder / "c.json", server.url, mode=mode)
        code, _, err = home.run("status", "--connection", str(path))

        assert 4 == code
        assert f"{path} is readable by others (mode {mode:04o})" in err

    def test_one_of_another_user(
        self, home: Home, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Anybody could have planted it."""
        path = site.write(home.folder / "c.json", "https://127.0.0.1:1")
        us = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: us + 1)
        with pytest.raises(ValueError, match="belongs to another user"):
            read_connection(path)

    @pytest.mark.parametrize(
        ("kind", "words"),
        [
            ("absent", "does not exist"),
            ("link", "cannot be read: a symbolic link"),
            ("fifo", "cannot be read: not a plain file"),
            ("directory", "cannot be read: not a plain file"),
        ],
    )
    def test_one_that_is_no_file(self, home, site, server, kind: str, words: str) -> None:
        """No hang and no other file's content."""
        path = home.folder / "c.json"
        match kind:
            case "link":
                path.symlink_to(site.write(home.folder / "real.json", server.url))
            case "fifo":
                os.mkfifo(path, 0o600)
            case "directory":
                path.mkdir()
        code, _, err = home.run("status", "--connection", str(path))

        assert 4 == code
        assert f"{path} {words}" in err

    def test_the_age_that_is_accepted_can_be_set(self, home, site, server) -> None:
        """`--max-age`; 48 hours otherwise."""
        old = (datetime.now(UTC) - timedelta(hours=49)).isoformat()
        site.write(home.connection, server.url, created_at=old)

        assert 4 == home.run("status")[0]
        assert 0 == home.run("status", "--max-age", "50h")[0]

    @pytest.mark.parametrize("command", ["status", "wait"])
    def test_a_certificate_that_the_server_refuses(self, home, site, server, command: str) -> None:
        """4: who asks again shows the same one."""
        other = Authority(strict=True)
        other.write_pair(site.folder / "other.crt", site.folder / "other.key", ("127.0.0.1",))
        pair = {"client_cert": site.text("other.crt"), "client_key": site.text("other.key")}
        site.write(home.connection, server.url, **pair)
        code, out, err = home.run(command)

        assert (4, "") == (code, out)
        assert "the server rejected our certificate" in err
        assert "(forbidden)" in err

    def test_a_refused_one_is_told_and_the_cluster_is_asked(
        self, at_home: Home, fake: FakeKube, site: Site
    ) -> None:
        """A file that somebody planted must not be in the way for ever."""
        add_aggregator(fake, "running", plugin("e2e"))
        path = site.write(at_home.connection, "https://127.0.0.1:1", mode=0o644)
        code, out, err = at_home.run("status", "-o", "name")

        assert (0, "e2e/global\n") == (code, out)
        assert f"status-ctl: {path} is readable by others" in err

    def test_the_traditional_place(self, home, site, server) -> None:
        """Second to our own place, by the same rules."""
        parser = argparse.ArgumentParser()
        origin.arguments(parser)
        options = parser.parse_args([])
        traditional = site.write(home.folder / "sonobuoy.json", server.url)
        chosen = origin.choose(options, home.environ, traditional)

        assert server.url == chosen.name
        assert RUN == chosen.look().document
        site.write(home.connection, "https://127.0.0.1:1")
        assert "https://127.0.0.1:1" == origin.choose(options, home.environ, traditional).name
        assert isinstance(chosen, origin.ByHttp)
        chosen.server.close()


@pytest.mark.parametrize("how", ["options", "environment"])
def test_a_url_with_certificates(home: Home, site: Site, server: Scripted, how: str) -> None:
    names = {"ca": "ca.pem", "cert": "client.crt", "key": "client.key"}
    given = {"url": server.url} | {key: str(site.folder / name) for key, name in names.items()}
    words = [word for key, value in given.items() for word in (f"--{key}", value)]
    environ = {f"STATUS_CTL_{key.upper()}": value for key, value in given.items()}
    if how == "options":
        found = home.run("status", "-o", "name", *words)
    else:
        found = home.run("status", "-o", "name", **environ)

    assert (0, "e2e/global\n", "") == found


def test_the_key_that_is_named_wins(home: Home, site: Site, server: Scripted) -> None:
    """Over an older one in the certificate's file; neither is seen where an address is printed."""
    both = site.folder / "both.pem"
    both.write_text(site.text("client.crt") + site.text("server.key"))
    given = {"url": server.url, "ca": site.folder / "ca.pem", "cert": both}
    given |= {"key": site.folder / "client.key"}
    words = [word for key, value in given.items() for word in (f"--{key}", str(value))]

    assert (0, "e2e/global\n", "") == home.run("status", "-o", "name", *words)
    key = site.text("client.key")
    assert "PRIVATE" not in repr(Address(server.url, certificate=key, key=key))


class TestCluster:
    """Through the annotations on the aggregator's Pod."""

    def test_the_annotations_make_the_same_table(self, at_home: Home, fake: FakeKube) -> None:
        """An early failure stands in our annotation only; ours is believed."""
        ours = {"status": "failed", "percent_complete": 0.5, "final": False, "revision": 7}
        add_aggregator(
            fake,
            "running",
            plugin("sysd", "node1", "failed", "timeout"),
            plugin("e2e"),
            run=ours,
        )
        code, out, err = at_home.run("status")

        assert (1, "") == (code, err)
        assert "failed, still running, 1 of 2 failed: 1 of 2 done (50%), may still change" in out
        assert ["sysd", "node1", "timed_out", "timeout"] == out.splitlines()[3].split()[:4]

    @pytest.mark.parametrize(
        ("where", "found"),
        [
            (["-n", "one"], "in-one/global\n"),
            (["--namespace", "two"], "in-two/global\n"),
            (["--context", "here", "-n", "two"], "in-two/global\n"),
            ([], "in-two/global\n"),
        ],
    )
    def test_the_namespace(self, home: Home, fake: FakeKube, where, found) -> None:
        """The named one, else that of the context."""
        kubeconfig(home.folder / ".kube" / "config", fake, namespace="two")
        for name in ("one", "two"):
            add_aggregator(fake, "running", plugin(f"in-{name}"), namespace=name)

        assert (0, found, "") == home.run("status", "-o", "name", *where)

    def test_all_namespaces(self, at_home: Home, fake: FakeKube) -> None:
        """Whichever has an aggregator; with several the first, and that is told."""
        code, _, err = at_home.run("status", "-A")
        assert 4 == code
        assert "no aggregator found in any namespace\n" in err
        add_aggregator(fake, "running", plugin("in-one"), namespace="one")
        assert (0, "in-one/global\n", "") == at_home.run("status", "-A", "-o", "name")
        add_aggregator(fake, "running", plugin("in-two"), namespace="two")
        code, out, err = at_home.run("status", "-A", "-o", "name")
        assert (0, "in-one/global\n") == (code, out)
        assert (
            "found 2 aggregators: one/status-aggregator-0, two/status-aggregator-0;"
            " showing one/status-aggregator-0; choose another with -n NAMESPACE\n"
        ) == err.partition(": ")[2]

    @pytest.mark.parametrize("how", ["option", "variable", "several"])
    def test_the_kubeconfig(self, home: Home, fake: FakeKube, how: str) -> None:
        """Where it was said."""
        add_aggregator(fake, "running", plugin("e2e"))
        path = str(kubeconfig(home.folder / "my.yaml", fake))
        words = ["--kubeconfig", path] if how == "option" else []
        environ = {"option": {}, "variable": {"KUBECONFIG": path}}.get(
            how, {"KUBECONFIG": f"/does/not/exist:{path}"}
        )

        assert (0, "e2e/global\n", "") == home.run("status", "-o", "name", *words, **environ)

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (None, "no kubeconfig at"),
            ("", "kubeconfig"),
            ("{", "kubeconfig"),
            ("[]", "kubeconfig"),
            ("apiVersion: v1", "kubeconfig"),
            ("current-context: x\ncontexts: []\nclusters: []", "kubeconfig"),
        ],
    )
    def test_a_broken_kubeconfig(self, home: Home, content: str | None, words: str) -> None:
        """4, one line."""
        path = home.folder / "my.yaml"
        if content is not None:
            path.write_text(content)
        code, out, err = home.run("status", "--kubeconfig", str(path))

        assert (4, "") == (code, out)
        assert words in err
        assert 1 == len(err.splitlines())

    def test_an_unknown_context(self, at_home: Home) -> None:
        """4: it is named."""
        code, _, err = at_home.run("status", "--context", "elsewhere")

        assert 4 == code
        assert "elsewhere" in err

    def test_a_credential_program(self, home: Home, fake: FakeKube) -> None:
        """As clouds use them: the kubeconfig names a program that prints the token."""
        add_aggregator(fake, "running", plugin("e2e"))
        given = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "kind": "ExecCredential",
            "status": {"token": fake.read_token()},
        }
        exec_ = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": shutil.which("echo"),
            "args": [json.dumps(given)],
            "interactiveMode": "Never",
        }
        kubeconfig(home.folder / ".kube" / "config", fake, exec=exec_)

        assert (0, "e2e/global\n", "") == home.run("status", "-o", "name")

    @pytest.mark.parametrize(
        ("where", "words"),
        [
            ((), "no aggregator found in namespace 'default'\n"),
            (("-n", "other"), "has no annotation sonobuoy.hept.io/status (no status)\n"),
            (("--context", "nowhere"), "(unreachable)\n"),
        ],
    )
    def test_no_status(
        self, at_home: Home, fake: FakeKube, where: tuple[str, ...], words: str
    ) -> None:
        """4, with a word of which sort it is, unless the text says that."""
        add_aggregator(fake, namespace="other")
        fake.update_pod(
            "status-aggregator-0",
            lambda pod: pod["metadata"].update(annotations={}),
            namespace="other",
        )
        code, out, err = at_home.run("status", *where)

        assert (4, "") == (code, out)
        assert words in err

    def test_the_api_servers_own_words(self, at_home: Home, fake: FakeKube) -> None:
        """A wrong path, as through a proxy, is no namespace without an aggregator."""
        fake.fail(Answer(404), path="/pods", times=None)
        code, _, err = at_home.run("status", "-n", "default")

        assert 4 == code
        assert "status-ctl: GET /api/v1/namespaces/default/pods: 404" in err

    def test_a_user_without_a_home(self, home: Home) -> None:
        """As an arbitrary one in a container: nothing is found there."""
        homeless = {"HOME": "~", "XDG_STATE_HOME": ""}
        code, _, err = home.run("status", **homeless)
        assert 4 == code
        assert "status-ctl: no run given" in err

    def test_nothing_anywhere(self, home: Home) -> None:
        """4, and the ways to get there."""
        code, out, err = home.run("status")

        assert (4, "") == (code, out)
        for words in ("RUN", "-n", "--url", "--connection"):
            assert f"status-ctl status {words}" in err
