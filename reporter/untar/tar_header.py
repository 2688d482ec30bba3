"""The fields of tar headers: bytes to names, numbers and pax records. Pure."""

from typing import Final

from reporter.untar.values import BadArchive

NAME_BYTES: Final = 255
_SHOWN_BYTES: Final = 200


def damaged() -> BadArchive:
    """Return the error for a header that makes no sense."""
    return BadArchive("a tar header is damaged")


def sums_up(header: bytes) -> bool:
    """Whether a header has the checksum that it says it has."""
    try:
        said = number(header[148:156])
    except BadArchive:
        return False
    total = sum(header) - sum(header[148:156]) + 8 * ord(" ")
    if said == total:
        return True
    # Old writers summed up signed bytes.
    return said == total - 256 * sum(byte > 127 for byte in header[:148] + header[156:])


def number(field: bytes) -> int:
    """A number of a header: octal digits, or GNU's binary form with the highest bit set."""
    if field[0] & 0x80:
        if field[0] & 0x40:
            raise damaged()  # it would be negative
        return int.from_bytes(bytes((field[0] & 0x3F,)) + field[1:], "big")
    digits = text(field.strip(b" \0")).strip(b" ")
    if digits.strip(b"01234567"):
        raise damaged()
    return int(digits or b"0", 8)


def text(field: bytes) -> bytes:
    """A text of a header, which ends with a NUL or with its field."""
    return field.split(b"\0", 1)[0]


def name(header: bytes) -> bytes:
    """The name that a header itself gives."""
    last = text(header[:100])
    if header[257:263] != b"ustar\0":
        return last  # GNU's old form has other things where the prefix is
    star = header[508:512] == b"tar\0"
    prefix = text(header[345 : 476 if star else 500])
    return prefix + b"/" + last if prefix else last


def pax(data: bytes) -> dict[bytes, bytes]:
    """The records of a pax header; an empty value takes one back."""
    records: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        blank = data.find(b" ", at, at + 8)
        digits = data[at:blank] if blank > 0 else b""
        if not digits.isdigit():
            raise damaged()
        end = at + int(digits)
        key, equals, value = data[blank + 1 : end - 1].partition(b"=")
        if end > len(data) or end <= blank or data[end - 1 : end] != b"\n" or not equals:
            raise damaged()
        if value:
            records[key] = value
        else:
            records.pop(key, None)
        at = end
    return records


def pax_size(value: bytes) -> int:
    """The size that a pax record gives."""
    if not value.isdigit() or len(value) > 19:
        raise damaged()
    return int(value)


def components(raw: bytes, limit: int) -> tuple[bytes, ...]:
    """The parts of a member's path, none of which leads anywhere else; none for the root."""
    if len(raw) > limit:
        raise BadArchive(f"a path is longer than {limit} bytes")
    path = tuple(part for part in raw.split(b"/") if part not in (b"", b"."))
    if b"\0" in raw or b".." in path:
        raise BadArchive(f"the path is not allowed: {show(raw)}")
    if any(len(part) > NAME_BYTES for part in path):
        raise BadArchive(f"a file name is longer than {NAME_BYTES} bytes")
    return path


def show(raw: bytes) -> str:
    """Bytes of a path for people: one line, without control characters, cut."""
    shown = raw.decode("utf-8", "backslashreplace")
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
    return shown.encode()[:_SHOWN_BYTES].decode(errors="ignore").strip()
