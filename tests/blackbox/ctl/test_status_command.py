"""`status-ctl status` by URL, from the outside: every form, every exit code, every trouble."""

import gzip
import json
import ssl
from collections.abc import Iterator

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from tests.blackbox.ctl.scripted import Home, Scripted, entry, run_status
from tests.fakekube.certs import Authority
from tests.scripted_server import Say, Silence

GZIP = {"Content-Encoding": "gzip"}
HALF = run_status(
    "running",
    entry("sysd", "node1", "complete", result_status="passed", bytes=2048),
    entry(
        "e2e",
        progress={"total": 80, "completed": 17, "failures": ["a", "b"], "msg": "on it"},
        **{"last-heartbeat": 200},
        stale=True,
    ),
)
FAILED = run_status(
    "failed",
    entry("sysd", "node1", "failed", error={"cause": "lost", "reason": "", "text": "gone away"}),
    entry("e2e"),
)


def judged(result: str) -> dict:
    """A run that is over; the check on node1 came to this result, the other passed."""
    why = {"reason": "DiskSlow", "message": "fsync takes 80 ms"}
    return run_status(
        "complete",
        entry("disk", "node1", "complete", result_status=result, **why),
        entry("disk", "node2", "complete", result_status="passed"),
        result_status=result or "unknown",
        final=True,
    )


TABLE = """\
running: 1 of 2 done (50%), run 5e1f0c6a

PLUGIN  NODE   STATUS    RESULT  PROGRESS          SEEN      DETAIL
sysd    node1  complete  passed  -                 -         -
e2e     -      running   -       17/80 (2 failed)  3m stale  on it
"""
WIDE = """\
running: 1 of 2 done (50%), run 5e1f0c6a

PLUGIN  NODE   STATUS    RESULT  PROGRESS          SEEN      TRIES  SIZE     RECEIVED  DETAIL
sysd    node1  complete  passed  -                 -         1      2.0 KiB  -         -
e2e     -      running   -       17/80 (2 failed)  3m stale  1      -        -         on it
"""


COUNTED = """\
running, 1 of 3 failed: 2 of 3 done (66%), run 5e1f0c6a

PLUGIN  NODE   STATUS    RESULT  TESTS            PROGRESS  SEEN  DETAIL
unit    node1  complete  failed  12 of 14 passed  -         -     -
unit    node2  complete  passed  -                -         -     -
unit    node3  running   -       -                -         3s    -
"""


@pytest.fixture
def server() -> Iterator[Scripted]:
    with Scripted(status=Say(body=HALF)) as server:
        yield server


class TestForms:
    """The same run in every form, in a pipe: data and nothing else."""

    @pytest.mark.parametrize(
        ("form", "expected"),
        [
            ([], TABLE),
            (["-o", "table"], TABLE),
            (["-o", "wide"], WIDE),
            (["-o", "name"], "sysd/node1\ne2e/global\n"),
        ],
    )
    def test_for_people(self, home: Home, server: Scripted, form: list[str], expected: str) -> None:
        """No colour, no bar, no remark."""
        assert (0, expected, "") == home.run("status", "--url", server.url, *form)

    def test_the_tests_of_results_that_have_several(self, home: Home) -> None:
        """Those that were skipped could not have passed."""
        counts = {"passed": 12, "failed": 1, "degraded": 1, "skipped": 5000}
        document = run_status(
            "running",
            entry("unit", "node1", "complete", result_status="failed", result_counts=counts),
            entry("unit", "node2", "complete", result_status="passed", result_counts={"passed": 1}),
            entry("unit", "node3"),
        )
        with Scripted(status=Say(body=document)) as server:
            assert COUNTED == home.run("status", "--url", server.url)[1]
            _, wide, _ = home.run("status", "--url", server.url, "-o", "wide")
        assert "12 of 14 passed" in wide

    def test_for_programs(self, home: Home, server: Scripted) -> None:
        """JSON and YAML hold the whole document with its version."""
        code, out, err = home.run("status", "--url", server.url, "-o", "json")
        assert (0, HALF, "") == (code, json.loads(out), err)
        assert "v1" == json.loads(out)["api_version"]
        code, out, err = home.run("status", "--url", server.url, "-o", "yaml")
        assert (0, HALF, "") == (code, yaml.safe_load(out), err)

    @pytest.mark.parametrize("form", ["table", "wide", "json", "yaml", "name"])
    def test_hostile_text_stays_text(self, home: Home, form: str) -> None:
        """No escape sequence of a plugin reaches the terminal, in no form."""
        evil = "\x1b[2J\x9b31m\u202eevil\x07\ud800"
        tar = dict.fromkeys(("name", "sha256", "created"), evil)
        hostile = run_status(
            "running",
            entry(evil, evil, evil, progress={"msg": evil}, received_at=evil, result_status=evil),
            run=evil,
            error=evil,
            **{"tar-info": tar},
        )
        with Scripted(status=Say(body=hostile)) as server:
            code, out, _ = home.run("status", "--url", server.url, "-o", form)

        assert 0 == code
        assert "evil" in out
        assert [] == [c for c in out if c != "\n" and not c.isprintable()]


