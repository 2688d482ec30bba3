"""Reads a run's status from the aggregator's Pod: the requests only. `run` interprets it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from reporter.errors import Forbidden, KubeError, NoAggregatorPod, NotFound
from reporter.run.names import selector
from reporter.run.pod_status import LABELS, Reading, newest_first, pick_pod, read_status
from reporter.run.view import ReadOutcome

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

DEFAULT_POD = "sonobuoy"
"""The aggregator's Pod where none is labelled as one."""


def find_aggregator(
    api: "KubeApi", namespace: str | None, *, run: str = "", timeout: float = 5.0
) -> tuple[Mapping[str, Any], str]:
    """Return the Pod that is labelled as an aggregator's, and a remark on the choice.

    The newer label wins. With `run`, only the Pod that was launched for it counts. Raises
    KubeError: `NoAggregatorPod` when there is none. `timeout` in seconds is for each request.
    """
    for name, value in LABELS[:1] if run else LABELS:
        wanted = f"{name}={value}" + (f",{selector(run)}" if run else "")
        # All: those of an aggregator that was evicted again and again stay.
        pods: Sequence[Mapping[str, Any]] = list(
            api.list_all("Pod", namespace, wanted, timeout=timeout)
        )
        picked = pick_pod(newest_first(pods)[:1] if run else pods)
        if picked.pod is not None:
            return picked.pod, picked.warning
    raise NoAggregatorPod(not_found(run, [namespace]))


def not_found(run: str, namespaces: Iterable[str | None]) -> str:
    """Say where a run was looked for, the only one unless it is named."""
    places = " or ".join("" if each is None else repr(each) for each in dict.fromkeys(namespaces))
    what = f"run {run!r} not found" if run else "no aggregator found"
    return f"{what} in {f'namespace {places}' if places else 'any namespace'}"


def read_run_status(
    api: "KubeApi", namespace: str | None, *, run: str = "", timeout: float = 5.0
) -> Reading:
    """Read the status of the run in `namespace`. Everything that goes wrong is an outcome.

    `run` is its name where there may be several. A namespace of None stands for whichever has a Pod
    with an aggregator's label; one that does not exist looks like one without Pods. Rights: `pods:
    list`, and `get` if no Pod is labelled. `timeout` in seconds is for each request.
    """
    try:
        try:
            pod, warning = find_aggregator(api, namespace, run=run, timeout=timeout)
        except NoAggregatorPod as nobody:
            if namespace is None or run:
                raise
            try:
                pod, warning = api.get("Pod", namespace, DEFAULT_POD, timeout=timeout), ""
            except NotFound:
                raise nobody from None
    except NotFound as error:
        return Reading(ReadOutcome.NOT_FOUND, detail=str(error))
    except Forbidden as error:
        return Reading(ReadOutcome.FORBIDDEN, detail=str(error))
    except KubeError as error:
        return Reading(ReadOutcome.UNREACHABLE, detail=str(error))
    return read_status(pod, warning)
