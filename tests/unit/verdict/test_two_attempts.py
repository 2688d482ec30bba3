"""Two Pods of one Job, and a restarted reporter: every interleaving of their reads and writes.

Each writer reads what stands, decides, and writes only if nobody has written since; on a conflict
it reads again. Every order of those steps is played through, with answers that get lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reporter.verdict.condition import (
    Attempt,
    Owner,
    Standing,
    Statement,
    build_patch,
    decode_note,
    encode_annotation,
    owner,
    read_standing,
    worth_writing,
)
from reporter.verdict.rows import Report
from tests.fakekube.merge import merge_conditions
from tests.situations import at

KEY = "status-reporter.io/Available"
RUNS = Report("A", "Unknown", "AdapterRunning", "Adapter container is running")
AWAY = Report("N", "Unknown", "AdapterInterrupted", "Pod was deleted")
FAILED = Report("X", "False", "AdapterExitedWithError", "Adapter container exited with code 1")
DONE = Report("R", "True", "AllChecked", "12 of 12")

OLD = Attempt("job-a", "uid-a", at(0), at(1))
NEW = Attempt("job-b", "uid-b", at(10), at(11))
TWIN = Attempt("job-c", "uid-c", at(0), at(1))  # created in the same second as OLD
UNREAD = Attempt("job-d", "", None, at(20))  # its Pod cannot be read

Job = tuple[str, tuple[tuple[str, str, str, str, str], ...], int]  # annotation, conditions, version
FOREIGN = ("Suspended", "False", "JobResumed", "Job resumed", "2026-01-01T00:00:00Z")
FIELDS = ("type", "status", "reason", "message", "lastTransitionTime")


@dataclass(frozen=True)
class Writer:
    """One reporter: what it says one after the other, and what it has read."""

    attempt: Attempt
    says: tuple[tuple[Report, bool], ...]  # report, final
    read: Standing | None = None

    @property
    def over(self) -> bool:
        """Whether it has said everything."""
        return not self.says


def read(job: Job) -> Standing:
    """GET."""
    annotation, conditions, version = job
    shown = {
        "metadata": {"uid": "job-uid", "resourceVersion": str(version)},
        "status": {"conditions": [dict(zip(FIELDS, c, strict=True)) for c in conditions]},
    }
    return read_standing(shown, "Available", decode_note(annotation))


def patched(job: Job, patch: dict[str, Any]) -> Job | None:
    """PATCH: the Job after it, or nothing for a conflict."""
    _, conditions, version = job
    if patch["metadata"]["resourceVersion"] != str(version):
        return None
    live = [dict(zip(FIELDS, c, strict=True)) for c in conditions]
    merged = merge_conditions(live, patch["status"]["conditions"])
    kept = tuple(tuple(condition[field] for field in FIELDS) for condition in merged)
    return patch["metadata"]["annotations"][KEY], kept, version + 1


def steps(job: Job, writer: Writer) -> Iterator[tuple[Job, Writer]]:
    """Everything that can come of one writer's next step."""
    (report, final), *rest = writer.says
    standing = writer.read
    if standing is None:
        yield job, replace(writer, read=read(job))
        return
    if owner(standing, writer.attempt) is Owner.NEWER:
        yield job, replace(writer, says=(), read=None)
        return
    if not worth_writing(standing, writer.attempt, report, final=final):
        yield job, replace(writer, says=tuple(rest))
        return
    note = encode_annotation(Statement(report, final, writer.attempt, {}, 0.0))
    after = patched(job, build_patch(standing, "Available", report, note, at(30)))
    again = replace(writer, read=None)
    if after is None:
        yield job, again
        return
    stood = decode_note(job[0])
    assert stood is None or not stood.attempt.same(writer.attempt) or not stood.final
    assert stood is None or not writer.attempt.older_than(stood.attempt)
    yield after, replace(writer, says=tuple(rest), read=read(after))
    yield after, again  # it was carried out, but the answer got lost


def ends(*writers: Writer) -> set[Job]:
    """Every Job that can stand when all have said everything."""
    first: Job = ("", (FOREIGN,), 1)
    found, seen, open_states = set(), {(first, writers)}, [(first, writers)]
    while open_states:
        job, now = open_states.pop()
        if all(writer.over for writer in now):
            found.add(job)
        for place, writer in enumerate(now):
            for after, moved in () if writer.over else steps(job, writer):
                state = (after, (*now[:place], moved, *now[place + 1 :]))
                if state not in seen:
                    seen.add(state)
                    open_states.append(state)
    return found


def says(*reports: Report) -> tuple[tuple[Report, bool], ...]:
    """Revisable reports, the last one final."""
    return tuple((report, report is reports[-1]) for report in reports)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param(OLD, NEW, id="created later"),
        pytest.param(OLD, TWIN, id="created in the same second"),
        pytest.param(NEW, UNREAD, id="the newer Pod cannot be read"),
    ],
)
@pytest.mark.parametrize("last", [DONE, FAILED, AWAY])
def test_the_newer_attempts_verdict_stands_in_the_end(older, newer, last):
    """Whoever reads, writes and loses an answer first; and nobody else's condition is touched."""
    found = ends(Writer(older, says(RUNS, AWAY, FAILED)), Writer(newer, says(RUNS, last)))

    assert found
    for annotation, conditions, _ in found:
        note = decode_note(annotation)
        assert (newer.pod, True, last.row) == (note.attempt.pod, note.final, note.row)
        assert {
            "Available": (last.status, last.reason, last.message),
            "Suspended": FOREIGN[1:4],
        } == {kind: tuple(rest[:3]) for kind, *rest in conditions}


def test_a_restarted_reporter_never_changes_its_own_final_verdict():
    """The first start may have written it just before it was killed, and the answer got lost."""
    first = Writer(NEW, says(RUNS, DONE))
    restarted = Writer(NEW, says(RUNS, FAILED))

    found = ends(first, restarted, Writer(OLD, says(RUNS, AWAY)))

    rows = {decode_note(annotation).row for annotation, _, _ in found}
    assert {"R", "X"} == rows  # whichever was first; each write checks that it replaces no final
