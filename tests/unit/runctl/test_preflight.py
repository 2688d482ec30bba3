"""What is waited for before a run is checked."""

from typing import Any, cast

import pytest

from reporter.errors import NotFound
from reporter.runctl.preflight import wait_for_account


class Late:
    """An API server that shows the account of a new namespace after so many looks."""

    def __init__(self, looks: int) -> None:
        self.looks, self.now = looks, 0.0

    def get(self, *_: Any, **__: Any) -> Any:
        self.looks -= 1
        if self.looks >= 0:
            raise NotFound("no such serviceaccount")
        return {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def waited(self) -> None:
        wait_for_account(cast("Any", self), "ns", clock=lambda: self.now, sleep=self.sleep)


def test_the_account_of_a_new_namespace_takes_its_time() -> None:
    """Before, every Pod is refused."""
    late = Late(3)
    late.waited()

    assert -1 == late.looks
    assert 0 < late.now


def test_an_account_that_never_comes_is_not_waited_for_without_end() -> None:
    with pytest.raises(NotFound):
        Late(10**6).waited()
