"""What headers of an upload say: Content-Disposition, Content-Digest and Result-Metadata."""

import json
import re
import unicodedata
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Final

from reporter.common.defaults import METADATA_BYTES
from reporter.common.objects import json_object
from reporter.common.text import clean, percent_decoded
from reporter.run.upload import metadata_dropped

_NAME_BYTES: Final = 255
_HEADER_CHARS: Final = 4 * 1024  # of a Content-Disposition: its reading holds up everybody

_TYPE = re.compile(r"\s*[!#$%&'*+\-.^_`|~0-9A-Za-z]+\s*(?:;|$)")
_PARAMETER = re.compile(
    r"""\s*(?P<name>[!#$%&'*+\-.^_`|~0-9A-Za-z]+)\s*=\s*
        (?:"(?P<quoted>(?:[^"\\]|\\.)*)"[^;]*|(?P<plain>[^;]*))(?:;|$)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\(["\\])')


def filename_of(content_disposition: str | None) -> str:
    """The base name that a Content-Disposition header gives; empty if it gives none that is usable.

    `filename*` (RFC 5987) goes before `filename`, which may be quoted or not; unquoted it ends at
    the next semicolon, spaces included. At most 255 bytes of UTF-8, without control characters.
    A header of more than 4 KiB gives none.
    """
    if content_disposition is None or len(content_disposition) > _HEADER_CHARS:
        return ""
    head = _TYPE.match(content_disposition)
    if head is None:
        return ""
    values: dict[str, str] = {}
    at = head.end()
    while parameter := _PARAMETER.match(content_disposition, at):
        quoted = parameter["quoted"]
        # Only these two are escapes: browsers send the backslashes of their paths as they are.
        value = parameter["plain"].strip() if quoted is None else _ESCAPED.sub(r"\1", quoted)
        values.setdefault(parameter["name"].lower(), value)
        at = parameter.end()
    return _base_name(_extended(values.get("filename*", ""))) or _base_name(
        values.get("filename", "")
    )


def declared_digest(header: str) -> str | None:
    """Return the SHA-256 that a Content-Digest header declares, in hexadecimal, or None.

    Other algorithms of a list are passed over. A value that is not 32 bytes of Base64 comes back as
    it is: no body has such a digest, so the upload fails, as one with a wrong digest does.
    """
    for item in header.split(","):
        name, _, value = item.strip().partition("=")
        if name.lower() == "sha-256":
            try:
                digest = b64decode(value.partition(";")[0].strip().strip(":"), validate=True)
            except Base64Error:
                return value
            return digest.hex()
    return None


def metadata_of(header: str) -> str:
    """Return what a Result-Metadata header says, as JSON: an object of texts.

    What cannot be kept is replaced by why.
    """
    found = json_object(header)
    if found is None:
        return metadata_dropped("not a JSON object") if header else ""
    told = json.dumps({_text(name): _text(value) for name, value in found.items()})
    return told if len(told) <= METADATA_BYTES else metadata_dropped("more than 4 KiB")


def _text(said: object) -> str:
    return clean(said if isinstance(said, str) else json.dumps(said), METADATA_BYTES)


def _extended(value: str) -> str:
    charset, _, rest = value.partition("'")
    _, tick, encoded = rest.partition("'")
    if not tick or charset.lower() not in ("utf-8", "iso-8859-1"):
        return ""
    try:
        return percent_decoded(encoded.encode()).decode(charset)
    except UnicodeError:
        return ""


def _base_name(name: str) -> str:
    name = re.split(r"[/\\]", name)[-1]
    name = "".join(char for char in name if unicodedata.category(char) != "Cc")
    # Bytes that are no UTF-8 arrive as lone surrogates, which no database column takes.
    name = name.encode("utf-8", "replace")[:_NAME_BYTES].decode("utf-8", "ignore")
    return "" if name in (".", "..") else name
