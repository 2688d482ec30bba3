"""`status-ctl connect`: the file it leaves, and what it does not leave."""

import json
import os
import ssl
from pathlib import Path

import pytest

from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.fakekube.certs import Authority
from tests.scripted_server import Say

RUN = run_status("running", entry("e2e"))


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    folder = tmp_path / "certs"
    folder.mkdir()
    authority = Authority(strict=True)
    authority.write(folder / "ca.pem")
    for name in ("server", "client"):
        authority.write_pair(folder / f"{name}.crt", folder / f"{name}.key", ("127.0.0.1",))
    return folder


@pytest.fixture
def server(certs: Path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certs / "server.crt", certs / "server.key")
    context.load_verify_locations(certs / "ca.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    with Scripted(context, status=Say(body=RUN)) as server:
        yield server


def files(certs: Path) -> list[str]:
    names = {"--ca": "ca.pem", "--cert": "client.crt", "--key": "client.key"}
    return [word for flag, name in names.items() for word in (flag, str(certs / name))]


@pytest.mark.parametrize("how", ["files", "folder", "environment"])
def test_what_it_leaves_is_found_by_the_others(home: Home, server, certs, how: str) -> None:
    """0600 in the state directory; its path is printed; no copy is left beside it."""
    words, environ = ["--url", server.url], dict[str, str]()
    if how == "files":
        words += files(certs)
    elif how == "folder":
        words += ["--certs", str(certs)]
    else:
        values = dict(zip(("CA", "CERT", "KEY"), files(certs)[1::2], strict=True))
        words, environ = [], {f"STATUS_CTL_{key}": value for key, value in values.items()}
        environ["STATUS_CTL_URL"] = server.url
    found = home.run("connect", *words, **environ)

    assert (0, f"{home.connection}\n", "") == found
    assert 0o600 == home.connection.stat().st_mode & 0o777
    assert ["connection.json"] == os.listdir(home.connection.parent)
    fields = json.loads(home.connection.read_text())
    assert {"host_address", "created_at", "ca_cert", "client_cert", "client_key"} == set(fields)
    assert (0, "e2e/global\n", "") == home.run("status", "-o", "name")


def test_another_place_and_a_second_time(home: Home, server, certs) -> None:
    """What was there is replaced as one, also where it was open to others."""
    path = home.folder / "sonobuoy.json"
    path.write_text("{}")
    path.chmod(0o666)
    words = ("connect", "--url", server.url, "--certs", str(certs), "-f", str(path))

    assert 0 == home.run(*words)[0]
    assert 0o600 == path.stat().st_mode & 0o777
    assert 0 == home.run("status", "--connection", str(path))[0]


def test_without_certificates(home: Home) -> None:
    """A port-forward needs none."""
    with Scripted(status=Say(body=RUN)) as server:
        assert 0 == home.run("connect", "--url", server.url)[0]
        assert (0, "e2e/global\n", "") == home.run("status", "-o", "name")


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Say(403, b"for others"), "for others (forbidden)"),
        (Say(404), "does not serve a run status\n"),
    ],
)
def test_a_connection_that_does_not_work_is_not_kept(home: Home, reply, words) -> None:
    """4; with --no-check it is."""
    with Scripted(status=reply) as server:
        code, out, err = home.run("connect", "--url", server.url)
        assert (4, "") == (code, out)
        assert f"not written: {server.url}" in err
        assert words in err
        assert not home.connection.exists()
        assert 0 == home.run("connect", "--url", server.url, "--no-check")[0]


def test_no_place_to_write_to(home: Home) -> None:
    """4, named."""
    (home.folder / "state").write_text("in the way")
    code, out, err = home.run("connect", "--url", "http://127.0.0.1:1", "--no-check")

    assert (4, "") == (code, out)
    assert f"cannot write {home.connection}" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "missing --url"),
        (["--url", "ftp://x"], "not a URL"),
        (["--url", "https://a..b:8081"], "not a URL like https://HOST:PORT: 'https://a..b:8081'"),
        (["--url", "https://a:port"], "not a URL"),
        (["--url", "https://[a/"], "not a URL"),
        (["--url", "http://x", "--ca", "/does/not/exist"], "cannot read /does/not/exist"),
        (["--url", "http://x", "--ca", "/dev/null", "--certs", "."], "--certs cannot be used with"),
        (["--url", "http://x", "--ca", "FILE"], "ca_cert: not a PEM certificate"),
        (["--url", "http://x", "--cert", "FILE"], "must be given together"),
        (["--connection", "FILE"], "missing --url"),
        (["--connection", "FILE", "--url", "http://x", "--certs", "."], "cannot be used with --ca"),
        (["--connection", "FILE", "--url", "http://x"], "is readable by others"),
        (["--connection", "absent.json", "--url", "http://x"], "absent.json does not exist"),
    ],
)
def test_usage(home: Home, words: list[str], said: str) -> None:
    """2, and nothing is written."""
    file = home.folder / "some.txt"
    file.write_text("text")
    code, out, err = home.run("connect", *(str(file) if one == "FILE" else one for one in words))

    assert (2, "") == (code, out)
    assert said in err
    assert not home.connection.exists()
