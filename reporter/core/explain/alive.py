"""What keeps a Pod going whose adapter has ended."""

from collections.abc import Iterator

from reporter.core.explain.finding import Finding, Object, problem
from reporter.core.explain.setting import Setup
from reporter.core.objects import items, number, section, text
from reporter.core.pod import find_adapter


def kept_alive(pod: Object, setup: Setup) -> Iterator[Finding]:
    """Name the regular containers that still run beside a reporter whose work is done."""
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
    name = text(section(pod, "metadata"), "name")
    for other, state in states.items():
        if "running" in state and other not in {adapter, setup.name}:
            yield problem(
                "kept-alive",
                f"The adapter of Pod {name} has ended, but container {other!r} still runs: it "
                "keeps the Pod, and so the Job, from ending.",
                f"Make {other!r} a native sidecar (an init container with restartPolicy: Always), "
                "or let it end by itself when the adapter has.",
            )