class TestTerminal:
    """On a terminal: colours, and lines that fit."""

    def test_colours(self, home: Home, server: Scripted) -> None:
        """A status is coloured; nothing else is added."""
        code, out = home.terminal("status", "--url", server.url)

        assert 0 == code
        assert "\x1b[36mrunning\x1b[0m: 1 of 2 done" in out
        assert TABLE == out.replace("\x1b[36m", "").replace("\x1b[32m", "").replace("\x1b[0m", "")

    @pytest.mark.parametrize(
        ("flags", "environ"),
        [(["--no-color"], {}), ([], {"NO_COLOR": "1"}), ([], {"TERM": "dumb"})],
    )
    def test_no_colours(self, home: Home, server: Scripted, flags, environ) -> None:
        """By option, by NO_COLOR, or where the terminal cannot."""
        assert (0, TABLE) == home.terminal("status", "--url", server.url, *flags, **environ)

    def test_a_narrow_one(self, home: Home) -> None:
        """Long details are cut, so that every entry keeps one line; wide shows them whole."""
        long = entry("e2e", "节点一", progress={"msg": "很长" * 100})
        with Scripted(status=Say(body=run_status("running", long))) as server:
            _, out = home.terminal("status", "--url", server.url, "--no-color", columns=60)
            _, wide = home.terminal("status", "--url", server.url, "-o", "wide", columns=60)

        *_, header, row = out.splitlines()
        assert header.index("STATUS") == row.index("running") + 3  # three characters of two columns
        assert row.endswith("…")
        assert "很长" * 100 in wide

    @pytest.mark.parametrize("form", ["json", "yaml", "name"])
    def test_data_is_the_same_there(self, home: Home, server: Scripted, form: str) -> None:
        """What programs read has no colours even on a terminal."""
        _, piped, _ = home.run("status", "--url", server.url, "-o", form)

        assert (0, piped) == home.terminal("status", "--url", server.url, "-o", form)


