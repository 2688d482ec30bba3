"""Where a server is, what to show and to trust there, and when it refuses what was shown."""

import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Address:
    """Where it is and what to show and to trust there.

    `ca` is the CA's certificates in PEM, empty for those of the system. `certificate` and `key` are
    files. `server_name` is what the server's certificate says where that is not the URL's host.
    Without `verify` any certificate is taken. Nothing but `url` is used for plain HTTP.
    """

    url: str
    ca: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""
    verify: bool = True


def tls_context(address: Address) -> ssl.SSLContext:
    """Return what TLS needs there. ValueError for certificates that cannot be used, OSError."""
    try:
        context = ssl.create_default_context(cadata=address.ca or None)
        if not address.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if address.certificate:
            context.load_cert_chain(
                Path(address.certificate),
                Path(address.key) if address.key else None,
                password=_no_pass_phrase,
            )
    except ssl.SSLError as error:
        reason = error.reason or str(error)
        raise ValueError(f"the certificates cannot be used: {reason}") from None
    return context


def _no_pass_phrase() -> str:
    """Take the place of OpenSSL's question, which a script would wait for."""
    raise ValueError("the key is encrypted: use a key without a passphrase")


def is_refusal(error: Exception) -> bool:
    """Return whether it is the server's alert about our certificate, or about there being none."""
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLCertVerificationError):
        return False
    return any(word in (error.reason or "") for word in ("CERT", "UNKNOWN_CA"))
