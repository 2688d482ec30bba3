"""Request targets as raw text: what is a path, and what never is."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.aggregator.api.target import Route, parse_target, path_of
from reporter.run.plan import Key

NAMES = st.text(min_size=1, max_size=20).filter(
    lambda name: name not in (".", "..") and not set(name) & {"/", "\0"}
)
ROUTES = st.sampled_from(
    [("results", Route.RESULTS), ("progress", Route.PROGRESS), ("health", Route.HEARTBEAT)]
)


def utf8(text: str) -> bool:
    """Whether a text can be sent at all."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


@given(route=ROUTES, plugin=NAMES.filter(utf8), node=NAMES.filter(utf8), query=st.text())
def test_a_quoted_key_comes_back(route, plugin, node, query):
    """A45: whatever the names, quoting them once and parsing gives them back, query or not."""
    word, found = route
    node_path = f"/api/v1/{word}/by-node/{quote(node, safe='')}/{quote(plugin, safe='')}"
    global_path = f"/api/v1/{word}/global/{quote(plugin, safe='')}"

    for target, key in ((node_path, Key(plugin, node)), (global_path, Key(plugin, "global"))):
        parsed = parse_target(f"{target}?{query}")
        assert parsed is not None
        assert (found, key) == parsed[:2]
        assert parsed.subject.isprintable()


@pytest.mark.parametrize(
    "raw",
    [
        "/api/v1/health/by_node/node1/sysd",
        "https://host/api/v1/health/by-node/node1/sysd",
        "/api/v1/health/by-node/node%31/%73ysd?a=b",
    ],
)
def test_every_spelling_of_a_key(raw):
    assert (Route.HEARTBEAT, Key("sysd", "node1"), "heartbeat for sysd/node1") == parse_target(raw)


@given(st.text(alphabet="/.%2ef0\\?#abc:@\u00e9\udcff ", max_size=60))
def test_no_text_climbs(tail):
    """A45: any target is nothing, or a key whose names hold no slash and are no dots."""
    for start in ("/api/v1/results/", "/api/v1/results/by-node/", "/", "http:"):
        target = parse_target(start + tail)
        if target is not None:
            for name in target.key:
                assert name not in ("", ".", "..")
                assert not set(name) & {"/", "\0"}


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "/",
        "/api/v1/results/global",
        "/api/v1/results/global/e2e/",
        "/api/v1/results/global/e2e/x",
        "/api/v1/results/by-node/n/e2e/",
        "/api/v1/results/by-node//e2e",
        "/api/v1/results/BY-NODE/n/e2e",
        "/api/v1/results/global/.",
        "/api/v1/results/global/%2E%2e",
        "/api/v1/results/global/a%2Fb",
        "/api/v1/results/global/a%00",
        "/api/v1/results/global/%",
        "/api/v1/results/global/%f",
        "/api/v1/results/global/\udcff",
        "/api/v1/other/global/e2e",
        "/api/v2/results/global/e2e",
        "/global/e2e",
        "api/v1/results/global/e2e",
        "ftp://host/api/v1/results/global/e2e",
        "https://host",
    ],
)
def test_what_is_no_path(raw):
    """A15, A45: there is nothing to be found."""
    assert parse_target(raw) is None


def test_a_name_is_decoded_once():
    """A45: %252f is the text %2f, not a slash."""
    target = parse_target("/api/v1/results/global/a%252fb")

    assert target is not None
    assert Key("a%2fb", "global") == target.key


def test_the_path_of_an_absolute_target():
    """Scheme and host go, whatever their letter case; a query goes with either form."""
    assert "/a/b" == path_of("HTTP://host:1/a/b?c=//d")
    assert "" == path_of("https://host?x")
    assert "//host/a" == path_of("//host/a")
