"""The connection file: where a run's status is served, and the certificates to read it with.

`{host_address, created_at, ca_cert, client_cert, client_key}`, certificates and key as PEM text;
and `server_name` where the server's certificate has another name than the address. Its contents and
whether they can be used; its place and who may read it are not here.
"""

import json
import math
from dataclasses import dataclass
from typing import Any, Final

from reporter.common.certificate import not_after
from reporter.common.objects import epoch, stamp
from reporter.common.text import go_duration

MAX_BYTES: Final = 1024 * 1024
MAX_AGE: Final = 48 * 3600
"""Seconds. A run's own file has no such limit: it is for that run, as are its certificates."""
_SLACK = 300.0  # seconds that the writer's clock may be ahead of ours
_MEMBERS: Final = {
    "host_address": "address",
    "created_at": "created_at",
    "ca_cert": "ca",
    "client_cert": "certificate",
    "client_key": "key",
    "server_name": "server_name",
}


class UnusableFile(ValueError):
    """The file cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class ConnectionFile:
    """`address` is a URL, or HOST:PORT for one with https. Empty text where there is none.

    `server_name` is what the server's certificate has to say, where that is not the address.
    """

    address: str
    created_at: float
    ca: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""


def encode(connection: ConnectionFile) -> bytes:
    """Return the file's content."""
    fields = {member: getattr(connection, field) for member, field in _MEMBERS.items()}
    fields["created_at"] = stamp(connection.created_at)
    if not connection.server_name:
        del fields["server_name"]
    return (json.dumps(fields, indent=1) + "\n").encode()


def decode(data: bytes, *, now: float, max_age: float | None = None) -> ConnectionFile:
    """Read it. Raises UnusableFile when it is broken, too old, or its certificates have ended.

    `now` is Unix seconds, `max_age` in seconds; without it MAX_AGE, none with a `server_name`.
    """
    members = _members(data)
    created = epoch(members["created_at"])
    if created is None:
        raise UnusableFile("is invalid: created_at is not a time")
    if created > now + _SLACK:
        raise UnusableFile(f"is invalid: created in the future, at {stamp(created)}")
    if max_age is None:
        max_age = math.inf if members["server_name"] else MAX_AGE
    if now - created > max_age:
        age, limit = go_duration(int(now - created)), go_duration(int(max_age))
        raise UnusableFile(f"is too old: created {age} ago, the limit is {limit} (--max-age)")
    for name in ("ca_cert", "client_cert"):
        if members[name]:
            _check_end(name, members[name], now)
    fields: dict[str, Any] = {field: members[member] for member, field in _MEMBERS.items()}
    return ConnectionFile(**{**fields, "created_at": created})


def _members(data: bytes) -> dict[str, str]:
    if len(data) > MAX_BYTES:
        raise UnusableFile(f"is invalid: larger than {MAX_BYTES} bytes")
    try:
        found = json.loads(data.decode())
    except (ValueError, RecursionError):
        raise UnusableFile("is invalid: not JSON") from None
    if not isinstance(found, dict):
        raise UnusableFile("is invalid: not a JSON object")
    members = {member: found.get(member, "") for member in _MEMBERS}
    for member, value in members.items():
        if not isinstance(value, str):
            raise UnusableFile(f"is invalid: {member} is not a string")
    if not members["host_address"]:
        raise UnusableFile("is invalid: host_address is missing")
    if bool(members["client_cert"]) != bool(members["client_key"]):
        raise UnusableFile("is invalid: client_cert and client_key must be given together")
    return members


def _check_end(name: str, pem: str, now: float) -> None:
    try:
        end = not_after(pem)
    except ValueError as error:
        raise UnusableFile(f"is invalid: {name}: {error}") from None
    if end <= now:
        raise UnusableFile(f"has expired: its {name} ended at {stamp(end)}")
