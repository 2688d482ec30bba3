"""An aggregator that a run has launched, as a process."""

from __future__ import annotations

import signal
from pathlib import Path

from reporter.run.launch_file import encode_launch
from tests.blackbox.aggregator.process import site
from tests.fakekube import FakeKube
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
