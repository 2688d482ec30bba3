"""The Secrets of a run, made and removed by requests of their own."""

from __future__ import annotations

from pathlib import Path

from reporter.launch.job import secret_name
from reporter.launch.requests import Kube, Secrets
from reporter.pki.issuing import Pair
from reporter.run.launch_file import RunLocation
from reporter.run.plan import Plugin
from tests.fakekube import FakeKube
from tests.integration.launch.world import CHECK, NAMESPACE, RUN, World, on_loop
from tests.kube_client import connect


@on_loop
async def test_what_is_decided_twice_is_deleted_once(tmp_path: Path) -> None:
    """A decision takes time: the Secret that it removes may have gone meanwhile."""
    with FakeKube() as fake, World(fake, tmp_path).prepared():
        api = connect(fake)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": RUN, "uid": "1"}
        place = RunLocation(RUN, NAMESPACE, owner, "https://r1.default.svc:8080")
        kube = Kube(api, NAMESPACE)
        secrets = Secrets(kube, place, ca=b"CA", client=lambda _: Pair(b"c", b"k"))
        name = secret_name(RUN, Plugin("check"), CHECK)
        await secrets.provide(CHECK)
        await secrets.delete(name)
        assert set() == secrets.kept
        await secrets.delete(name)
        kube.close()
        api.close()
        assert ["POST", "DELETE"] == [entry.method for entry in fake.requests()]
