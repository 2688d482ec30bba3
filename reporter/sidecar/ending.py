"""How the reporter ends: which exit code tells what. Pure."""

from reporter.core.condition import Standing
from reporter.publish import Outcome

GOOD, NOT_REPORTED, BAD_SETTINGS = 0, 1, 2


def exit_code(outcome: Outcome, standing: Standing | None, policy: str) -> int:
    """Return the classic form's exit code; `policy` is EXIT_POLICY, `standing` what is on the Job.

    A Job that has gone or belongs to a newer attempt is a quiet end.
    """
    if outcome in {Outcome.SUPERSEDED, Outcome.JOB_GONE}:
        return GOOD
    if outcome in {Outcome.GAVE_UP, Outcome.JOB_NEVER_SEEN}:
        return NOT_REPORTED
    if standing is None or standing.note is None:
        return NOT_REPORTED
    if policy == "never":
        return GOOD
    if standing.note.row not in {"R", "S"}:
        return NOT_REPORTED
    return NOT_REPORTED if policy == "failure" and standing.status != "True" else GOOD
