"""When a certificate ends, read from its PEM text; nothing else of X.509.

The standard library can verify a certificate but not read one, and the link must not need more.
"""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Final

_BLOCK: Final = re.compile(
    r"-----BEGIN ((?:X509 |TRUSTED )?CERTIFICATE)-----\s(.*?)-----END \1-----", re.DOTALL
)
_SEQUENCE, _EXPLICIT_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18


def not_after(pem: str) -> float:
    """Return the end of the first certificate in Unix seconds. ValueError if there is none."""
    found = _BLOCK.search(pem)
    if found is None:
        raise ValueError("not a PEM certificate")
    try:
        data = base64.b64decode("".join(found[2].split()), validate=True)
    except binascii.Error:
        raise ValueError("not the base64 of a certificate") from None
    try:
        return _validity_end(data)
    except IndexError:
        raise ValueError("a truncated certificate") from None


def _validity_end(data: bytes) -> float:
    """Walk Certificate > TBSCertificate > version, serial, algorithm, issuer, validity."""
    _, certificate, _ = _element(data, expected=_SEQUENCE)
    _, body, _ = _element(certificate, expected=_SEQUENCE)
    if body[:1] == bytes([_EXPLICIT_VERSION]):
        _, _, body = _element(body)
    for _ in ("serial", "algorithm", "issuer"):
        _, _, body = _element(body)
    _, validity, _ = _element(body, expected=_SEQUENCE)
    _, _, rest = _element(validity)
    tag, value, _ = _element(rest)
    return _time(tag, value)


def _element(data: bytes, expected: int | None = None) -> tuple[int, bytes, bytes]:
    """Return tag, content and what follows of one DER element. IndexError if it is cut off."""
    tag, length, at = data[0], data[1], 2
    if length & 0x80:
        count = length & 0x7F
        if not 1 <= count <= 4:
            raise ValueError("not DER")
        length = int.from_bytes(data[2 : 2 + count], "big")
        at += count
    if expected is not None and tag != expected:
        raise ValueError("not a certificate")
    if at + length > len(data):
        raise IndexError
    return tag, data[at : at + length], data[at + length :]


def _time(tag: int, value: bytes) -> float:
    written = value.decode("ascii", "replace")
    if tag == _UTC_TIME:
        # Two digits of the year: 50 to 99 are of the last century (RFC 5280).
        century = "19" if written[:2] >= "50" else "20"
        written = century + written
    elif tag != _GENERALIZED_TIME:
        raise ValueError("a certificate without an expiry time")
    try:
        return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ValueError("a certificate with an invalid expiry time") from None
