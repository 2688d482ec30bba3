"""The API server's refusals as `Status` objects with its own wordings."""

from typing import Any

from tests.fakekube.kinds import KINDS


class ApiError(Exception):
    """A request the API server refuses: HTTP status and `Status` body."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.body = status(code, reason, message, **details)


class NotImitated(Exception):
    """The real API server can do this; the fake cannot. It answers 501."""


def status(code: int, reason: str, message: str, **details: Any) -> dict[str, Any]:
    """Return a Status object of kind Failure."""
    found: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
    }
    if reason:
        found["reason"] = reason
    if details:
        found["details"] = details
    return found | {"code": code}


def qualified(kind: str) -> str:
    """Return `pods` or `jobs.batch`."""
    # Whoever writes an Event does so by its new group.
    return "events.events.k8s.io" if kind == "Event" else KINDS[kind].qualified


def _details(kind: str, name: str) -> dict[str, Any]:
    group = "events.k8s.io" if kind == "Event" else KINDS[kind].group
    resource = KINDS[kind].plural
    return {"name": name, **({"group": group} if group else {}), "kind": resource}


def not_found(kind: str, name: str) -> ApiError:
    """404 for an object of that name."""
    message = f'{qualified(kind)} "{name}" not found'
    return ApiError(404, "NotFound", message, **_details(kind, name))


def already_exists(kind: str, name: str) -> ApiError:
    """409 for a name that is taken."""
    message = f'{qualified(kind)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, **_details(kind, name))


def conflict(kind: str, name: str) -> ApiError:
    """409 for a stale resourceVersion."""
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(kind)} "{name}": the object has been '
        "modified; please apply your changes to the latest version and try again",
        **_details(kind, name),
    )


def conflict_uid(kind: str, name: str, wanted: str, live: str) -> ApiError:
    """409 for a precondition that another object of that name does not meet."""
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {qualified(kind)} "{name}": the UID in the '
        f"precondition ({wanted}) does not match the UID in record ({live}). The object might "
        "have been deleted and then recreated",
        **_details(kind, name),
    )


def no_namespace(name: str) -> ApiError:
    """404 for whatever should be created in it."""
    return ApiError(404, "NotFound", f'namespaces "{name}" not found', name=name, kind="namespaces")


def invalid(
    kind: str,
    name: str,
    field: str,
    why: str,
    *,
    reason: str = "FieldValueInvalid",
    times: int = 2,
) -> ApiError:
    """422 by validation, with its cause."""
    group = KINDS[kind].group
    return ApiError(
        422,
        "Invalid",
        f'{kind}{group and "."}{group} "{name}" is invalid: {field}: {why}',
        name=name,
        **({"group": group} if group else {}),
        kind=kind,
        # Twice, as the real one names a uid: once for all objects' rules, once for the Job's.
        causes=[{"reason": reason, "message": why, "field": field}] * times,
    )


def undecodable(patch: str, why: str) -> ApiError:
    """422 for a patch that makes no Job. As the real one it repeats the whole patch."""
    message = f"Invalid value: {patch!r}: {why}"
    return ApiError(
        422,
        "Invalid",
        f' "" is invalid: patch: {message}',
        causes=[{"reason": "FieldValueInvalid", "message": message, "field": "patch"}],
    )
