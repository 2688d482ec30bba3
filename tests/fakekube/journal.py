"""What was asked and answered, in order."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Entry:
    """One request. `status` is None until it is answered, and for ever when it never is."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    time: float
    """Monotonic, at the end of the request's body."""
    status: int | None = None
    answer: Any = None
    """The JSON object of the answer; None for a watch or an answer that is no JSON."""
    events: list[dict[str, Any]] = field(default_factory=list)
    """What a watch has sent so far."""
    ended: float | None = None
    """Monotonic, when the answer (of a watch: the stream) ended, however it did."""
    fault: object = None
    """The scripted fault that struck, if one did."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") in {"true", "1"}
