"""`status-ctl open`: the page of a run, by a port-forward, in a browser."""

import argparse
import os
import socket
import sys
import threading
import webbrowser
from typing import TYPE_CHECKING

from reporter.cli import output as show
from reporter.cli.exits import CannotTell
from reporter.cli.output import tell
from reporter.runctl import origin

if TYPE_CHECKING:
    from reporter.runctl.cluster_run import ByCluster

DESCRIPTION = """\
Shows the page of a run: forwards a port of this machine to the aggregator, prints its URL and, on
a terminal, opens it in the browser. The port stays open until Ctrl-C. As with `kubectl
port-forward`, every user of this machine can use it. With `run --expose` the page uses TLS, with a
certificate that browsers warn about.

exit codes:
  2    usage error
  4    cannot tell: not reachable, forbidden, no such run
  130  Ctrl-C"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    origin.run_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    chosen = origin.by_cluster(options, options.run_name)
    scheme, first = chosen.forward()  # there is no use for a page that nobody answers
    first.close()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"{scheme}://127.0.0.1:{listener.getsockname()[1]}/"
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
    try:
        chosen.forward(near)
    except CannotTell as error:
        near.close()
        tell(str(error))
