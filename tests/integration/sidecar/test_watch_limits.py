"""The Pod's watch where the product would wait for minutes."""

import pytest

from tests.blackbox.sidecar.scene import RUNNING
from tests.fakekube import Silence
from tests.integration.scene import Scene, impatient


@pytest.mark.parametrize("after", [0, 1])
def test_a_half_open_watch(scene: Scene, after: int) -> None:
    """No bookmark comes, so the connection is dead: the end is seen all the same."""
    scene.create(form="native")
    scene.fake.fail(Silence(after=after), watch=True)
    reporter = scene.start(impatient)
    scene.wait_condition(RUNNING)
    scene.adapter(scene.ended(1))
    scene.wait_final()

    assert 0 == reporter.finish()
    expected = [("Unknown", RUNNING, False), ("False", "AdapterExitedWithError", True)]
    assert expected == scene.history()
