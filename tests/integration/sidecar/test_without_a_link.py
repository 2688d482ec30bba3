"""A sidecar whose link cannot be set up, or that has none."""

import subprocess
import sys

from tests.aggregators.scripted import Scripted
from tests.blackbox.sidecar.linked import linked
from tests.integration.scene import Reporter, Scene
from tests.kube_client import connect


class Refusing(dict[str, str]):
    """An environment in which something unforeseen happens to the link."""

    def get(self, name: str, default: str = "") -> str:  # type: ignore[override]
        if name == "WORKER_CONFIG_FILE":
            raise MemoryError("no memory file")
        return super().get(name, default)


def test_machine_that_refuses_the_link(scene: Scene, aggregator: Scripted) -> None:
    """Whatever goes wrong while it is set up, the verdict is as without one."""
    scene.create()
    environ = Refusing(scene.environ(**linked(aggregator)))
    reporter = Reporter(environ, connect(scene.fake))
    scene.write_result()

    assert 0 == reporter.join()
    assert "AllGood" == scene.condition()["reason"]
    (said,) = scene.said("No link to the aggregator")
    assert "no memory file" == str(said["error"])


def test_without_a_link_nothing_of_it_is_loaded() -> None:
    """Who has no aggregator pays nothing: no link, aiohttp or cryptography in memory."""
    code = (
        "import sys; import reporter.sidecar.main; "
        "print([m for m in sys.modules if m.split('.')[0] in {'aiohttp', 'cryptography'}"
        " or m.startswith(('reporter.link', 'reporter.aggregator', 'reporter.aggregator'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()
