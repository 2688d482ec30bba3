"""A sidecar whose link cannot be set up."""

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
