"""What every sidecar has in memory from its start: each module is paid for by every Pod."""

import subprocess
import sys
from importlib.util import find_spec

RARE = {
    "reporter.kube.port_forward",
    "reporter.link",
    "reporter.sidecar.command_line",
    "reporter.sidecar.link",
    "reporter.sidecar.misconfigured",
    "reporter.sidecar.courier",
}
PROGRAM = """
import sys
import jsonschema, prometheus_client, pydantic_settings, structlog
import reporter.kube.client, reporter.common.lifecycle
libraries = set(sys.modules)
import reporter.sidecar.main
print(*sorted(name for name in sys.modules if name.split(".")[0] == "reporter"))
print(*sorted(n for n in set(sys.modules) - libraries if n.split(".")[0] != "reporter"))
"""


def loaded(monkeypatch) -> tuple[set[str], set[str]]:
    """Our modules, and those of others that its libraries would not bring."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # it would be loaded, too
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    ours, others = done.stdout.split("\n")[:2]
    return set(ours.split()), set(others.split())


def test_a_sidecar_loads_nothing_for_what_is_rare(monkeypatch):
    """Bad settings, an aggregator, a question on the command line."""
    assert all(map(find_spec, RARE))
    ours, _ = loaded(monkeypatch)
    assert not ours & RARE


def test_a_sidecar_loads_no_more_of_others_than_its_libraries_do(monkeypatch):
    """The standard library's rare parts are imported where they are needed."""
    _, others = loaded(monkeypatch)
    assert set() == others
