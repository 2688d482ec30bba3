"""The private attributes of aiohttp and asyncio that the listeners stand on, each by its name.

A release may take any of them away without a word. That is why aiohttp is held below its next minor
release: before that bound moves, this list has to be right again.
"""

import ast
import asyncio
import inspect
import ssl
import tomllib
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web, web_protocol
from packaging.requirements import Requirement

from reporter.aggregator.api.files import File
from reporter.aggregator.server.answers import Answer
from reporter.aggregator.server.connection import Connection
from reporter.aggregator.server.tls_protocol import TlsProtocol

ROOT = Path(__file__).resolve().parents[3]

BORROWED = {
    Connection: {
        "_keepalive_handle",
        "_lingering_time",
        "_loop",
        "_make_error_handler",
        "_messages",
        "_next_keepalive_close_time",
        "_pause_reading_for_buffer",
        "_paused",
        "_process_keepalive",
        "_reading_paused",
        "_request_count",
        "_resume_reading_for_buffer",
        "_upgraded",
        "_waiter",
    },
    Answer: {"_keep_alive"},
    File: {"_make_response", "_sendfile", "_sendfile_fallback"},
    TlsProtocol: {
        "_extra",
        "_incoming",
        "_on_handshake_complete",
        "_outgoing",
        "_process_outgoing",
        "_set_read_buffer_limits",
        "_ssl_buffer",
        "_ssl_buffer_view",
        "_sslobj",
    },
}


async def theirs(ours: type) -> set[str]:
    """Name the private attributes that one of our classes finds in what it is made from."""

    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        return web.StreamResponse()

    loop = asyncio.get_running_loop()
    bases: dict[type, Callable[[], object]] = {
        Connection: lambda: web_protocol.RequestHandler(web.Server(handler), loop=loop),
        Answer: web.StreamResponse,
        File: lambda: web.FileResponse(__file__),
        TlsProtocol: lambda: SSLProtocol(
            loop,
            asyncio.Protocol(),
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
            None,
            server_side=True,
        ),
    }
    base = bases[ours]()
    if isinstance(base, SSLProtocol):
        base._app_transport._closed = True  # else it warns that nobody has
    return {name for name in dir(base) if name.startswith("_") and name[1] != "_"}


def used(ours: type) -> set[str]:
    """Name the attributes that the text of a class reads, writes or defines."""
    nodes = list(ast.walk(ast.parse(inspect.getsource(ours))))
    named = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return named | {node.name for node in nodes if isinstance(node, kinds)}


@pytest.mark.parametrize("ours", BORROWED, ids=lambda ours: ours.__name__)
def test_each_private_attribute_is_named_and_is_there(ours: type) -> None:
    """Neither may one vanish, nor may a further one be used unseen."""
    assert BORROWED[ours] == asyncio.run(theirs(ours)) & used(ours)


def test_what_stands_for_a_malformed_head_is_still_made_so() -> None:
    """Heads that are refused by us wait in aiohttp's queue as its own refusals do."""
    assert ["status", "exc", "message"] == list(inspect.signature(web_protocol._ErrInfo).parameters)


def test_aiohttp_is_held_below_its_next_minor_release() -> None:
    """The list above is of the release that is locked, and the bound ends with it."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = map(Requirement, document["project"]["optional-dependencies"]["aggregator"])
    (bound,) = (each.specifier for each in wanted if each.name == "aiohttp")
    (least,) = (each.version for each in bound if each.operator == ">=")
    major, minor = map(int, least.split("."))
    assert not bound.contains(f"{major}.{minor + 1}.0")
    assert bound.contains(f"{major}.{minor}.99")
