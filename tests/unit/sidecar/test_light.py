"""What every sidecar has in memory from its start: each module is paid for by every Pod."""

import subprocess
import sys
from importlib.util import find_spec

RARE = {
    "reporter.aggregator",
    "reporter.kube.port_forward",
    "reporter.link",
    "reporter.sidecar.command_line",
    "reporter.sidecar.link",
    "reporter.sidecar.misconfigured",
    "reporter.sidecar.courier",
}
HEAVY = {"email_validator", "pydantic.networks", "pydantic.v1", "tomllib", "yaml"}
PROGRAM = """
import sys
import jsonschema, prometheus_client, pydantic_settings, structlog
import reporter.kube.client, reporter.common.lifecycle
libraries = set(sys.modules)
import reporter.sidecar.main
print(*sorted(name for name in sys.modules if name.split(".")[0] == "reporter"))
print(*sorted(n for n in set(sys.modules) - libraries if n.split(".")[0] != "reporter"))
print(*sorted(libraries))
"""


def test_a_sidecar_has_nothing_in_memory_for_what_is_rare(monkeypatch):
    """Bad settings, an aggregator, a question on the command line; the rare parts of others."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # it would be loaded, too
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    ours, others, libraries = (set(line.split()) for line in done.stdout.splitlines())

    assert all(map(find_spec, RARE))
    assert not ours & RARE
    assert set() == others
    assert not libraries & HEAVY
