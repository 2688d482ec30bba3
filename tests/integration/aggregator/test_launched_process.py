"""An aggregator that a run has launched, as a process."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from reporter.run.launch_file import encode_launch
from tests.blackbox.aggregator.process import site
from tests.fakekube import Answer, FakeKube
from tests.plugin_launches import definition, options_of


def test_a_run_that_was_launched_stays_when_it_is_over(tmp_path: Path) -> None:
    """4 when its node is drained: after 0 its Job would be complete, and the results gone."""
    launch = options_of(definition("restricted adapter")).launch
    with site(tmp_path) as here, FakeKube(role="admin") as fake:
        here.write_plan({"run": "empty", "plugins": []})
        (here.folder / "launch.json").write_text(encode_launch(launch))
        fake.store.create("ConfigMap", {"metadata": {"name": "empty"}})
        running = here.start(
            POD_NAMESPACE="default",
            LAUNCH="launch.json",
            EXPORT_CERTS="",
            SERVER=fake.server,
            CA_FILE=fake.ca_file,
            TOKEN_FILE=fake.token_file,
        ).ready()
        running.wait_status(lambda found: found["final"])
        assert (4, "") == running.end(signal.SIGTERM)


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_that_ends_with_its_job_removes_its_plugins_before(
    tmp_path: Path, killed: bool
) -> None:
    """Its verdict is there, also for who ends it, but nobody else would remove what is left."""
    launch = options_of(definition("restricted adapter")).launch
    (plugin,) = launch.definitions
    with site(tmp_path) as here, FakeKube(role="admin") as fake:
        here.write_plan({"run": "ends", "plugins": [{"name": plugin.name}]})
        (here.folder / "launch.json").write_text(encode_launch(launch))
        fake.store.create("ConfigMap", {"metadata": {"name": "ends"}})
        fake.fail(Answer(422), method="POST", path="/jobs", times=None)
        fake.fail(Answer(500), method="DELETE", path="/secrets", times=None)
        running = here.start(
            POD_NAMESPACE="default",
            LAUNCH="launch.json",
            EXPORT_CERTS="",
            EXIT_WHEN_FINISHED="true",
            SERVER=fake.server,
            CA_FILE=fake.ca_file,
            TOKEN_FILE=fake.token_file,
        ).ready()
        found = running.wait_status(lambda found: found["final"])
        assert ("failed", "removing") == (found["status"], found["launcher"]["step"])
        assert running.process.poll() is None
        if killed:
            assert (1, "") == running.end(signal.SIGTERM)
            return
        fake.clear_faults()
        assert 1 == running.process.wait(60)
    assert [] == fake.store.find("Secret", "default")
