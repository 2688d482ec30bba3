"""`status-ctl open`: the page of a run, by a port-forward, in a browser."""

import argparse
import os
import socket
import ssl
import sys
import threading
import webbrowser
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Final

from reporter.cli import cluster
from reporter.cli import output as show
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.runctl import origin

if TYPE_CHECKING:
    from reporter.runctl.cluster_run import ByCluster

DESCRIPTION = """\
Shows the page of a run: opens a port on this machine that leads to the aggregator, prints its URL
and, on a terminal, opens it in the browser. The port stays open until Ctrl-C; like that of
`kubectl port-forward`, it lets in every user of this machine.

exit codes:
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run
  130  Ctrl-C"""

_STALLED: Final = 60.0  # seconds in which one side takes nothing
_PIECE: Final = 64 * 1024


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "run_name", metavar="RUN", type=origin.run_name, help="the run's name, also as run/NAME"
    )
    cluster.cluster_arguments(
        parser, everywhere=False, default="the context's, then status-reporter-RUN"
    )


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    chosen = origin.by_cluster(options, options.run_name)
    _, first = chosen.forward()  # there is no use for a page that nobody answers
    first.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        show.put_names([url])
        sys.stdout.flush()
        tell("press Ctrl-C to close the port")
        if sys.stdout.isatty() and _has_browser():
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
        while True:
            near, _ = listener.accept()
            threading.Thread(target=_serve, args=(near, chosen), daemon=True).start()


def _has_browser() -> bool:
    """Return whether there is one with a window, or one of the user's choice."""
    names = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform != "linux" or any(map(os.environ.get, names))


def _serve(near: socket.socket, chosen: "ByCluster") -> None:
    """Connect one connection of the browser with the aggregator, wherever its Pod is by now."""
    with near:
        try:
            scheme, forward = chosen.forward()
        except CannotTell as error:
            tell(str(error))
            return
        with suppress(OSError), forward.socket as plain:
            far = plain
            if scheme == "https":
                # As `ByCluster` does: the API server and the kubelet lead to this very Pod.
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                far = context.wrap_socket(plain)
            with far:
                _move(near, far)
        forward.close()


def _move(near: socket.socket, far: socket.socket) -> None:
    """Move bytes in both directions until one side ends."""
    with DefaultSelector() as selector:
        for end in (near, far):
            selector.register(end, EVENT_READ)
        while True:
            # What TLS has decrypted already makes no descriptor readable.
            pending = isinstance(far, ssl.SSLSocket) and far.pending()
            ready = {far} if pending else {key.fileobj for key, _ in selector.select()}
            for end, other in ((near, far), (far, near)):
                if end not in ready:
                    continue
                end.settimeout(0)
                try:
                    piece = end.recv(_PIECE)
                except (BlockingIOError, ssl.SSLWantReadError):
                    continue  # a record of TLS that has no bytes for us
                if not piece:
                    return
                other.settimeout(_STALLED)
                other.sendall(piece)
