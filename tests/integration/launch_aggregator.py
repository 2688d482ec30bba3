"""The launcher of the aggregator, with the API server's address from the environment.

SIGUSR1 closes the sockets that listen on the port of CLOSE_PORT, as nothing in the program would.
"""

import os
import signal
import socket
import sys
from contextlib import suppress

from reporter.runtime.lifecycle import install

stop = install()

from reporter.aggregator.main import main  # noqa: E402
from tests.integration.given_api import connect  # noqa: E402


def close_listeners(*_: object) -> None:
    """Close descriptors behind the back of whoever owns them."""
    with open(os.environ["CLOSE_PORT"], encoding="ascii") as file:
        port = int(file.read())
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found = socket.socket(fileno=os.dup(int(name)))
            try:
                listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
                if listens and found.getsockname()[1] == port:
                    os.close(int(name))
            finally:
                found.close()


signal.signal(signal.SIGUSR1, close_listeners)
sys.exit(main(sys.argv[1:], os.environ, stop, connect))
