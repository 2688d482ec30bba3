"""A browser for the tests of the live page; where there is none they are left out, and say so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.webdriver import CHROMIUM, DRIVER, Browser, driving


def need_browser(more: object = True, name: str = "") -> None:
    """Leave a test out where there is no browser, or not what else it needs."""
    if CHROMIUM and DRIVER and more:
        return
    missing = name if CHROMIUM and DRIVER else "chromium with chromedriver"
    reason = f"there is no {missing}: tests/browser/setup.sh installs them"
    if os.environ.get("REQUIRE_CLUSTER") == "1":
        pytest.fail(f"REQUIRE_CLUSTER=1, but {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def open_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Browser]]:
    """Opens browsers that know nothing of each other."""
    need_browser()
    with driving(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def browser(open_browser: Callable[[], Browser]) -> Iterator[Browser]:
    """One browser for one test."""
    opened = open_browser()
    opened.look(width=1280, height=860, dark=False)
    try:
        yield opened
    finally:
        opened.quit()


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Where pictures go: with PICTURES=1 those of the documentation are replaced."""
    if os.environ.get("PICTURES") == "1":
        return Path(__file__).resolve().parents[2] / "docs" / "images"
    return tmp_path
