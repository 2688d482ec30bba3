"""The HTTP endpoint over real sockets: probes, scrapes, and clients that mean no good."""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import queue
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from reporter.common import endpoint as endpoint_module
from reporter.common import log
from reporter.common.endpoint import MOST_CONNECTIONS, Endpoint, Site
from reporter.sidecar.metrics import Metrics

BOUND = 20.0


class Running:
    """An endpoint with metrics of its own, whose health the test decides."""

    def __init__(self, patience=BOUND):
        self.metrics = Metrics("0.1.0")
        self.live = True
        self.problems = {"job": None, "watch": None}
        self.scrapes = queue.Queue()
        site = Site(self.metrics.render, lambda: self.live, lambda: self.problems, self.scrapes.put)
        self.endpoint = Endpoint("127.0.0.1", 0, site, patience)
        self.endpoint.start()

    def connect(self):
        """A plain connection."""
        return socket.create_connection(("127.0.0.1", self.endpoint.port), timeout=BOUND)

    def ask(self, path, method="GET", headers=None, body=None):
        """Status, headers and body of one request."""
        client = http.client.HTTPConnection("127.0.0.1", self.endpoint.port, timeout=BOUND)
        with contextlib.closing(client):
            client.request(method, path, headers=headers or {}, body=body)
            response = client.getresponse()
            return response.status, dict(response.headers), response.read().decode()


@pytest.fixture
def running():
    """A running endpoint."""
    subject = Running()
    yield subject
    subject.endpoint.close()


@pytest.fixture
def impatient():
    """A running endpoint that gives clients a fifth of a second."""
    subject = Running(patience=0.2)
    yield subject
    subject.endpoint.close()


def received(client):
    """Everything the other side sends until it closes."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := client.recv(65536):
            data += chunk
    return data


@pytest.mark.parametrize("path", ["/livez", "/healthz", "/livez?verbose", "/readyz"])
def test_a_healthy_reporter_says_ok(running, path):
    """Probes get 200 and one word."""
    status, headers, body = running.ask(path)

    assert (200, "ok\n") == (status, body)
    assert "close" == headers["Connection"]
    assert "text/plain; charset=utf-8" == headers["Content-Type"]


@pytest.mark.parametrize("path", ["/livez", "/healthz"])
def test_a_main_loop_that_stands_still_is_not_alive(running, path):
    """The kubelet may restart us then."""
    running.live = False

    assert (503, f"{path[1:]} check failed\n") == running.ask(path)[::2]


def test_readiness_names_every_check_when_asked(running):
    """`?verbose` prints as Kubernetes' own components do."""
    expected = "[+]job ok\n[+]watch ok\nreadyz check passed\n"

    assert (200, expected) == running.ask("/readyz?verbose")[::2]
    assert (200, expected) == running.ask("/readyz?a=b&verbose")[::2]


def test_a_failed_check_is_named_with_its_reason(running):
    """Also without `?verbose`, and always on one line."""
    running.problems["job"] = "never\nseen"
    expected = "[-]job failed: never seen\n[+]watch ok\nreadyz check failed\n"

    assert (503, expected) == running.ask("/readyz")[::2]


def test_metrics_come_in_the_format_that_was_asked_for(running):
    """Text and OpenMetrics by negotiation, also from several Accept lines."""
    status, headers, body = running.ask("/metrics")
    assert (200, "text/plain; version=0.0.4; charset=utf-8") == (status, headers["Content-Type"])
    assert body == running.metrics.render().body.decode()

    accept = {"accept": "application/openmetrics-text"}
    status, headers, body = running.ask("/metrics", headers=accept)
    assert headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    assert body.endswith("# EOF\n")


@pytest.mark.parametrize("path", ["/metrics", "/livez", "/readyz", "/nothing"])
def test_head_says_what_get_would_say_but_sends_no_body(running, path):
    """The same status and length."""
    status, headers, body = running.ask(path)
    assert len(body) == int(headers["Content-Length"])

    assert (status, headers["Content-Length"]) == (
        running.ask(path, "HEAD")[0],
        running.ask(path, "HEAD")[1]["Content-Length"],
    )
    with running.connect() as client:
        client.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert received(client).endswith(b"\r\n\r\n")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/metricsx", "//metrics", "/../etc/passwd"])
