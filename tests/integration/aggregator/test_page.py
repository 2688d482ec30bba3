"""The live page as it is served: its files, what they may do in a browser, and who gets them."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files as resources

import pytest

from reporter.run.view import EntryState
from tests.integration.aggregator.api.scene import situation
from tests.integration.aggregator.api.test_status import serving

MODULES = [
    f"{name}.js"
    for name in (
        "ask",
        "elements",
        "entry",
        "hero",
        "link",
        "list",
        "main",
        "plugins",
        "report",
        "row",
        "run",
        "theme",
        "words",
    )
]
FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
} | {f"/page/{name}": (name, "text/javascript; charset=utf-8") for name in MODULES}
PAGE = resources("reporter.aggregator") / "page"


class Markup(HTMLParser):
    """What a document asks for and what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inline: list[str] = []
        self._inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style") and data.strip():
            self.inline.append(data)


def markup() -> Markup:
    """The page, parsed."""
    found = Markup()
    found.feed((PAGE / "page.html").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("path", FILES)
@situation
async def test_the_files(path):
    """As they are in the package."""
    name, content_type = FILES[path]
    async with serving() as status:
        reply = await status.ask(path)

        assert (200, (PAGE / name).read_bytes()) == reply.said
        assert content_type == reply.headers["content-type"]


@pytest.mark.parametrize("path", FILES)
@situation
async def test_what_a_browser_may_do(path):
    """Only our own files and requests, no frame around it, no guessed type, no markup from text."""
    async with serving() as status:
        headers = (await status.ask(path)).headers
        policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))

        assert {
            "default-src": "'none'",
            "script-src": "'self'",
            "style-src": "'self'",
            "connect-src": "'self'",
            "img-src": "'self' data:",
            "base-uri": "'none'",
            "form-action": "'none'",
            "frame-ancestors": "'none'",
            "require-trusted-types-for": "'script'",
            "trusted-types": "'none'",
        } == policy
        assert "nosniff" == headers["x-content-type-options"]
        assert "no-referrer" == headers["referrer-policy"]


@pytest.mark.parametrize("path", FILES)
@situation
async def test_a_page_that_the_browser_has(path):
    """Asked for each time, so that a new version is seen at once; sent only when it is new."""
    async with serving() as status:
        headers = (await status.ask(path)).headers
        again = await status.ask(path, f"If-None-Match: {headers['etag']}")

        assert "no-cache" == headers["cache-control"]
        assert (304, b"") == again.said


@pytest.mark.parametrize("path", FILES)
@situation
async def test_who_gets_it(path):
    """K15: the audience of the run data."""
    async with serving() as status:
        assert 403 == (await status.ask(path, host="evil.example")).status
        assert 403 == (await status.ask(path, peer="127.0.0.6")).status
    async with serving(settings={"status_scope": "any"}) as status:
        assert 200 == (await status.ask(path, host="evil.example")).status


@pytest.mark.parametrize("path", FILES)
@situation
async def test_methods(path):
    """HEAD without a body, all others refused."""
    async with serving() as status:
        short = await status.ask(path, method="HEAD")

        assert (200, b"") == short.said
        assert 405 == (await status.ask(path, method="POST")).status


@pytest.mark.parametrize(
    "path",
    ["/page.html", "/page/page.html", "/page", "/page/", "/main.js", "/page/..", "/page/main.js/"],
)
@situation
async def test_no_other_files(path):
    """404, whatever lies beside them."""
    async with serving() as status:
        assert 404 == (await status.ask(path)).status


def test_nothing_inline_and_nothing_from_elsewhere():
    """The policy would refuse it, and a cluster may have no way out."""
    found = markup()
    asked = [
        attributes[name]
        for _, attributes in found.tags
        for name in ("src", "href", "xlink:href", "action", "srcset", "poster")
        if name in attributes
    ]
    styled = [tag for tag, attributes in found.tags if "style" in attributes]
    handlers = [name for _, attributes in found.tags for name in attributes if name[:2] == "on"]

    assert [] == found.inline + styled + handlers
    assert [] == [
        url for url in asked if not re.match(r"#|data:image/|page/[a-z]+\.(css|js)$|status$", url)
    ]
    for name in (*MODULES, "page.css"):
        text = (PAGE / name).read_text(encoding="utf-8")
        text = text.replace("http://www.w3.org/2000/svg", "")
        assert [] == re.findall(r"https?:|//[a-z]|@import|url\(|\bimport\(", text)


def test_modules_are_asked_for_at_once():
    """The page names each that is imported: else a browser learns of it only from another one."""
    tags = markup().tags
    named = [found["href"] for _, found in tags if found.get("rel") == "modulepreload"]
    imported = {
        name
        for module in MODULES
        for name in re.findall(
            r'^import [^;]*?"\./([a-z]+\.js)";$', (PAGE / module).read_text(), re.MULTILINE
        )
    }

    assert ["page/main.js"] == [found["src"] for tag, found in tags if tag == "script"]
    assert imported == set(MODULES) - {"main.js"}
    assert sorted(f"page/{name}" for name in imported) == named
    assert set(MODULES) == {each.name for each in PAGE.iterdir() if each.name.endswith(".js")}


def test_the_states_of_entries():
    """The page has those of `/status`, in the same order."""
    (states,) = re.findall(r"STATES = (.*);", (PAGE / "words.js").read_text(encoding="utf-8"))

    assert list(EntryState) == json.loads(states)


def test_text_is_never_markup():
    """Nothing in the modules turns text into elements or code."""
    module = "".join((PAGE / name).read_text(encoding="utf-8") for name in MODULES)
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|srcdoc"

    assert [] == re.findall(ways, module)


def test_the_page_can_be_used_without_seeing_it():
    """A language, a title, landmarks, names for all controls, and one live region: the status."""
    found = markup()
    tags = [tag for tag, _ in found.tags]
    live = [
        attributes.get("id")
        for _, attributes in found.tags
        if attributes.get("role") in ("status", "alert", "log") or "aria-live" in attributes
    ]

    assert {"lang": "en"} == dict(found.tags)["html"]
    assert {"title", "header", "main", "footer", "h1", "h2", "label", "thead", "noscript"} <= set(
        tags
    )
    assert ["hero-status"] == live
