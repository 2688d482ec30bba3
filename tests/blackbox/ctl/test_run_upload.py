"""`status-ctl run --upload-url-file`, and `--exit`: the results are in a store when it is over."""

import base64
import os
import time

import pytest
import yaml

from tests.aggregators.served import ROOT
from tests.blackbox.ctl.cluster import plugin
from tests.blackbox.ctl.launched import Controllers, shown, standing
from tests.blackbox.ctl.scripted import Home
from tests.blackbox.ctl.starting import CREATED, START, fake, posts, start, there, write
from tests.fakekube import FakeKube

__all__ = ["fake", "there"]


class TestUploads:
    """`--upload-url-file`."""

    URL = "https://store.example.com/b/k?X-Amz-Signature=5ec2e7"

    def test_the_url_goes_into_a_secret_and_is_never_shown(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """It may stand alone in its line."""
        write(there, "url", f"{self.URL}\n")
        code, out, err = start(there, "--upload-url-file", "url")

        assert (0, "") == (code, out), err
        assert [*CREATED[:-2], "secrets", *CREATED[-2:]] == posts(fake)[1:]
        secret = fake.store.get("Secret", "status-reporter-first", "first-upload")
        assert self.URL == base64.b64decode(secret["data"]["url"]).decode()
        assert "the results will be uploaded to store.example.com before the run is over" in err
        assert "5ec2e7" not in err
        assert 0 == there.run("delete", "first", "--yes")[0]
        assert [] == standing(fake, "first")

    def test_the_url_may_come_from_standard_input(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """So it is in no file."""
        given = f"{self.URL}\n".encode()
        code, _, err = there.run(*START, "--upload-url-file", "-", given=given)

        assert 0 == code, err
        secret = fake.store.get("Secret", "status-reporter-first", "first-upload")
        assert self.URL == base64.b64decode(secret["data"]["url"]).decode()
        assert "the results will be uploaded to store.example.com before the run is over" in err

    @pytest.mark.parametrize(
        ("content", "more", "said"),
        [
            ("http://store/5ec2e7", (), "the upload URL does not begin with https://"),
            ("https://store/5ec2e7", ("--upload-ca", "absent"), "cannot read absent: No such file"),
            ("", ("-f", "-", "--upload-url-file", "-"), "only one of -f and --upload-url-file"),
        ],
    )
    def test_what_cannot_work_is_said_before_anything_exists(
        self, there: Home, fake: FakeKube, content: str, more: tuple[str, ...], said: str
    ) -> None:
        """Without a word of the URL."""
        write(there, "url", content)
        code, out, err = start(there, "--upload-url-file", "url", *more)

        assert (2, "") == (code, out)
        assert said in err
        assert "5ec2e7" not in err
        assert [] == posts(fake)

    def test_the_run_may_last_longer_than_the_url(self, there: Home, fake: FakeKube) -> None:
        """Six hours and the start timeout; with a shorter limit it is right."""
        seconds = int(time.time()) + 3600
        write(there, "url", f"{self.URL}&Signature=x&Expires={seconds}")
        code, _, err = start(there, "--dry-run", "--upload-url-file", "url")

        assert 2 == code
        assert "if every plugin uses its full timeout; use a URL that is valid longer" in err
        short = ("--plugin-timeout", "30m", "--upload-url-file", "url")
        assert 0 == start(there, "--dry-run", *short)[0]


class TestEnds:
    """`--exit`."""

    UPLOAD = ("--upload-url-file", "url", "--exit")
    REPLACED = "no volume: the results are lost when the aggregator's Pod is replaced"

    @pytest.fixture(autouse=True)
    def _url(self, there: Home) -> None:
        write(there, "url", "https://store/k?5ec2e7")

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            ((), REPLACED),
            (("--exit",), f"{REPLACED}, and when they cannot be uploaded"),
        ],
    )
    def test_without_a_volume_it_says_what_may_be_lost(
        self,
        there: Home,
        fake: FakeKube,
        controllers: Controllers,
        more: tuple[str, ...],
        said: str,
    ) -> None:
        """An aggregator that serves on keeps what could not be uploaded."""
        code, _, err = start(there, "--upload-url-file", "url", "--storage", "none", *more)

        assert 0 == code, err
        assert f"status-ctl: {said}" in err.splitlines()

    @pytest.mark.parametrize(
        ("result", "upload", "code"),
        [("passed", "uploaded", 0), ("failed", "uploaded", 1), ("passed", "failed", 1)],
    )
    def test_the_verdict_is_there_when_the_aggregator_is_gone(
        self,
        there: Home,
        fake: FakeKube,
        controllers: Controllers,
        result: str,
        upload: str,
        code: int,
    ) -> None:
        """On the Pod that it was; and `delete` removes Job and Pod too."""
        controllers.ended = code
        controllers.annotations = shown(
            "complete",
            plugin("quota", status="complete", verdict=result),
            result_status=result,
            upload={"host": "store", "state": upload, "error": "403"},
        )
        found, out, err = start(there, *self.UPLOAD, "--wait")

        assert code == found, err
        assert f"{'were' if upload == 'uploaded' else 'could not be'} uploaded to store" in out
        assert "retrieve" not in err
        sure = () if upload == "uploaded" else ("--yes",)
        deletes = " ".join(("status-ctl delete first", *sure))
        assert f"  delete it  {deletes}" == err.splitlines()[-1]
        assert "Job/first" in standing(fake, "first")
        assert "quota/global\n" == there.run("status", "first", "-o", "name")[1]
        assert code == there.run("wait", "first")[0]
        assert "run/first\n" == there.run("runs", "-A", "-o", "name")[1]
        assert len(sure) == there.run("delete", "first")[0]
        assert 0 == there.run("delete", "first", *sure)[0] or not sure
        assert [] == standing(fake, "first")

    def test_an_aggregator_that_ended_without_a_word(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Its Job will not try again, so nobody waits for ever; `delete` asks."""
        controllers.ended = 1
        code, _, err = start(there, *self.UPLOAD, "--wait")

        assert 4 == code
        assert (
            "the aggregator has ended (job/first: failed: the Pod has ended) without the status "
            "of the run"
        ) in err
        code, _, err = there.run("delete", "first")
        assert 1 == code
        assert "run first was not deleted: the aggregator has ended (job/first: failed: " in err
        assert "use --yes to delete it anyway" in err
        assert 0 == there.run("delete", "first", "--yes")[0]
        assert [] == standing(fake, "first")

    def test_an_aggregator_that_refuses_its_settings_is_not_too_late(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """1: the time limit of --timeout is far away."""
        controllers.ended = 2
        code, _, err = start(there, *self.UPLOAD, "--wait", "--timeout", "1m")

        assert 1 == code
        assert "status-ctl: the aggregator is not ready:\n  its settings are not valid\n" in err
        assert "timed out" not in err

    def test_the_example_is_what_is_printed(self, there: Home) -> None:
        """deploy/examples/run-as-job: the command that it names makes its file, all but the URL."""
        example = ROOT / "deploy" / "examples" / "run-as-job"
        named = (example / "kustomization.yaml").read_text().partition("#   status-ctl ")[2]
        words = named.partition("\napiVersion")[0].replace("\\\n#", "").split()
        code, out, err = there.run(*words)
        assert 0 == code, err
        documents = out.removeprefix("---\n").split("\n---\n")
        (secret,) = (each for each in documents if yaml.safe_load(each)["kind"] == "Secret")
        made = "---\n" + "\n---\n".join(each for each in documents if each != secret)
        path = example / "run.yaml"
        if os.environ.get("WRITE_EXAMPLES"):
            path.write_text(made)
        assert made == path.read_text(), "WRITE_EXAMPLES=1 writes it"
