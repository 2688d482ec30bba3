"""What the process that reads a result is told, and what it answers."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:  # the process that reads is to have little in its memory
    from reporter.run.plan import Plugin
    from reporter.run.record import Record


UNPACKED_TOO_MUCH: Final = 3
"""The exit code of the process when there is more to unpack than the task allows."""


@dataclass(slots=True)
class Budget:
    """What reading the results of a plugin may still take.

    Seconds of the processor: by the wall clock a busy machine would decide verdicts.
    """

    seconds: float = 120.0
    unpacked: int = 4 * 2**30  # bytes

    @property
    def used_up(self) -> bool:
        """Whether nothing more is read."""
        return self.seconds <= 0 or self.unpacked <= 0


USED_UP: Final = "judging budget used up"


@dataclass(frozen=True, slots=True)
class Task:
    """A body to be read. `size` is in bytes, `name` that of the file it becomes if it is none.

    `home` is its directory in the tarball, below the plugin's. `depth` is that of the list
    its items are written to; `counted`: the statuses of branches are counts. `seconds` and
    `unpacked` are the most that it may take.
    """

    result_format: str
    files: tuple[str, ...]
    archive: bool
    size: int
    name: str
    home: str
    depth: int = 0
    counted: bool = False
    seconds: float = 0.0
    unpacked: int = 0

    @classmethod
    def of(
        cls, plugin: "Plugin", record: "Record", home: str, *, depth: int = 0, counted: bool = False
    ) -> Self:
        """Return what there is to read in a plugin's result."""
        return cls(
            plugin.result_format,
            plugin.result_files,
            record.archive,
            record.size,
            record.filename,
            home,
            depth,
            counted,
        )

    def text(self) -> str:
        """Write it as `read_task` reads it."""
        return json.dumps(asdict(self))


def read_task(text: str) -> Task:
    """Read what `Task.text` has written."""
    found = json.loads(text)
    return Task(**{**found, "files": tuple(found["files"])})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a result says: how many tests have which status, what failed first, and a note.

    The note says why something is unknown. Not `complete`: the process ended before its time.
    `seconds` and `unpacked` are what it took. `not_passed` is JSON as `results.not_passed`
    writes it, of a result that was judged only.
    """

    counts: Mapping[str, int] = field(default_factory=lambda: {"unknown": 1})
    failed: str = ""
    text: str = ""
    note: str = ""
    complete: bool = True
    seconds: float = field(default=0.0, compare=False)
    unpacked: int = field(default=0, compare=False)
    not_passed: bytes = field(default=b"", compare=False, repr=False)


def read_judgement(data: bytes) -> Judgement | None:
    """Read the answer of the process; None for anything else."""
    try:
        head, _, rest = data.partition(b"\n")
        found: Any = json.loads(head)
        return Judgement(
            found["counts"],
            found["failed"],
            found["text"],
            found["note"],
            seconds=found["seconds"],
            unpacked=found["unpacked"],
            not_passed=rest,
        )
    except (ValueError, TypeError, KeyError):
        return None
