"""The live page: its few files, read once, with headers that let nothing else run in it.

It asks for the data itself, so that hostile text never becomes part of a document here.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from aiohttp import web

from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",  # no markup from text, not even by accident
        "trusted-types 'none'",
    )
)
_GUARDS: Final = (
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-cache"),
)
_FOLDER: Final = Path(__file__).resolve().parents[1] / "page"
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}


def _read(file: Path) -> tuple[str, Answer]:
    content = file.read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    content_type = ("Content-Type", f"{_TYPES[file.suffix]}; charset=utf-8")
    return tag, Answer(200, content, (content_type, *_GUARDS, ("ETag", tag)))


_ASSETS: Final = {
    "/" if file.suffix == ".html" else f"/page/{file.name}": _read(file)
    for file in sorted(_FOLDER.iterdir())
    if file.suffix in _TYPES
}
PATHS: Final = frozenset(_ASSETS)


def answer(path: str, request: web.BaseRequest) -> Answer | None:
    """Answer with the file of that path, if it is one of the page."""
    if path not in _ASSETS:
        return None
    tag, asset = _ASSETS[path]
    return answers.not_modified(tag) if answers.matches(request, tag) else asset
