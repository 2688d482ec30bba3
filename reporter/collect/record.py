"""What became of a gatherer: its status, and why; as `gather.json` has it."""

from dataclasses import dataclass
from typing import Any, Final

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
    by itself. `limit` is the one that it has reached: seconds, bytes or files; `stopped` says that
    the agent was asked to end.
    """

    name: str
    status: str
    exit: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    limit: str = ""
    stopped: bool = False
    bytes: int = 0
    files: int = 0
    error: str = ""
    stderr: str = ""

    @property
    def why(self) -> str:
        """Why it is not complete, in a few words; empty where it is."""
        said = []
        if self.limit:
            said.append(_TOO_MUCH[self.limit])
        elif self.signal:
            said.append(f"killed by signal {self.signal}")
        elif self.exit and self.status == FAILED:
            said.append(f"exit code {self.exit}")
        if self.stopped:
            said.append("stopped")
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
            "bytes": self.bytes,
            "files": self.files,
        }
        more = {
            "signal": self.signal,
            "limit": self.limit,
            "stopped": self.stopped,
            "error": self.error,
            "stderr": self.stderr,
        }
        return {**said, **{name: value for name, value in more.items() if value}}
