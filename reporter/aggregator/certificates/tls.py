"""TLS contexts of the two listeners. The contents of certificates are `run.py`'s matter.

Always a bare context: what `ssl.create_default_context` adds depends on the Python version and on
the environment (SSLKEYLOGFILE).
"""

import ssl
from collections.abc import Callable
from pathlib import Path

from reporter.common.private_file import as_file
from reporter.pki.issuing import CertificateError, Pair
from reporter.pki.status import issue_status

_LONG = 366 * 86_400.0  # seconds: longer than any run


def worker_context(ca: bytes, server: Pair) -> ssl.SSLContext:
    """Return the worker listener's context: nobody gets in without a certificate of this CA (PEM).

    Raises CertificateError when one of them cannot be used.
    """
    try:
        context = _context_of(server)
        context.load_verify_locations(cadata=ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise CertificateError(
            f"the worker listener's certificates cannot be used: {error}"
        ) from None
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def read_ca(path: Path) -> bytes:
    """Return the CA certificates of a PEM file. Raises CertificateError when it has none."""
    try:
        # Bundles may have anything between the blocks.
        text = path.read_bytes().decode("ascii", "ignore")
        _server_context().load_verify_locations(cadata=text)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{path}: {_why(error)}") from None
    return text.encode("ascii")


def status_context(certificate: Path, key: Path, client_ca: Path | None = None) -> ssl.SSLContext:
    """Return the status listener's context from PEM files.

    With `client_ca` clients are asked for a certificate; who has none gets in, for the probes. Who
    shows one of another CA does not. Raises CertificateError when a file cannot be used.
    """
    context = _server_context()
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{certificate} with {key}: {_why(error)}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(cafile=client_ca)
        except (OSError, ValueError) as error:
            raise CertificateError(f"{client_ca}: {_why(error)}") from None
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


class StatusContext:
    """The status listener's context, made anew when one of its files has changed.

    `changed(error)` is called after each change, with the reason in words where the new files
    cannot be used: then the context before goes on serving, and the next change is tried.
    `stand_in(error)` gives the first context where a file is missing; without it, and for files
    that cannot be used, CertificateError is raised.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        client_ca: Path | None,
        changed: Callable[[str | None], None],
        stand_in: Callable[[str], ssl.SSLContext] | None = None,
    ) -> None:
        self._paths = (certificate, key, client_ca)
        self._changed = changed
        self._seen = self._stamps()
        try:
            self._context = status_context(*self._paths)
        except CertificateError as error:
            if stand_in is None or None not in self._seen:
                raise
            self._context = stand_in(str(error))

    def __call__(self) -> ssl.SSLContext:
        """Return the context for a new connection. Looks at the files' times, which is quick."""
        stamps = self._stamps()
        if stamps != self._seen:
            self._seen = stamps
            try:
                self._context = status_context(*self._paths)
            except CertificateError as error:
                # Certificate and key are often replaced one after the other: half of a change.
                self._changed(str(error))
            else:
                self._changed(None)
        return self._context

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(path) for path in self._paths if path is not None]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()  # through the links by which the kubelet swaps a Secret
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def stand_in_context(now: float) -> ssl.SSLContext:
    """Return a context that nobody can trust: for probes and port-forwards, which do not ask.

    No client's certificate is asked for, so nobody from elsewhere can read anything.
    """
    return _context_of(issue_status(["localhost"], now=now, seconds=_LONG).server)


def _context_of(server: Pair) -> ssl.SSLContext:
    context = _server_context()
    with as_file(server.certificate + server.key) as path:
        context.load_cert_chain(path, password=_no_password)
    return context


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


def _no_password() -> str:
    # Without it OpenSSL asks for one on the terminal, and waits.
    raise ValueError("the key is encrypted")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not PEM, or not the key of this certificate ({error.reason or error})"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
