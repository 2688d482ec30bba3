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
_VALIDITY: Final = re.compile(rb"\x30[\x1e\x20\x22]" + _TIME + _TIME)
"""The one sequence of two times in DER, which leaves no choice how to write them (RFC 5280)."""


def not_after(pem: str) -> float:
    """Return the end of the first certificate in Unix seconds. ValueError if there is none."""
    block = _BLOCK.search(pem)
    if block is None:
        raise ValueError("not a PEM certificate")
    try:
        data = base64.b64decode("".join(block[2].split()), validate=True)
    except binascii.Error:
        raise ValueError("not the base64 of a certificate") from None
    validity = _VALIDITY.search(data)
    if validity is None:
        raise ValueError("a certificate without an expiry time")
    short, long = validity[3], validity[4]
    # Two digits of the year: 50 to 99 are of the last century.
    written = long or (b"19" if short[:2] >= b"50" else b"20") + short
    try:
        return datetime.strptime(written.decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise ValueError("a certificate with an invalid expiry time") from None
