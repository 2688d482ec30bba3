"""PEM texts: what is in them, and keys into TLS without a file on disk.

Standard library only. Nothing here ever repeats a key in a message.
"""

import re
import ssl

from reporter.common.private_file import as_file

_BLOCK = re.compile(
    r"^-----BEGIN (?P<label>[A-Z0-9 ]+)-----[ \t]*\r?\n.*?^-----END (?P=label)-----[ \t\r]*$",
    re.MULTILINE | re.DOTALL,
)
_CERTIFICATES = ("CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
_KEYS = ("EC PRIVATE KEY", "PRIVATE KEY", "RSA PRIVATE KEY")


class PemError(ValueError):
    """A text that is not the expected PEM. The message is for people and repeats nothing of it."""


def blocks(text: str) -> list[tuple[str, str]]:
    """List the PEM blocks of a text in its order: the label, and the block with a newline."""
    return [(m["label"], m[0].rstrip() + "\n") for m in _BLOCK.finditer(text)]


def certificates(text: str) -> list[str]:
    """List the certificates of a text. Raises `PemError` when there is none."""
    found = [block for label, block in blocks(text) if label in _CERTIFICATES]
    if not found:
        raise PemError("has no PEM block CERTIFICATE")
    return found


def private_key(text: str) -> str:
    """Find the one key of a text: SEC1 (`EC PARAMETERS` before it or not), PKCS#8 or RSA.

    Raises `PemError`.
    """
    found = blocks(text)
    for label, block in found:
        if label in _KEYS:
            if "Proc-Type: 4,ENCRYPTED" in block:
                break
            return block
    if any("ENCRYPTED" in block for _, block in found):
        raise PemError("is encrypted; a key without a passphrase is needed")
    raise PemError("has no PEM block EC PRIVATE KEY, PRIVATE KEY or RSA PRIVATE KEY")


def check_certificate(text: str) -> None:
    """Check that OpenSSL can read this certificate. Raises `PemError`."""
    try:
        bare_context().load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError, TypeError):  # TypeError: not in ASCII
        raise PemError("is not a certificate") from None


def bare_context() -> ssl.SSLContext:
    """Make a context that trusts nobody and ignores all environment variables.

    `ssl.create_default_context` and urllib3's own write every session key to `SSLKEYLOGFILE`, which
    a plugin's environment may set, and differ in strictness between Python versions.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_identity(context: ssl.SSLContext, chain: str, key: str) -> None:
    """Give a context its own certificate (leaf first) and key. Raises `PemError`."""
    try:
        text = (chain + key).encode("ascii")
    except UnicodeEncodeError:
        raise PemError("cannot be used (not in ASCII)") from None
    # Python's `ssl` reads keys from files only.
    with as_file(text) as path:
        try:
            # Without an answer to the question for a passphrase OpenSSL asks on the terminal.
            context.load_cert_chain(path, password="")
        except ssl.SSLError as error:
            reason = (error.reason or "").replace("_", " ").lower()
            unknown = f"cannot be used ({reason or 'unreadable'})"
            raise PemError(_IDENTITY.get(reason, unknown)) from None


_IDENTITY = {
    "key values mismatch": "does not belong to CLIENT_CERT",
    "key type mismatch": "does not belong to CLIENT_CERT",
}
