"""The results of a run uploaded to a real object store."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.aggregators.object_store import ObjectStore
from tests.aggregators.served import Aggregator, plan
from tests.bed.binaries import BedUnavailable, program
from tests.cluster.test_run import write
from tests.ports import free_port

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def _store_program() -> None:
    try:
        program("versitygw")
    except BedUnavailable as reason:
        pytest.skip(str(reason))


def secrets(url: str) -> tuple[str, ...]:
    """The parts of a URL that must not be seen."""
    return tuple(re.findall(r"X-Amz-(?:Signature|Credential)=([^&]+)", url))


def test_a_store_takes_what_was_presigned_for_it(tmp_path: Path) -> None:
    """Byte for byte; what it does not take it says why, and the tarball stays."""
    tarballs: dict[str, bytes] = {}
    with ObjectStore(tmp_path, "127.0.0.1", free_port()) as store:
        for name, state in (("good", "uploaded"), ("forged", "failed")):
            url = store.presigned(f"/results/{name}.tar.gz")
            if name == "forged":
                url = url[:-8] + "0" * 8
            flags = ("--upload-url-file", write(tmp_path, "url", url), "--upload-ca", str(store.ca))
            with Aggregator(tmp_path / name, plan("e2e", []), *flags) as run:
                run.worker("e2e").put("global/e2e", b"result" * 1_000_000)
                ended = run.wait_status(lambda status: status["final"])
                assert state == ended["upload"]["state"], ended
                tarballs[name] = run.ask("/results")
                for secret in secrets(url):
                    assert secret not in json.dumps([ended, run.events])
        assert "403 Forbidden (SignatureDoesNotMatch)" == ended["upload"]["error"]
        assert tarballs["good"] == store.object("good.tar.gz").read_bytes()
        assert not store.object("forged.tar.gz").exists()
