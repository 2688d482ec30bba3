"""`status-ctl retrieve`: whole, as announced, and unpacked without harm."""

import hashlib
import io
import json
import os
import ssl
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests import forked
from tests.blackbox.ctl.scripted import BOUND, STATUS_CTL, Home, Scripted, entry, run_status
from tests.scripted_server import Act, Cut, Say, Silence

NAME = "203001011200_sonobuoy_5e1f0c6a.tar.gz"
FOLDER = NAME.removesuffix(".tar.gz")


def packed(*members: tuple[str, bytes | str | None]) -> bytes:
    """A tarball of files; a text instead of bytes makes a link to it, None a directory."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as made:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type = tarfile.DIRTYPE
                made.addfile(info)
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                made.addfile(info)
            else:
                info.size = len(content)
                made.addfile(info, io.BytesIO(content))
    return archive.getvalue()


GOOD = packed(
    ("plugins", None), ("plugins/e2e/results/global/result", b"data"), ("meta/run.json", b"{}")
)


def serving(
    body: bytes = GOOD,
    *,
    announced: bytes | None = None,
    name: str = NAME,
    reply: Act | None = None,
    tls: ssl.SSLContext | None = None,
) -> Scripted:
    told = body if announced is None else announced
    digest = hashlib.sha256(told).hexdigest()
    tar = {"name": name, "created": "2030-01-01T12:00:00Z", "sha256": digest, "size": len(told)}
    document = run_status(
        "complete", entry("e2e", status="complete"), final=True, **{"tar-info": tar}
    )
    server = Scripted(tls, status=Say(body=document), results=reply or Say(body=body))
    server.answer("/results/retrieved", Say())
    return server


def confirmed(server: Scripted) -> list[object]:
    """What was said to be downloaded, in the requests that said so."""
    posts = [each for each in server.requests if each.method == "POST"]
    assert {"/results/retrieved"} >= {each.target for each in posts}
    return [json.loads(each.body)["sha256"] for each in posts]


def left(home: Home) -> list[str]:
    return sorted(name for name in os.listdir(home.folder) if name != "state")


class TestFile:
    """The tarball as a file."""

    @pytest.mark.parametrize(("more", "path"), [((), NAME), (("--extract",), FOLDER)])
    def test_of_a_snapshot_it_is_said_what_is_missing(self, home: Home, more, path: str) -> None:
        """On standard error: the path is all that is printed."""
        index = b'{"complete": false, "stopped": "out of time"}'
        with serving(packed(("resources/index.json", index))) as server:
            found = home.run("retrieve", "--url", server.url, *more)

        said = "status-ctl: the snapshot is not complete: out of time\n"
        assert (0, f"{path}\n", said) == found

    def test_under_its_own_name(self, home: Home) -> None:
        """The path is all that is printed."""
        with serving() as server:
            found = home.run("retrieve", "--url", server.url)

        assert (0, f"{NAME}\n", "") == found
        assert GOOD == (home.folder / NAME).read_bytes()
        assert [NAME] == left(home)
        assert [hashlib.sha256(GOOD).hexdigest()] == confirmed(server)

    @pytest.mark.parametrize("act", [Say(503, b"try again\n"), Cut(0)])
    def test_that_it_is_here_is_not_heard(self, home: Home, act: Act) -> None:
        """The results are here all the same; that `delete` will ask is said."""
        with serving() as server:
            server.answer("/results/retrieved", act)
            code, out, err = home.run("retrieve", "--url", server.url)

        assert (0, f"{NAME}\n") == (code, out)
        assert (
            "the download was not confirmed, so `status-ctl delete` will ask for confirmation"
            in err
        )

    def test_its_path_cannot_be_printed(self, home: Home) -> None:
        """One line. The results are here, but whoever asked for them may not know where."""
        with Path("/dev/full").open("wb") as full, serving() as server:
            done = forked.run(
                [STATUS_CTL[1], "retrieve", "--url", server.url],
                env=home.environ,
                cwd=home.folder,
                stdout=full,
                stderr=subprocess.PIPE,
                timeout=BOUND,
            )

        said = "status-ctl: cannot write the output: No space left on device\n"
        assert (4, said) == (done.returncode, done.stderr.decode())
        assert ([NAME], []) == (left(home), confirmed(server))

    def test_elsewhere(self, home: Home) -> None:
        """Folders on the way are made; a file that is there stays unless --force."""
        with serving() as server:
            words = ("retrieve", "--url", server.url, "-f", "new/r.tgz")
            assert (0, "new/r.tgz\n", "") == home.run(*words)
            code, out, err = home.run(*words)
            assert 0 == home.run(*words, "--force")[0]

        assert (2, "") == (code, out)
        assert "status-ctl: new/r.tgz already exists; use --force to overwrite it\n" == err

    @pytest.mark.parametrize("name", ["../../evil.tar.gz", "/etc/passwd", ".bashrc", "a\nb", "-x"])
    def test_a_name_that_leads_elsewhere(self, home: Home, name: str) -> None:
        """The aggregator does not choose where we write."""
        with serving(name=name) as server:
            code, out, _ = home.run("retrieve", "--url", server.url)

        assert (0, "results.tar.gz\n") == (code, out)
        assert ["results.tar.gz"] == left(home)

    def test_other_bytes_than_announced(self, home: Home) -> None:
        """1, and nothing is left."""
        with serving(announced=b"other") as server:
            code, out, err = home.run("retrieve", "--url", server.url)

        assert (1, "", [], []) == (code, out, left(home), confirmed(server))
        assert "SHA-256 mismatch" in err

    @pytest.mark.parametrize(
        ("reply", "words"),
        [
            (Say(403, b"for others"), "for others (forbidden)"),
            (Say(404, b"no"), "answered 404 for the results"),
            (Say(200, GOOD, length=len(GOOD) + 9), "cut off after"),
        ],
    )
    def test_no_file(self, home: Home, reply: Say, words: str) -> None:
        """4, and nothing is left."""
        with serving(reply=reply) as server:
            code, out, err = home.run("retrieve", "--url", server.url)

        assert (4, "", []) == (code, out, left(home))
        assert words in err

    @pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
    def test_a_download_that_is_cut_off_is_resumed(self, home: Home, ranges: bool) -> None:
        """From where it was cut, or from the start where the server cannot do that."""
        cut = len(GOOD) - 50
        rest = Say(200, GOOD)
        if ranges:
            said = {"Content-Range": f"bytes {cut}-{len(GOOD) - 1}/{len(GOOD)}"}
            rest = Say(206, GOOD[cut:], said)
        with serving() as server:
            server.answer("/results", Say(200, GOOD[:cut], length=len(GOOD)), rest)
            code, out, _ = home.run("retrieve", "--url", server.url)

        assert (0, f"{NAME}\n") == (code, out)
        assert GOOD == (home.folder / NAME).read_bytes()
        first, second = (each.headers for each in server.requests if each.target == "/results")
        assert (None, f"bytes={cut}-") == (first.get("range"), second.get("range"))

    def test_another_part_than_was_asked_for(self, home: Home) -> None:
        """4: nothing is put together from parts that do not belong together."""
        part = Say(206, GOOD[9:], {"Content-Range": f"bytes 9-{len(GOOD) - 1}/{len(GOOD)}"})
        with serving() as server:
            server.answer("/results", Say(200, GOOD[:50], length=len(GOOD)), part)
            code, _, err = home.run("retrieve", "--url", server.url)

        assert (4, []) == (code, left(home))
        assert "answered 206" in err

    def test_more_bytes_than_announced(self, home: Home) -> None:
        """1: no more of them are taken, however many would come."""
        with serving(reply=Say(body=GOOD + b"x" * 10**6, length=10**12)) as server:
            code, out, err = home.run("retrieve", "--url", server.url)

        assert (1, "", []) == (code, out, left(home))
        assert "SHA-256 mismatch: more bytes than announced" in err

    def test_into_a_directory(self, home: Home) -> None:
        """2, before anything is fetched: the name of the file is wanted."""
        (home.folder / "there").mkdir()
        with serving() as server:
            code, _, err = home.run("retrieve", "--url", server.url, "-f", "there", "--force")

        assert 2 == code
        assert "there is a directory" in err
        assert ["/status?summary=true"] == [each.target for each in server.requests]

    def test_a_run_that_goes_on(self, home: Home) -> None:
        """4: there are no results yet."""
        with Scripted(status=Say(body=run_status("running", entry("e2e")))) as server:
            code, _, err = home.run("retrieve", "--url", server.url)

        assert 4 == code
        assert "there are no results yet: the run is running" in err

    def test_a_run_whose_packing_was_given_up(self, home: Home) -> None:
        """4: there will be none."""
        document = run_status("failed", entry("e2e", status="complete"), final=True)
        with Scripted(status=Say(body=document)) as server:
            code, _, err = home.run("retrieve", "--url", server.url)

        assert 4 == code
        assert "there are no results: packing was given up" in err

    def test_data_about_it(self, home: Home) -> None:
        """With its version."""
        with serving() as server:
            _, out, _ = home.run("retrieve", "--url", server.url, "-o", "json")
        shown = json.loads(out)

        assert ("v1", "Results", NAME, None) == (
            shown["api_version"],
            shown["kind"],
            shown["path"],
            shown["files"],
        )

    def test_on_a_terminal(self, home: Home) -> None:
        """How much has come is seen, and taken away."""
        with serving() as server:
            code, out = home.terminal("retrieve", "--url", server.url)

        assert 0 == code
        assert "(100%)" in out
        assert out.endswith(f"\r\x1b[K{NAME}\n")

    def test_ctrl_c(self, home: Home) -> None:
        """130, and nothing is left."""
        with (
            serving(reply=Silence()) as server,
            home.started("retrieve", "--url", server.url) as process,
        ):
            server.heard(1, "results")
            process.send_signal(2)
            process.communicate(timeout=30)

        assert (130, []) == (process.returncode, left(home))


class TestExtract:
    """Unpacked."""

    @pytest.mark.parametrize(
        ("words", "folder"), [(["--extract"], FOLDER), (["-x", "here/it"], "here/it")]
    )
    def test_into_a_new_directory(self, home: Home, words: list[str], folder: str) -> None:
        """Files and directories; the tarball itself is not kept."""
        with serving() as server:
            found = home.run("retrieve", "--url", server.url, *words)

        assert (0, f"{folder}\n", "") == found
        assert [hashlib.sha256(GOOD).hexdigest()] == confirmed(server)
        root = home.folder / folder
        assert b"data" == (root / "plugins/e2e/results/global/result").read_bytes()
        assert ["meta", "plugins"] == sorted(os.listdir(root))
        assert [Path(folder).parts[0]] == left(home)

    def test_a_directory_that_is_there(self, home: Home) -> None:
        """2: nothing is mixed with what lies there."""
        (home.folder / "it").mkdir()
        with serving() as server:
            assert 2 == home.run("retrieve", "--url", server.url, "-x", "it", "--force")[0]

    @pytest.mark.parametrize(
        "body",
        [packed(("../evil", b"x")), GOOD[:-20], b"not a tarball"],
        ids=["parent", "cut off", "rubbish"],
    )
    def test_what_is_not_safe(self, home: Home, body: bytes) -> None:
        """1, and nothing at all is left, inside or outside."""
        with serving(body) as server:
            code, out, err = home.run("retrieve", "--url", server.url, "-x", "it")

        assert (1, "", []) == (code, out, left(home))
        assert "status-ctl: not unpacked: " in err
        assert not (home.folder.parent / "evil").exists()

    def test_what_is_neither_a_file_nor_a_directory(self, home: Home) -> None:
        """It is not created, and that is said."""
        with serving(packed(("a", b"x"), ("odd", "/etc"))) as server:
            code, out, err = home.run("retrieve", "--url", server.url, "-x", "it")

        assert (0, "it\n", ["a"]) == (code, out, os.listdir(home.folder / "it"))
        assert "odd: symbolic link to /etc" in err
        assert "not created" in err

    @pytest.mark.parametrize("words", [("-x", "file/it"), ("-f", "file/r.tgz")])
    def test_a_place_that_cannot_be_written(self, home: Home, words: tuple[str, ...]) -> None:
        """4, named."""
        (home.folder / "file").write_text("")
        with serving() as server:
            code, _, err = home.run("retrieve", "--url", server.url, *words)

        assert 4 == code
        assert "cannot write file" in err
