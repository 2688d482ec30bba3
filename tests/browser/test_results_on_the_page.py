"""What is in results, on the page: tests that did not pass, and paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reporter.run.plan import Key
from tests.browser.stage import Stage
from tests.browser.test_live_page import ENTER, KEYS, opened, row
from tests.browser.webdriver import Browser

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PLUGINS = [
    {"name": "conformance", "result_format": "junit"},
    {"name": "unit", "result_format": "gojson"},
    {"name": "disks", "nodes": ["node-a"]},
]
CONFORMANCE, UNIT = (Key(name, "global") for name in ("conformance", "unit"))
HOSTILE = "<img src=x onerror=alert(1)>"
ESCAPED = HOSTILE.replace("<", "&lt;")
LONG = "\n".join(f"services_test.go:{number}: expected 200, found 503" for number in range(60))
REPORT = f"""<testsuites><testsuite name="sig-network">
<testcase name="Services should serve endpoints"><failure message="timed out">{LONG}</failure>
</testcase><testcase name="{ESCAPED}"><error message="&lt;b&gt;bold"/></testcase>
{'<testcase name="fine"/>' * 40}<testcase name="left out"><skipped/></testcase></testsuite>
</testsuites>"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A run with judged results, and an entry that is open."""
    with Stage(PLUGINS, tmp_path_factory.mktemp("run")) as run:
        run.send(CONFORMANCE, REPORT.encode())
        run.send(
            UNIT, b'{"Action":"pass","Package":"p","Test":"A"}\n{"Action":"pass","Package":"p"}'
        )
        yield run


def expand(browser: Browser, key: Key) -> None:
    """Open an entry by the keyboard, and wait for its tests."""
    browser.run(f"{row(key)}.querySelector('.expand').focus()")
    browser.press(ENTER)
    browser.until(f"{row(key)}.querySelectorAll('.tests li').length")


def test_failed_tests_with_their_text(browser, stage):
    """What failed first, when the entry is opened; hostile text stays text."""
    opened(browser, stage.url, 3)
    assert "44 tests: 2 failed, 41 passed, 1 skipped" == browser.text("#hero-tests")
    expand(browser, CONFORMANCE)
    tests = browser.run(
        f"return [...{row(CONFORMANCE)}.querySelectorAll('.tests li')].map(item => item.innerText)"
    )
    assert 2 == len(tests)
    assert "Services should serve endpoints" in tests[0]
    assert "services_test.go:59: expected 200, found 503" in tests[0]
    assert HOSTILE in tests[1]
    assert "<b>bold" in tests[1]
    assert 0 == browser.run("return document.querySelectorAll('img, .tests pre *').length")
    assert "2 failed, 40 passed, 1 skipped" in browser.run(f"return {row(CONFORMANCE)}.innerText")
    assert [] == browser.complaints()


def test_only_one_verdict(browser, stage):
    """Those that there are, with how many have each; entries without one are a choice, too."""
    opened(browser, stage.url, 3)
    offered = browser.run("return [...document.querySelector('#verdict').options].map(o => o.text)")
    assert ["Any verdict", "No verdict yet (1)", "failed (1)", "passed (1)"] == offered
    choose = (
        "const select = document.querySelector('#verdict'); select.value = arguments[0];"
        "select.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    found = []
    for verdict in ("failed", "", "any"):
        browser.run(choose, verdict)
        found.append(browser.run(f"return {KEYS}.length"))
    assert [1, 1, 3] == found


def test_on_paper(browser, stage):
    """Everything that is open, whole; nothing to click; light, whatever the theme is."""
    opened(browser, stage.url, 3)
    browser.run("document.documentElement.dataset.theme = 'dark'")
    expand(browser, CONFORMANCE)
    cut = (
        "return [...document.querySelectorAll('.tests, .tests pre')]"
        ".filter(each => each.scrollHeight > each.clientHeight + 1).length"
    )
    on_screen = browser.run(cut)
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    shown = browser.run(
        "return [...document.querySelectorAll('button, input, select, footer a')]"
        ".filter(each => each.offsetParent !== null && !each.closest('th')).length"
    )
    scheme = browser.run("return getComputedStyle(document.documentElement).colorScheme")
    assert (True, 0, 0, "light") == (on_screen > 0, browser.run(cut), shown, scheme)
    assert browser.devtools("Page.printToPDF")["data"]


@pytest.mark.parametrize("width", [320, 1280])
def test_no_screen_is_too_narrow_for_results(browser, stage, width):
    """With the tests of an entry open."""
    browser.look(width=width, height=800, dark=False)
    opened(browser, stage.url, 3)
    expand(browser, CONFORMANCE)
    assert width >= browser.run("return document.documentElement.scrollWidth")


def test_a_picture_for_the_documentation(browser, stage, images):
    """What a run with results looks like."""
    browser.look(width=1280, height=1500, dark=False)
    opened(browser, stage.url, 3)
    expand(browser, CONFORMANCE)
    picture = browser.picture()
    (images / "results.png").write_bytes(picture)
    assert len(picture) > 10_000
