"""L16: what is found of an upload that cannot work before anything has started."""

from __future__ import annotations

from pathlib import Path

import pytest

from reporter.aggregator.tarball.upload import UploadFailed
from reporter.errors import SettingsError
from tests.aggregators.bucket import SIGNATURE, Bucket
from tests.certificates import SERVER, Authority
from tests.integration.aggregator.tarball.scene import NOW, World


class TestBeforeTheRun:
    """What is found before anything has started."""

    def test_a_store_that_is_there(self, world: World):
        """A TLS connection is made, and nothing is sent."""
        world.upload().check(NOW, 3600.0)

        with world.bucket.changed:
            assert world.bucket.changed.wait_for(lambda: world.bucket.handshakes == 1, 60.0)
        assert not world.bucket.requests

    def test_a_host_that_is_away(self, tmp_path: Path):
        """It is tried for a while, and then said."""
        with Bucket(tmp_path, listening=False) as bucket:
            with pytest.raises(UploadFailed) as raised:
                World(tmp_path, bucket).upload().check(NOW, 60.0)
            said = f"cannot connect to the upload host {bucket.host}: Connection refused"
        assert said == str(raised.value)

    def test_a_certificate_that_is_not_trusted(self, world: World):
        """That is said at once: it is not tried again."""
        stranger = Authority("somebody else")
        world.bucket.present(stranger.issue("store", ("127.0.0.1",), purpose=SERVER))
        world.options["reached_within"] = 1e9
        with pytest.raises(UploadFailed, match="its certificate is not accepted"):
            world.upload().check(NOW, 60.0)

    @pytest.mark.parametrize(
        ("query", "words"),
        [
            ("Expires=1767268900", "the upload URL expires at 2026-01-01T12:01:40Z, but the run"),
            ("Expires=1767268700", "the upload URL expired at"),
        ],
    )
    def test_a_url_that_expires_too_soon(self, query: str, words: str, world: World):
        """Nothing is even connected."""
        world.bucket.point(f"{query}&Signature={SIGNATURE}")
        with pytest.raises(SettingsError) as raised:
            world.upload().check(NOW, 3600.0)
        (problem,) = raised.value.problems
        assert problem.startswith(f"UPLOAD_URL_FILE: {words}")
        assert 0 == world.bucket.connections

    @pytest.mark.parametrize(
        ("url", "words"),
        [("http://x/secret", "does not begin with https://"), (None, "No such file or directory")],
    )
    def test_what_is_no_url(self, url: str | None, words: str, world: World):
        """The file is named, its content is not."""
        world.bucket.url_file.unlink()
        if url is not None:
            world.bucket.url_file.write_text(url)
        with pytest.raises(SettingsError) as raised:
            world.upload().check(NOW, 3600.0)
        (problem,) = raised.value.problems
        assert words in problem
        assert "secret" not in problem

    @pytest.mark.parametrize("content", [None, "no certificate"])
    def test_a_ca_that_cannot_be_used(self, content: str | None, world: World):
        """The setting and the file are named."""
        world.bucket.ca.unlink()
        if content is not None:
            world.bucket.ca.write_text(content)
        with pytest.raises(UploadFailed) as raised:
            world.upload().check(NOW, 60.0)
        why = "No such file or directory" if content is None else "not PEM"
        assert str(raised.value).endswith(f": UPLOAD_CA: {world.bucket.ca}: {why}")
