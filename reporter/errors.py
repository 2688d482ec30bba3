"""Domain errors. Each says what happened in the field's words and whether trying again can help.

Only `kube/answers.py` maps HTTP answers to these. What a program makes of them, and with which code
it exits, is decided by the program.
"""


class ReporterError(Exception):
    """Base of everything raised on purpose in this project."""


class InvalidPayload(ReporterError):
    """Bytes that do not fit their published contract. The text is safe to show to people."""


class SettingsError(ReporterError):
    """Settings that break their rules: one line per problem in `problems`."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class MissingFile(SettingsError):
    """A file that a setting names is not there; it may come."""


class KubeError(ReporterError):
    """The Kubernetes API did not do what was asked.

    `failure` is a short class name for metrics and logs, `retry_after` the server's own wish in
    seconds, `said` the server's words without ours, on one line; empty where it said nothing.
    """

    failure = "error"

    def __init__(self, message: str, *, retry_after: float | None = None, said: str = "") -> None:
        super().__init__(message)
        self.retry_after, self.said = retry_after, said


class NotFound(KubeError):
    """404. `name` is the object's that is missing, as the server says; else it may be the path."""

    failure = "not_found"

    def __init__(self, message: str, *, name: str = "", said: str = "") -> None:
        super().__init__(message, said=said)
        self.name = name


class NoAggregatorPod(NotFound):
    """No Pod of the namespace, or of any, is labelled as an aggregator's."""


class Gone(KubeError):
    """Another object has that name now (422 on `metadata.uid`)."""

    failure = "gone"


class Conflict(KubeError):
    """409: somebody wrote since the object was read. Read and decide again."""

    failure = "conflict"


class AlreadyExists(Conflict):
    """409: an object of that name was there before."""


class Forbidden(KubeError):
    """403: retried like an outage, because a RoleBinding may come late."""

    failure = "forbidden"


class Denied(Forbidden):
    """403 by admission, not for want of a right: a quota, a policy, a namespace that goes away."""

    failure = "denied"


class Unauthorized(KubeError):
    """401 also with a freshly read token."""

    failure = "unauthorized"


class InvalidRequest(KubeError):
    """400, 405, 406, 413, 415, 422: the request itself is wrong, or was not carried out as sent.

    Sending the same again helps only if a policy or a webhook changes meanwhile.
    """

    failure = "refused"


class Unavailable(KubeError):
    """No usable answer: 429, 5xx, timeout, reset, TLS or DNS trouble, garbage in the body."""

    failure = "unavailable"


class Expired(Unavailable):
    """410: the pages of a list can no longer be continued as of the moment of its first page.

    `more` continues it all the same, with what may have changed since; empty where that is not
    offered.
    """

    def __init__(self, message: str, *, more: str = "", said: str = "") -> None:
        super().__init__(message, said=said)
        self.more = more


class TooLarge(Unavailable):
    """The answer is larger than was asked for; a smaller page may fit."""


class Silence(Unavailable):
    """Nothing has come on a watch for longer than bookmarks usually take.

    The connection is dead, or no Pod of the cluster has changed for a while: a new watch tells.
    """
