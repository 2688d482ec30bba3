"""The live page: its few files, read once, with headers that let nothing else run in it.

What it shows it asks for itself, so that hostile text never becomes part of a document here.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Final

from aiohttp import web

from reporter.aggregator.http import answers
from reporter.aggregator.http.answers import Answer

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
_FILES: Final = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
PATHS: Final = frozenset(_FILES)


def _read(name: str, content_type: str) -> tuple[str, Answer]:
    content = (_FOLDER / name).read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    return tag, Answer(200, content, (("Content-Type", content_type), *_GUARDS, ("ETag", tag)))


_ASSETS: Final = {path: _read(*file) for path, file in _FILES.items()}


def answer(path: str, request: web.BaseRequest) -> Answer | None:
    """Answer with the file of that path, if it is one of the page."""
    if path not in _ASSETS:
        return None
    tag, asset = _ASSETS[path]
    return answers.not_modified(tag) if answers.matches(request, tag) else asset
