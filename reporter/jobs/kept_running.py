"""Which containers keep a Pod running after its adapter has ended."""

from collections.abc import Iterator

from reporter.common.objects import items, moment, number, section, text
from reporter.jobs.finding import Finding, Object, problem
from reporter.jobs.setting import Setup
from reporter.verdict.pod import find_adapter


def kept_alive(pod: Object, setup: Setup) -> Iterator[Finding]:
    """Yield the regular containers that run longer than the adapter, or did so until a deadline."""
    adapter, _, _ = find_adapter(pod, setup.names)
    states = {
        text(each, "name"): section(each, "state")
        for each in items(section(pod, "status"), "containerStatuses")
    }
    ended = section(states.get(adapter, {}), "terminated")
    policy = text(section(pod, "spec"), "restartPolicy")
    again = policy == "OnFailure" and number(ended, "exitCode") != 0
    if not ended or again or "deletionTimestamp" in section(pod, "metadata"):
        return
    deadline = text(section(pod, "status"), "reason") == "DeadlineExceeded"
    name = text(section(pod, "metadata"), "name")
    for other, state in states.items():
        if other in {adapter, setup.name}:
            continue
        if "running" in state:
            how = "still runs: it keeps"
        elif deadline and _longer(section(state, "terminated"), ended):
            how = "ran until the deadline: it kept"
        else:
            continue
        yield problem(
            "kept-alive",
            f"The adapter of Pod {name} has ended, but container {other!r} {how} the Pod, and so "
            "the Job, from ending.",
            f"Make {other!r} a native sidecar (an init container with restartPolicy: Always), or "
            "let it exit when the adapter has ended.",
        )


def _longer(run: Object, adapter: Object) -> bool:
    """Return whether a run ended later than the adapter's; the API's times are whole seconds."""
    at, before = moment(run, "finishedAt"), moment(adapter, "finishedAt")
    return at is not None and before is not None and at > before + 1
