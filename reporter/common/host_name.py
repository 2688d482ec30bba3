"""Whether a text can be the name of a host."""

_LONGEST = 253


def is_host(text: str) -> bool:
    """Whether it can be looked up: parts of 1 to 63 bytes between dots, 253 in all; or an address.

    A dot at the end is one of a full name.
    """
    try:
        return 0 < len(text.encode("idna").rstrip(b".")) <= _LONGEST
    except UnicodeError:
        return False
