"""What the status listener serves from the first moment on: a probe must not kill a long start.

Until the run is open only that we live, afterwards what the status app says.
"""

from typing import Final

from aiohttp import web

from reporter.aggregator.api import StatusApp
from reporter.aggregator.server import answers
from reporter.run.target import path_of

_ALIVE: Final = answers.text(200, "ok")
_NOT_YET: Final = answers.text(
    503, "[-]start: the run is being opened\nnot ready", (answers.retry_later(1),)
)


class StartupGate:
    """The handler of the status listener."""

    def __init__(self) -> None:
        self._app: StatusApp | None = None

    def open(self, app: StatusApp) -> None:
        """From now on everything is answered by `app`."""
        self._app = app

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request. That it is answered shows that the loop goes round."""
        if self._app is not None:
            return await self._app(request)
        return _ALIVE if path_of(request.raw_path) in ("/livez", "/healthz") else _NOT_YET
