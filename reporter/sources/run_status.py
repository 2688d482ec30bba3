"""A run's status on the aggregator's Pod: the requests. What they mean is `core.run`'s."""

from collections.abc import Mapping
from typing import Any, Protocol

from reporter.core.run.reading import LABELS, Found, Picked, Reading, pick_pod, read_status
from reporter.errors import Forbidden, KubeError, NotFound

DEFAULT_POD = "sonobuoy"
"""The aggregator's Pod where none is labelled as one."""


class PodsApi(Protocol):
    """The two calls made here."""

    def list_pods(
        self, namespace: str | None, label_selector: str, *, timeout: float = ...
    ) -> list[dict[str, Any]]:
        """Return the Pods with that label, of all namespaces for None. Raises KubeError."""

    def get_pod(self, namespace: str, name: str, *, timeout: float = ...) -> dict[str, Any]:
        """Return the Pod. Raises KubeError."""


def find_aggregator(api: PodsApi, namespace: str | None, *, timeout: float = 5.0) -> Picked:
    """Return the Pod that is labelled as an aggregator's, newest way first. Raises KubeError.

    `timeout` in seconds is for each of at most two requests.
    """
    for name, value in LABELS:
        picked = pick_pod(api.list_pods(namespace, f"{name}={value}", timeout=timeout))
        if picked.pod is not None:
            return picked
    return Picked(None)


def read_run_status(api: PodsApi, namespace: str | None, *, timeout: float = 5.0) -> Reading:
    """Ask the cluster how the run in `namespace` is. Everything that goes wrong is an outcome.

    None stands for whichever namespace has a Pod with an aggregator's label. A namespace that does
    not exist looks like one without Pods. Rights: `pods: list`, and `get` where no Pod is labelled.
    `timeout` in seconds is for each of at most three requests.
    """
    try:
        picked = find_aggregator(api, namespace, timeout=timeout)
        if picked.pod is None and namespace is None:
            return Reading(Found.NOT_FOUND, detail="no aggregator runs in any namespace")
        pod: Mapping[str, Any] = picked.pod or api.get_pod(
            namespace or "", DEFAULT_POD, timeout=timeout
        )
    except NotFound:
        return Reading(Found.NOT_FOUND, detail=f"no aggregator runs in namespace {namespace!r}")
    except Forbidden as error:
        return Reading(Found.FORBIDDEN, detail=str(error))
    except KubeError as error:
        return Reading(Found.UNREACHABLE, detail=str(error))
    return read_status(pod, picked.warning)
