"""A pass of the reaper over an API server, in this process."""

from reporter.reap.reaper import Reaper
from tests.fakekube import FakeKube, make_job, make_pod
from tests.kube_client import connect


def test_every_request_waits_for_its_turn() -> None:
    """Lists, nodes, what is written and Events: the rate is that of all of them."""
    turns: list[int] = []
    with FakeKube(role="admin") as fake:
        for name in ("gone", "cut-off"):
            job = make_job(name, uid=name)
            job["status"]["conditions"] = [{"type": "Failed", "status": "True"}]
            fake.create_job(job)
        fake.create_pod(make_pod(job, phase="Unknown"))
        api = connect(fake)
        reaper = Reaper(
            api, None, "", 0.0, lambda: turns.append(len(fake.requests())), lambda *_: None, False
        )
        found = reaper.run()
        api.close()

        assert 2 == found.reaped
        assert list(range(len(fake.requests()))) == turns
