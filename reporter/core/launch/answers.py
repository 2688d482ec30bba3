"""What the API server's refusal of a plugin's object means: never, or not now."""

import re

_RIGHTS = re.compile(r'User ".*" cannot \w+ resource')
"""RBAC's words. A Role can come back; a quota or an admission policy speaks about this object."""


def for_good(status: int, message: str) -> bool:
    """Return whether a POST was refused for what it wants, so that the entry has failed.

    Everything else is trouble with the API server, which is nobody's failure.
    """
    if status == 403:
        return not (_RIGHTS.search(message) or "being terminated" in message)
    return status in {400, 413, 422}
