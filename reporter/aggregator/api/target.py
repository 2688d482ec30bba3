"""Request targets: from the raw bytes of the request line to a route and a key.

We decode ourselves: a framework that decodes `%2f` or cleans `//` away lets one path be taken for
another, and a redirect would turn a worker's PUT into a GET without body.
"""

import re
from enum import StrEnum
from typing import NamedTuple

from reporter.common.text import percent_decoded
from reporter.run.plan import GLOBAL, Key


class Route(StrEnum):
    """What is served to workers, by its name in metrics."""

    RESULTS = "results"
    PROGRESS = "progress"
    HEARTBEAT = "heartbeat"


class Target(NamedTuple):
    """A path that exists. Whether the plan has the key is not known here.

    `subject` is how answers name what was asked for.
    """

    route: Route
    key: Key
    subject: str


_ROUTES = {"results": Route.RESULTS, "progress": Route.PROGRESS, "health": Route.HEARTBEAT}
_SUBJECTS = {
    Route.RESULTS: "result",
    Route.PROGRESS: "progress update for",
    Route.HEARTBEAT: "heartbeat for",
}
_BY_NODE = ("by-node", "by_node")  # the second is the spelling of the written proposal
_ABSOLUTE = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parse_target(raw: str) -> Target | None:
    """Return the route and key of a raw request target, None when there is no such path.

    Nothing of it is remembered: those of strangers have no end.

    `raw` is as aiohttp gives it: UTF-8 with lone surrogates for other bytes. Everything before the
    names matches exactly, each name is percent-decoded once, a query is ignored.
    """
    match path_of(raw).split("/"):
        case ["", "api", "v1", route, "global", plugin] if route in _ROUTES:
            node: str | None = GLOBAL
        case ["", "api", "v1", route, scope, raw_node, plugin] if (
            route in _ROUTES and scope in _BY_NODE
        ):
            node = segment(raw_node)
        case _:
            return None
    name, found = segment(plugin), _ROUTES[route]
    if node is None or name is None:
        return None
    key = Key(name, node)
    return Target(found, key, f"{_SUBJECTS[found]} {_printed(key)}")


def path_of(raw: str) -> str:
    """Return the path of a raw target, still encoded: no query, no scheme and host."""
    if not raw.startswith("/") and (absolute := _ABSOLUTE.match(raw)):
        raw = raw[absolute.end() :]  # RFC 9112 has servers accept it, though only proxies send it
    return raw.partition("?")[0]


def segment(raw: str) -> str | None:
    """Decode one segment of a path once; None for what cannot be a name and might climb."""
    text = raw
    if "%" in raw or not raw.isascii():
        if _BAD_ESCAPE.search(raw):
            return None
        try:
            text = percent_decoded(raw.encode("utf-8", "surrogateescape")).decode("utf-8")
        except UnicodeDecodeError:
            return None
    return None if text in ("", ".", "..") or "/" in text or "\0" in text else text


def _printed(key: Key) -> str:
    """Write a key for an answer, control characters escaped: it comes from the request."""
    text = str(key)
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
