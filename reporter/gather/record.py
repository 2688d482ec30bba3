"""What became of a gatherer: its status, and why; as `gather.json` has it."""

from dataclasses import dataclass, field
from typing import Any, Final

from reporter.gather.limits import Left

COMPLETE, PARTIAL, NOT_APPLICABLE, FAILED = "complete", "partial", "not_applicable", "failed"
_TOO_MUCH: Final = {
    "seconds": "took too long",
    "bytes": "wrote too much",
    "files": "wrote too many files",
}


@dataclass(frozen=True, slots=True)
class GathererRecord:
    """What became of one gatherer, as its `gather.json` has it.

    `status` is complete, partial, not_applicable or failed; `exit` its code, None if it did not end
    by itself. `limit` is the one at which it was ended: seconds, bytes or files; `stopped` says
    that the agent was asked to end. `outside` is what it left beside its directory, and is gone.
    """

    name: str
    status: str
    exit: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    limit: str = ""
    stopped: bool = False
    left: Left = field(default_factory=lambda: Left(0, 0))
    outside: tuple[str, ...] = ()
    error: str = ""
    stderr: str = ""

    @property
    def why(self) -> str:
        """Why it is not complete, in a few words; empty where it is."""
        said = []
        if self.limit:
            said.append(f"killed: {_TOO_MUCH[self.limit]}")
        elif self.signal:
            said.append(f"killed by signal {self.signal}")
        elif self.exit and self.status == FAILED:
            said.append(f"exit code {self.exit}")
        if self.stopped:
            said.append("stopped")
        if self.left.truncated:
            said.append("output cut off")
        if self.outside:
            said.append(f"wrote outside its directory: {', '.join(self.outside)}")
        if self.error:
            said.append(self.error)
        if not said and self.status != COMPLETE:
            said += self.stderr.splitlines()[:1]
        return "; ".join(said)

    def document(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        said: dict[str, Any] = {
            "api_version": "v1",
            "name": self.name,
            "status": self.status,
            "exit": self.exit,
            "seconds": round(self.seconds, 3),
            "bytes": self.left.bytes,
            "files": self.left.files,
            "truncated": self.left.truncated,
        }
        more = {
            "signal": self.signal,
            "limit": self.limit,
            "stopped": self.stopped,
            "removed": self.left.removed,
            "outside": list(self.outside),
            "error": self.error,
            "stderr": self.stderr,
        }
        return {**said, **{name: value for name, value in more.items() if value}}