def test_other_paths_are_not_found(running, path):
    """404, whatever the method."""
    assert 404 == running.ask(path)[0]
    assert 404 == running.ask(path, "POST")[0]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_other_methods_are_not_allowed(running, method):
    """405 names those that are; a body is ignored."""
    status, headers, _ = running.ask("/metrics", method, body="x" * 10_000)

    assert (405, "GET, HEAD") == (status, headers["Allow"])


def test_a_second_request_on_a_connection_is_ignored(running):
    """No keep-alive: one request, one answer, closed."""
    with running.connect() as client:
        client.send(b"GET /livez HTTP/1.1\r\n\r\n" * 3)
        assert 1 == received(client).count(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"", b"GET /metr", b"GET /livez HTTP/1.1\r\nHost: x\r\n"])
def test_a_client_that_never_finishes_its_request_is_cut_off(impatient, sent):
    """The time for a head is counted in total."""
    with impatient.connect() as client:
        client.send(sent)
        assert b"" == received(client)


def test_a_client_that_drips_its_request_is_cut_off(impatient):
    """Each byte does not buy new time."""
    begun = time.monotonic()
    with impatient.connect() as client, contextlib.suppress(OSError):
        client.setblocking(False)
        while time.monotonic() - begun < BOUND:
            client.send(b"x")
            with contextlib.suppress(BlockingIOError):
                if not client.recv(1):
                    break
            time.sleep(0.01)

    assert time.monotonic() - begun < BOUND


def test_a_client_that_never_hangs_up_is_cut_off(impatient):
    """Its connection is not kept once the answer is out, and it counts as no scrape."""
    client = impatient.connect()
    client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
    data = received(client)
    assert data.endswith(impatient.metrics.render().body)

    # The answer was complete at once; the connection itself ends with the patience.
    with contextlib.suppress(OSError):
        for _ in range(1000):
            client.send(b"still here")
            time.sleep(0.01)
        pytest.fail("nobody cut us off")
    client.close()
    assert impatient.scrapes.empty()