class TestExitCodes:
    """What a script learns."""

    def test_a_failed_run(self, home: Home) -> None:
        """1, though it is not final; the cause is told."""
        with Scripted(status=Say(body=FAILED)) as server:
            code, out, err = home.run("status", "--url", server.url)

        assert (1, "") == (code, err)
        assert "failed, still running, 1 of 2 failed: 1 of 2 done (50%), may still change" in out
        assert "gone away" in out

    def test_a_failure_that_was_delivered(self, home: Home) -> None:
        """With `--delivery-only` that is all that was asked for; the cause is told."""
        with Scripted(status=Say(body=judged("failed"))) as server:
            code, out, _ = home.run("status", "--url", server.url, "--delivery-only")

        assert 0 == code
        assert "DiskSlow: fsync takes 80 ms" in out

    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (
                Say(403, b"run data is served only to local clients\n"),
                "run data is served only to local clients (forbidden)",
            ),
            (Say(403), "refused access to the run's status (forbidden)"),
            (Say(404, b"no"), "does not serve a run status\n"),
            (Say(503, b"no"), "answered 503 (unreachable)"),
            (Say(304), "answered 304 (unreachable)"),
            (Say(302, b"", {"Location": "http://127.0.0.1:1/"}), "answered 302 (unreachable)"),
            (Say(200, b"<html>"), "the response is not a run status (bad status)"),
            (Say(200, b"[" * 100_000), "the response is not a run status (bad status)"),
            (Say(200, {"status": "fine", "plugins": []}), "not a run status (bad status)"),
            (Say(200, {"status": "running"}), "not a run status (bad status)"),
            (Say(200, b"{}", length=100), "the response was truncated (unreachable)"),
            (Say(200, gzip.compress(b"{}")[:-1], GZIP), "was truncated (unreachable)"),
            (Say(200, gzip.compress(bytes(2**26 + 1)), GZIP), "is larger than 67108864 bytes"),
            (Say(200, b"{}", GZIP), "the response is not gzip"),
            (Say(200, {"status": "running", "counts": {}}), "not a run status (bad status)"),
            (Say(403, b"not\nfor\x1b[2Jyou"), "not for[2Jyou (forbidden)"),
        ],
    )
    def test_no_status(self, home: Home, reply: Say, words: str) -> None:
        """4, one line on standard error, nothing on standard output."""
        with Scripted(status=reply) as server:
            code, out, err = home.run("status", "--url", server.url)

        assert (4, "") == (code, out)
        assert words in err
        assert 1 == len(err.splitlines())

    @pytest.mark.parametrize("name", ["--ca", "--cert", "--key"])
    @pytest.mark.parametrize(
        ("content", "words"),
        [(None, "No such file or directory"), (b"\xff\xfe", "not PEM")],
    )
    def test_a_file_that_cannot_be_read(self, home: Home, name, content, words: str) -> None:
        """2: which one, and why."""
        bad = home.folder / "bad.pem"
        if content is not None:
            bad.write_bytes(content)
        named = {"--ca": "/dev/null", "--cert": "/dev/null", name: str(bad)}
        flags = [word for pair in named.items() for word in pair]
        code, _, err = home.run("status", "--url", "https://x", *flags)

        assert 2 == code
        assert f"error: cannot read {bad}: {words}\n" in err

    @pytest.mark.parametrize(
        ("document", "code", "headline"),
        [
            (
                judged("failed"),
                1,
                "\x1b[31mcomplete, 1 of 2 failed\x1b[0m: 2 of 2 done (100%), final",
            ),
            (judged("unknown"), 1, "\x1b[33mcomplete, 1 of 2 unknown\x1b[0m: 2 of 2 done"),
            (
                run_status("complete", final=True),
                1,
                "\x1b[33mcomplete, no results expected\x1b[0m: 0 of 0 done",
            ),
        ],
        ids=["failed", "neither", "no plugins"],
    )
    def test_the_headline_on_a_terminal(
        self, home: Home, document: dict, code: int, headline: str
    ) -> None:
        """Red where a check failed, yellow where nobody can say that all is well."""
        with Scripted(status=Say(body=document)) as server:
            found, out = home.terminal("status", "--url", server.url)

        assert code == found
        assert out.startswith(headline)

    def test_a_status_of_another_version(self, home: Home) -> None:
        """It is shown as far as it is understood, and that is said."""
        other = {**HALF, "api_version": "v2\x1b[2J"}
        with Scripted(status=Say(body=other)) as server:
            code, out, err = home.run("status", "--url", server.url)

        assert (0, TABLE) == (code, out)
        assert err.endswith(": status version v2[2J, but this command supports v1\n")

    def test_nobody_listens(self, home: Home) -> None:
        """4: unreachable."""
        code, out, err = home.run("status", "--url", "http://127.0.0.1:1")

        assert (4, "") == (code, out)
        assert "status-ctl: http://127.0.0.1:1: Connection refused (unreachable)\n" == err

    @pytest.mark.parametrize(
        "wrong",
        [
            ["--url", "ftp://x"],
            ["--url", "http://"],
            ["--url", "http://x:y"],
            ["--url", "https://a..b:8081"],
            ["--url", "https://[a/"],
            ["--url", "http://x", "-n", "y"],
            ["--connection", "x", "--url", "http://y"],
            ["--url", "https://x", "--ca", "/does/not/exist"],
            ["--url", "https://x", "--ca", "/dev/null", "--cert", "/dev/null"],
            ["--url", "https://x", "--key", "/dev/null"],
            ["--url", "http://x/a b"],
            ["--ca", "/dev/null"],
            ["--connection", "x", "--cert", "/dev/null"],
            ["-n", "x", "--key", "/dev/null"],
            ["--max-age", "soon"],
            ["-o", "xml"],
            ["Not_A_Name"],
            ["job/one"],
            ["one", "surplus"],
            ["one", "--url", "http://127.0.0.1:1"],
        ],
        ids=" ".join,
    )
    def test_usage(self, home: Home, wrong: list[str]) -> None:
        """2, before anybody is asked."""
        code, out, err = home.run("status", *wrong)

        assert (2, "") == (code, out)
        assert "error: " in err

    @pytest.mark.parametrize("place", [0, 1, 3])
    def test_help_anywhere(self, home: Home, place: int) -> None:
        """`-h` wins over whatever else is wrong there."""
        words = ["status", "--bogus", "-o", "xml"]
        words.insert(place + 1, "-h")
        code, out, err = home.run(*words)

        assert (0, "") == (code, err)
        assert "exit codes:" in out

    def test_ctrl_c(self, home: Home) -> None:
        """130 at once, with an aggregator that does not answer."""
        with (
            Scripted(status=Silence()) as server,
            home.started("status", "--url", server.url) as process,
        ):
            server.heard(1)
            process.send_signal(2)
            out, err = process.communicate(timeout=30)

        assert (130, b"", b"") == (process.returncode, out, err)

    def test_nobody_reads(self, home: Home, server: Scripted) -> None:
        """As in `status-ctl status | head -0`: no traceback."""
        with home.started("status", "--url", server.url) as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            assert (141, b"") == (process.wait(30), process.stderr.read())


