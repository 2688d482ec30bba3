"""To which run a Job belongs: its verdict is told there, whatever is on the Job."""

from collections.abc import Iterator

from reporter.common.objects import section, text
from reporter.jobs.finding import Finding, Object, info
from reporter.run.names import RUN_LABEL, key_of
from reporter.run.plan import GLOBAL


def of_run(job: Object) -> Iterator[Finding]:
    """Yield which run the Job belongs to, as what, and which command says more."""
    metadata = section(job, "metadata")
    run = text(section(metadata, "labels"), RUN_LABEL)
    if not run:
        return
    key = key_of(job)
    part = "its aggregator"
    if key is not None:
        part = f"plugin {key.plugin}" + ("" if key.node == GLOBAL else f" on node {key.node}")
    yield info(
        "of-run",
        f"The Job belongs to run {run} ({part}), whose status has the verdict.",
        f"status-ctl status {run} -n {text(metadata, 'namespace')}",
    )