def test_a_client_that_sends_for_ever_is_cut_off(running):
    """A body is ignored only up to a bound."""
    with running.connect() as client, contextlib.suppress(OSError):
        client.send(b"POST /livez HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
        for _ in range(100_000):
            client.sendall(b"x" * 65536)
        pytest.fail("nobody cut us off")

    assert 200 == running.ask("/livez")[0]


def test_clients_that_hold_connections_open_do_not_keep_probes_out(running):
    """When all places are taken, the oldest connection goes."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(running.connect()) for _ in range(5 * MOST_CONNECTIONS)]
        for _ in range(20):
            assert 200 == running.ask("/livez")[0]

        assert b"" == received(held[0])


def test_probes_are_answered_during_a_storm(running):
    """Many greedy clients at a time, and still every probe gets its answer."""
    over = threading.Event()

    def storm():
        while not over.is_set():
            with contextlib.suppress(OSError), running.connect() as client:
                client.send(os.urandom(3000))

    greedy = [threading.Thread(target=storm) for _ in range(4)]
    for thread in greedy:
        thread.start()
    answers = [running.ask("/livez")[0] for _ in range(50)]
    over.set()
    for thread in greedy:
        thread.join()

    assert [200] * 50 == answers


def test_a_scrape_that_saw_the_verdict_is_told_apart(running):
    """Linger ends with the first page that showed the final verdict, not with any page."""
    running.ask("/metrics")
    assert running.scrapes.get(timeout=BOUND) is False

    running.metrics.set_condition("True", "Done", from_file=True, final=True)
    running.ask("/metrics")
    assert running.scrapes.get(timeout=BOUND) is True


def test_a_page_rendered_before_the_verdict_does_not_count(running):
    """Also when the verdict came before the page had been taken."""
    with running.connect() as client:
        client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
        page = received(client)
        running.metrics.set_condition("True", "Done", from_file=True, final=True)

    assert b"verdict_final 0.0" in page
    assert running.scrapes.get(timeout=BOUND) is False


def test_only_a_page_that_was_taken_whole_counts(running):
    """A probe, a HEAD and a scraper that broke off have not seen the verdict."""
    running.metrics.set_condition("True", "Done", from_file=True, final=True)
    running.ask("/metrics", "HEAD")
    running.ask("/livez")
    with running.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.send(b"GET /metrics HTTP/1.1\r\n\r\n")
        client.recv(10)

    running.ask("/metrics")
    assert running.scrapes.get(timeout=BOUND) is True
    assert running.scrapes.empty()


def test_a_check_that_raises_is_a_server_error(running):
    """The endpoint survives its callables, and says so in the log."""
    running.problems = None
    with log.capture() as events:
        status = running.ask("/readyz")[0]

    assert 500 == status
    assert ["Endpoint could not answer"] == [event["message"] for event in events]
    assert 200 == running.ask("/livez")[0]


def test_a_port_in_use_is_an_os_error(running):
    """The caller logs it and goes on without an endpoint."""
    site = Site(running.metrics.render, lambda: True, dict, running.scrapes.put)
    with pytest.raises(OSError, match="in use") as caught:
        Endpoint("127.0.0.1", running.endpoint.port, site)

    assert f"[Errno {errno.EADDRINUSE}] Address already in use" == str(caught.value)


def test_a_port_in_use_on_ipv4_only_is_not_missed():
    """All interfaces means that nobody else has the port on any of them."""
    with (
        socket.create_server(("0.0.0.0", 0)) as other,
        pytest.raises(OSError, match="in use") as caught,
    ):
        endpoint_module.listen("", other.getsockname()[1])

    assert errno.EADDRINUSE == caught.value.errno


def test_closing_stops_at_once_and_frees_the_port(running):
    """With clients connected, and the next endpoint can have the port."""
    subject = Running()
    port = subject.endpoint.port
    client = subject.connect()
    begun = time.monotonic()
    subject.endpoint.close()

    assert time.monotonic() - begun < BOUND / 2
    assert b"" == received(client)
    client.close()
    endpoint_module.listen("127.0.0.1", port).close()


def test_an_idle_endpoint_does_not_wake_up(running):
    """It sleeps until somebody calls: its thread is not scheduled meanwhile."""
    (thread,) = (each.native_id for each in threading.enumerate() if each.name == "endpoint")
    status = Path(f"/proc/self/task/{thread}/status")
    if not status.exists():
        pytest.skip("needs Linux's /proc to see a thread's context switches")
    running.ask("/livez")

    def switches():
        lines = status.read_text().splitlines()
        return [line for line in lines if line.startswith("voluntary_ctxt_switches")]

    before = None
    for _ in range(50):
        if before == (before := switches()):
            break
        time.sleep(0.3)
    else:
        pytest.fail("the thread keeps waking up")


def test_running_out_of_descriptors_is_survived_without_spinning():
    """Connections that cannot be accepted wait until descriptors are free again."""
    subject = Running()
    clients = [socket.socket() for _ in range(3)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        for client in clients:
            client.settimeout(BOUND)
            client.connect(("127.0.0.1", subject.endpoint.port))
            client.send(b"GET /livez HTTP/1.1\r\n\r\n")
        cpu = time.process_time()
        time.sleep(0.3)
        spent = time.process_time() - cpu
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert spent < 0.2
    for client in clients:
        assert received(client).endswith(b"ok\n")
        client.close()
    subject.endpoint.close()


SERVE_ALL = """
import socket, sys
from reporter.common.endpoint import listen
listener = listen("", 0)
listener.setblocking(True)
for address in sys.argv[1:]:
    with socket.create_connection((address, listener.getsockname()[1])):
        listener.accept()[0].close()
    print(address)
"""


def test_all_interfaces_means_both_families():
    """One port for IPv4 and IPv6, where the machine has both."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError as error:
        pytest.skip(f"this machine has no IPv6: {error}")
    done = subprocess.run(
        [sys.executable, "-c", SERVE_ALL, "127.0.0.1", "::1"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "127.0.0.1\n::1\n") == (done.returncode, done.stdout)


def test_all_interfaces_works_with_ipv6_turned_off():
    """As in a cluster whose nodes disable it by sysctl."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("a network namespace without IPv6 needs root, unshare and ip")
    script = (
        "ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"
        ' && exec "$0" -c "$1" 127.0.0.1'
    )
    done = subprocess.run(
        [unshare, "--net", "--mount", "sh", "-c", script, sys.executable, SERVE_ALL],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "127.0.0.1\n", "") == (done.returncode, done.stdout, done.stderr)


def test_a_single_address_is_only_that_address(running):
    """METRICS_ADDRESS=127.0.0.1 is not reachable from elsewhere."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", running.endpoint.port), timeout=BOUND)