class TestTls:
    """Whom the command trusts, and what it shows."""

    @pytest.fixture
    def authority(self, tmp_path) -> Authority:
        made = Authority(strict=True)
        made.write_pair(tmp_path / "s.crt", tmp_path / "s.key", ("127.0.0.1",))
        made.write_pair(tmp_path / "c.crt", tmp_path / "c.key", ("127.0.0.1",))
        made.write(tmp_path / "ca.pem")
        return made

    @pytest.fixture
    def secured(self, authority, tmp_path) -> Iterator[Scripted]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "s.crt", tmp_path / "s.key")
        with Scripted(context, status=Say(body=HALF)) as server:
            yield server

    def test_an_unknown_authority(self, home: Home, secured: Scripted) -> None:
        """4: it says why, and asks nothing."""
        code, out, err = home.run("status", "--url", secured.url)

        assert (4, "") == (code, out)
        assert "certificate not trusted: " in err
        assert [] == secured.requests

    def test_a_key_with_a_pass_phrase(self, home: Home, secured: Scripted, tmp_path) -> None:
        """2, and nobody is asked for it: a script would hang."""
        key = load_pem_private_key((tmp_path / "c.key").read_bytes(), None)
        secret = BestAvailableEncryption(b"secret")
        locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret)
        (tmp_path / "c.key").write_bytes(locked)
        flags = ("--cert", str(tmp_path / "c.crt"), "--key", str(tmp_path / "c.key"))
        code, out = home.terminal("status", "--url", secured.url, *flags)

        assert 2 == code
        assert "the key is encrypted" in out

    def test_plain_http_to_a_tls_port(self, home: Home, secured: Scripted) -> None:
        """4, and no traceback."""
        code, out, err = home.run("status", "--url", secured.url.replace("https", "http"))

        assert (4, "") == (code, out)
        assert 1 == len(err.splitlines())


def test_no_colours_where_authors_look(home: Home) -> None:
    """`validate` and `try` know `--no-color`, too."""
    (home.folder / "r.json").write_text("{}")
    for words in (["validate", "r.json"], ["try", "--", "true"]):
        flagged = [words[0], "--no-color", *words[1:]]
        assert "\x1b[3" in home.terminal(*words)[1]
        assert "\x1b[3" not in home.terminal(*flagged)[1]
