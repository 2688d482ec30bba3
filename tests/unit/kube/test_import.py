"""What importing `reporter.kube.api` costs, in a process of its own."""

import json
import subprocess
import sys

import pytest

FORBIDDEN = (
    "kubernetes.client.api.",
    "kubernetes.client.models.",
    "kubernetes.aio",
    "kubernetes.watch",
    "kubernetes.dynamic",
    "kubernetes.stream",
    "kubernetes.informer",
    "kubernetes.config.kube_config",
    "requests",
    "oauthlib",
    "yaml",
    "websocket",
    "asyncio",
)


def in_a_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_only_the_lean_part_of_the_client_is_imported() -> None:
    """Models, generated APIs, watches and what they bring along cost 7 to 40 MB."""
    code = "import json, sys, reporter.kube.api; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(in_a_process(code))

    assert "kubernetes.client.api_client" in loaded
    assert [] == [name for name in loaded if name.startswith(FORBIDDEN)]


def test_whoever_imports_kubernetes_later_gets_all_of_it() -> None:
    """The stand-ins used during the import are gone afterwards."""
    code = """if True:
        import sys, reporter.kube.api
        assert "kubernetes" not in sys.modules, "stand-in left behind"
        import kubernetes
        kubernetes.client.CoreV1Api, kubernetes.watch.Watch, kubernetes.config.load_kube_config
        print(kubernetes.__version__)"""

    assert in_a_process(code).startswith("37.")


def test_a_client_imported_before_is_used_as_it_is() -> None:
    """Whoever has `kubernetes` already keeps it."""
    code = """if True:
        import kubernetes
        before = kubernetes.client.ApiClient
        import reporter.kube.api, reporter.kube.client, sys
        assert sys.modules["kubernetes"] is kubernetes
        print(reporter.kube.client.ApiClient is before)"""

    assert in_a_process(code).strip() == "True"


@pytest.mark.skipif(sys.platform != "linux", reason="reads VmHWM from /proc")
def test_the_import_stays_small() -> None:
    """41 MB with CPython 3.11; `import kubernetes` alone would make it 48."""
    code = """if True:
        import reporter.kube.api
        print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")))"""
    peak = int(in_a_process(code).split()[1]) / 1024

    assert peak < 45
