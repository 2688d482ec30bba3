"""What the HTTP layer tells about its work; who counts or logs it is the caller's business."""

from typing import Protocol


class Observer(Protocol):
    """Called on the event loop; must not block and must not raise."""

    def request(self, route: str, code: int, seconds: float, received: int) -> None:
        """An answer was made.

        `route` is one of results, progress, heartbeat, status, probe, metrics, other, poll;
        `received` counts the bytes of body that were read.
        """

    def refused(self, what: str, why: str, peer: str, certificate: str) -> None:
        """A worker was refused with 403.

        `what` names it as the answer does, `peer` is an address, `certificate` whom the client's
        stands for (`plugin/node`; empty: nobody of this run).
        """

    def tls_failure(self, reason: str, peer: str, text: str) -> None:
        """A handshake failed.

        `reason` is one of certificate, timeout, closed, protocol, other; `peer` an address without
        its port; `text` what OpenSSL says.
        """

    def unexpected(self, where: str, error: BaseException) -> None:
        """Something failed that should not; the peer got a 500 or lost its connection."""
