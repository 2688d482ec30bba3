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
_TIME: Final = rb"(?:\x17\x0d([0-9]{12})|\x18\x0f([0-9]{14}))Z"  # UTCTime or GeneralizedTime
_VALIDITY: Final = re.compile(_TIME + _TIME)
_VERSION: Final = 0xA0


def not_after(pem: str) -> float:
    """Return the end of the first certificate in Unix seconds. ValueError if there is none."""
    block = _BLOCK.search(pem)
    if block is None:
        raise ValueError("not a PEM certificate")
    try:
        data = base64.b64decode("".join(block[2].split()), validate=True)
    except binascii.Error:
        raise ValueError("not the base64 of a certificate") from None
    try:
        signed = _elements(_elements(data)[0][1])[0][1]
        fields = [content for tag, content in _elements(signed) if tag != _VERSION]
        validity = _VALIDITY.fullmatch(fields[3])  # behind serial number, algorithm and issuer
    except IndexError:
        raise ValueError("not a certificate, or a truncated one") from None
    if validity is None:
        raise ValueError("a certificate without an expiry time")
    short, long = validity[3], validity[4]
    # Two digits of the year: 50 to 99 are of the last century.
    written = long or (b"19" if short[:2] >= b"50" else b"20") + short
    try:
        return datetime.strptime(written.decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ValueError("a certificate with an invalid expiry time") from None


def _elements(data: bytes) -> list[tuple[int, bytes]]:
    """Return the tag and the content of each DER element. IndexError if one is cut off."""
    found, at = [], 0
    while at < len(data):
        size, start = data[at + 1], at + 2
        if size >= 0x80:  # so many bytes of the size follow
            start += size - 0x80
            size = int.from_bytes(data[at + 2 : start])
        if start + size > len(data):
            raise IndexError
        found.append((data[at], data[start : start + size]))
        at = start + size
    return found
