"""The verdicts on Jobs for pipelines: a test case for each Job, or an annotation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reporter.core.diagnosis.outcome import JobOutcome
from reporter.core.diagnosis.written_verdict import WrittenVerdict
from reporter.core.text import clean
from reporter.ctl.show.github import annotation, put_summary
from reporter.ctl.show.junit import Case, junit


@dataclass(frozen=True, slots=True)
class Waited:
    """What came of a Job; `why` says why it has no last verdict."""

    name: str
    outcome: JobOutcome
    verdicts: Sequence[WrittenVerdict]
    why: str = ""

    @property
    def lines(self) -> list[str]:
        """Each condition, in a line."""
        return [
            clean(f"{each.type}={each.status} {each.reason}: {each.message}", 4096)
            for each in self.verdicts
        ]


def as_junit(jobs: Sequence[Waited]) -> Iterator[str]:
    """Yield a report of one suite. A Job that is False or Unknown for good is a failure.

    One without a last verdict is an error.
    """
    yield from junit([("status-ctl wait", [_case(job) for job in jobs])])


def _case(job: Waited) -> Case:
    lines = job.lines
    text = "\n".join(lines)
    match job.outcome:
        case JobOutcome.GOOD:
            return Case("job.batch", job.name, text=text)
        case JobOutcome.FAILED:
            bad = [line for line, each in zip(lines, job.verdicts, strict=True) if not each.good]
            return Case("job.batch", job.name, "failure", bad[0], text)
        case JobOutcome.OPEN:
            return Case("job.batch", job.name, "error", job.why, text)


def as_github(job: Waited) -> Iterator[str]:
    """Yield an annotation for each condition, or one for a Job without a last verdict."""
    title = f"job.batch/{job.name}"
    if job.outcome is JobOutcome.OPEN:
        yield annotation("error", job.why, title=title)
        return
    for line, each in zip(job.lines, job.verdicts, strict=True):
        yield annotation("notice" if each.good else "error", line, title=title)


def put_github_summary(jobs: Sequence[Waited]) -> None:
    """Append a table to the step's summary, if this runs in a workflow. Raises OSError."""
    rows = [(job.name, str(job.outcome), line) for job in jobs for line in (job.lines or [job.why])]
    put_summary("status-ctl wait", ("Job", "Outcome", "Verdict"), rows)
