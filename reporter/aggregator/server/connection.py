"""One HTTP connection: aiohttp's, with our limits on heads and on what follows an early answer.

aiohttp's parser has limits for single fields; those of a whole head, the 431, and a close that does
not destroy the answer before its reader sees it are made here. The meaning of a request is not
known.
"""

import asyncio
import contextlib
import select
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler
from aiohttp.web_protocol import _ErrInfo as Malformed  # a refused head, queued like others

from reporter.aggregator import limits
from reporter.aggregator.server import answers
from reporter.aggregator.server.answers import Answer
from reporter.run.identity import Identity

if TYPE_CHECKING:
    from reporter.aggregator.server.listener import Listener

BODY_BUFFER = 64 * 1024  # a body that nobody reads is held back at twice this
# A peer's end is behind the body that it has sent: only poll tells of it. Linux has a word for it.
_HUNG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR
_PIECE: Final = 64 * 1024  # of a body that a reader has to take within its time
_QUIET = 0.5  # a peer that sends nothing for so long has seen its answer


class Connection(RequestHandler):
    """The server's side of one connection.

    `identity` is for the handler to remember its peer; `widen` prepares for a long body.
    """

    __slots__ = (
        "_answered",
        "_body",
        "_dropped",
        "_gone",
        "_head_size",
        "_held",
        "_listener",
        "_refusing",
        "identity",
        "widen",
    )

    def __init__(self, listener: "Listener") -> None:
        super().__init__(
            listener.server,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=listener.keep_alive,
            access_log=None,  # type: ignore[arg-type]  # its documented way to have none
            max_line_size=limits.REQUEST_LINE_BYTES,
            max_field_size=limits.HEADER_BYTES,
            max_headers=limits.HEADERS,
            lingering_time=limits.DISCARD,
            read_bufsize=BODY_BUFFER,
            auto_decompress=False,
        )
        self.identity: Identity | None = None
        self.widen: Callable[[], None] = lambda: None  # only TLS has a buffer of its own
        self._listener = listener
        self._body: StreamReader = EMPTY_PAYLOAD  # of the newest request
        self._answered: StreamReader | None = None  # the body of the last request that was
        self._head_size = 0
        self._refusing = False
        self._dropped = 0
        self._gone: asyncio.Future[None] | None = None
        self._held: asyncio.TimerHandle | None = None

    @property
    def at_work(self) -> bool:
        """Whether there is a request, or the rest of one is being thrown away."""
        return self._waiter is None and self.transport is not None

    def end(self) -> None:
        """Close it at once, without the farewell of TLS that a peer could wait with."""
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    # Incoming data.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the clock of the first head, and tell the listener."""
        super().connection_made(transport)
        self._head_due()
        self._listener.entered(self, transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Tell the listener, and wake whoever waits for the rest of a body."""
        super().connection_lost(exc)
        self._listener.lost(self)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)
        if self._body.is_eof():
            return
        if self._answered is self._body:
            self._body.feed_eof()  # it was only being thrown away
        elif self._body.exception() is None:
            self._body.set_exception(exc or ConnectionResetError("connection lost"))

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless the peer has lost its say."""
        if self._refusing:
            self._dropped += len(data)
            return
        count = self._request_count
        begins = False
        if self._body.is_eof():
            begins = count > 0 and not self._head_size
            self._head_size += len(data)
        super().data_received(data)
        if self._request_count != count:
            self._look_at_new()
        elif self._head_size > limits.HEADER_BYTES + limits.REQUEST_LINE_BYTES:
            self._messages.append((_too_large(), EMPTY_PAYLOAD))
            self._refusing = True
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
        elif begins and data:
            self._head_due()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Read on, if anything was held up; a body says so with each piece that is taken."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def _head_due(self) -> None:
        """Let the peer have its time for a head from now on."""
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        due = self._next_keepalive_close_time = self._loop.time() + limits.HEADER
        self._keepalive_handle = self._loop.call_at(due, self._process_keepalive)

    def _look_at_new(self) -> None:
        """Check the size of heads that have just been parsed, and remember the newest body."""
        messages, size, self._head_size = self._messages, self._head_size, 0
        message, body = messages[-1]
        if isinstance(message, Malformed):
            self._refusing = True
            if not self._body.is_eof():  # it would never end by itself
                self._body.set_exception(web.RequestPayloadError(message.message))
            return
        self._body = body
        if size <= limits.HEADER_BYTES:
            return
        for index, (head, _) in enumerate(messages):
            if not isinstance(head, Malformed) and _size(head) > limits.HEADER_BYTES:
                messages[index] = (_too_large(), EMPTY_PAYLOAD)
                self._refusing = True

    def hold_body(self, heard: Callable[[], None]) -> None:
        """Leave the body with its sender until `release_body`.

        `heard` is called now and then while the sender is there. When it leaves, so do we.
        """
        self._pause_reading_for_buffer()
        self._held = self._loop.call_later(limits.SENDER_LOOK, self._look_at_sender, heard)

    def release_body(self) -> None:
        """Read the body again."""
        if self._held is not None:
            self._held.cancel()
            self._held = None
        self._resume_reading_for_buffer()

    def _look_at_sender(self, heard: Callable[[], None]) -> None:
        if self.left:
            if self.transport is not None:
                self.transport.abort()
            return
        heard()
        self._held = self._loop.call_later(limits.SENDER_LOOK, self._look_at_sender, heard)

    @property
    def left(self) -> bool:
        """Whether the peer is gone, or has said that it will be."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return True
        poller = select.poll()
        poller.register(transport.get_extra_info("socket").fileno(), _HUNG_UP)
        return bool(poller.poll(0))

    def do_not_linger(self) -> None:
        """Close right after the answer: nothing that may still come is worth waiting for."""
        self._lingering_time = 0.0

    # Outgoing data.

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Send an answer, with the end of the connection announced where it is due."""
        self._answered = request.content
        if self._upgraded or not isinstance(resp, Answer):
            return await super().finish_response(request, resp, start_time)
        close = (
            not resp.keep_alive
            or not request.keep_alive
            or not request.content.is_eof()
            or request.version < HttpVersion11
            or self._listener.crowded(self)
        )
        # aiohttp remembers what it gets here until the next answer: not a body of megabytes.
        sent = answers.EMPTY.closing() if close else answers.EMPTY
        try:
            await self._send(request, resp, resp.head(close=close))
        except ConnectionError:
            return sent, True
        except TimeoutError:
            if self.transport is not None:
                self.transport.abort()
        if self._refusing and not self._messages:
            await self._linger()
        return sent, False

    async def _send(self, request: web.BaseRequest, answer: Answer, head: bytes) -> None:
        """Send a head and the body of an answer, in pieces: slow readers share the one body.

        Raises ConnectionError when its reader is gone, TimeoutError when it is too slow.
        """
        body = memoryview(b"" if request.method == "HEAD" else answer.content)
        self._write(head + body[:_PIECE])
        if len(body) <= _PIECE and not self._paused:
            return  # as nearly all are: no timer for each
        async with asyncio.timeout(seconds_for(len(body))):
            if len(body) > _PIECE and self.transport is not None:
                # The kernel, too, would take megabytes for each of them.
                self.transport.set_write_buffer_limits(_PIECE)
                connection = self.transport.get_extra_info("socket")
                if connection is not None:  # none: it is being lost
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _PIECE)
            for start in range(_PIECE, len(body), _PIECE):
                await self._until_taken(request)
                self._write(body[start : start + _PIECE])
            await self._until_taken(request)

    def _write(self, data: bytes | memoryview) -> None:
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the peer is gone")
        self.transport.write(data)

    async def _until_taken(self, request: web.BaseRequest) -> None:
        """Wait until what is beyond the buffers is on its way, but not for ever."""
        if self._paused:
            async with asyncio.timeout(limits.BODY_SILENCE):
                await request.writer.drain()

    def gone(self) -> asyncio.Future[None]:
        """Return what is done once the connection is lost."""
        if self._gone is None:
            self._gone = self._loop.create_future()
        return self._gone

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer for a handler that failed."""
        if exc is not None:
            self._listener.observer.unexpected("request", exc)
        self._listener.observer.request("other", status, 0.0, 0)
        return Answer(status, close=True)

    def _make_error_handler(
        self, err_info: Malformed
    ) -> Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]:
        # The parser tells too many headers from one that is malformed only by its words.
        large = isinstance(err_info.exc, LineTooLong) or "Too many" in err_info.message
        status = 431 if large else 400

        async def refuse(_: web.BaseRequest) -> web.StreamResponse:
            self._listener.observer.request("other", status, 0.0, 0)
            return Answer(status, close=True)

        return refuse

    async def _linger(self) -> None:
        """Throw away what still comes, until the peer is gone, is quiet, or has had its time.

        A close with bytes unread makes the kernel reset the connection, and the answer is lost.
        """
        end = self._loop.time() + limits.DISCARD
        gone = self.gone()
        while self.transport is not None and (left := end - self._loop.time()) > 0:
            dropped = self._dropped
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, _QUIET)):
                    await asyncio.shield(gone)
            if gone.done() or dropped == self._dropped:
                return

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Tell the observer instead of a logger."""
        error = kw.get("exc_info")
        if isinstance(error, BaseException):
            self._listener.observer.unexpected("connection", error)


def _size(message: RawRequestMessage) -> int:
    """Return the bytes that all headers take on the wire."""
    return sum(len(name) + len(value) + 4 for name, value in message.raw_headers)


def _too_large() -> Malformed:
    """Make what stands for a head beyond its limit."""
    return Malformed(status=431, exc=LineTooLong(b""), message="head too large")


def seconds_for(size: int) -> float:
    """Return how long so many bytes may take on their way."""
    return limits.UPLOAD_RATE_AFTER + size / limits.UPLOAD_RATE
