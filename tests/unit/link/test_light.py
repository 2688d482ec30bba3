"""`import reporter.link` is for other people's programs: it brings urllib3 and nothing else."""

import subprocess
import sys

HEAVY = (
    "aiohttp",
    "asyncio",
    "cryptography",
    "gzip",
    "jsonschema",
    "kubernetes",
    "prometheus_client",
    "pydantic",
    "requests",
    "structlog",
    "tarfile",
)
PROGRAM = """
import sys
import reporter.link
top = {name.split('.')[0] for name in sys.modules}
print(*sorted(top & set(sys.argv[1].split(','))))
third = {
    name.split('.')[0] for name, module in sys.modules.items()
    if 'site-packages' in (getattr(module, '__file__', None) or '')
}
print(*sorted(third))
"""


def test_link_imports_urllib3_and_nothing_else(monkeypatch):
    """No sidecar, no Kubernetes, no event loop; cryptography and archives only when needed."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # it would be loaded, too
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY)],
        capture_output=True,
        text=True,
        check=True,
    )
    heavy, third = done.stdout.split("\n")[:2]
    assert "" == heavy
    assert {"urllib3"} == {n for n in third.split() if not n.startswith(("_", "sitecustomize"))}
