"""Who may see run data on the status listener."""

from enum import Enum

from aiohttp import web

_LOOPBACK_PEERS = ("127.0.0.1", "::1", "::ffff:127.0.0.1")  # the last: seen by a socket for both
_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")


class Audience(Enum):
    """Who it is.

    LOCAL: peers that are exactly 127.0.0.1 or ::1, which is what `kubectl port-forward` looks like
    and a mesh's proxy does not, and that ask for a loopback host, which a browser that was lured
    here by DNS does not. CERTIFIED: these, and who has shown a client certificate that the
    listener's context has verified. ANY: everybody.
    """

    LOCAL = "local"
    CERTIFIED = "certified"
    ANY = "any"

    def admits(self, request: web.BaseRequest) -> bool:
        """Say whether the sender of a request belongs to it."""
        if self is Audience.ANY:
            return True
        transport = request.transport
        if transport is None:
            return False
        if self is Audience.CERTIFIED and transport.get_extra_info("peercert"):
            return True
        peer = transport.get_extra_info("peername")
        return bool(peer) and peer[0] in _LOOPBACK_PEERS and _loopback(request.headers.get("Host"))


def _loopback(host: str | None) -> bool:
    if host is None:
        return False
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):  # no port; the colons are the address's own
        return host.lower() in _LOOPBACK_HOSTS
    return name.lower() in _LOOPBACK_HOSTS and port.isascii() and (port == "" or port.isdigit())
