"""Jobs with verdicts on them, as reporters write them."""

from reporter.core.annotation import amend, encode_note
from reporter.core.condition import Attempt
from reporter.core.rows import Report
from tests.fakekube import make_job


def with_verdicts(
    *reports: Report,
    final: bool = True,
    attempt: Attempt | None = None,
    since: str = "2020-01-01T12:00:30Z",
    details=None,
    after=None,
    late=None,
    spec=None,
    status=None,
    **fields,
):
    """Return a Job with these reports, each under a type of its own, unchanged `since` then.

    `details`, `after` and `late` are the annotations', `fields` the Job's.
    """
    made = make_job(**fields)
    attempt = attempt or Attempt(f"{made['metadata']['name']}-x7k2p", "uid", 1.9e9, 1.9e9)
    made["spec"] |= spec or {}
    made["status"] |= status or {}
    conditions = list(made["status"].get("conditions", []))
    for number, report in enumerate(reports):
        kind = f"Other{number}" if number else "Available"
        note = encode_note(attempt, report, details or {}, final=final)
        for member, shown in (("after", after), ("late", late)):
            note = amend(note, member, shown) if shown else note
        annotations = made["metadata"].setdefault("annotations", {})
        annotations[f"status-reporter.io/{kind}"] = note
        conditions.append(
            {
                "type": kind,
                "status": report.status,
                "reason": report.reason,
                "message": report.message,
                "lastTransitionTime": since,
            }
        )
    made["status"]["conditions"] = conditions
    return made
