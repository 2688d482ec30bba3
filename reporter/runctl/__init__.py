"""The commands for runs: create, find, follow, stop, retrieve, delete.

For programs: where the aggregator of a run is, and how the run is.

    from reporter.runctl import get_status

    get_status("nightly")["result_status"]

Needs the extra `sidecar` and the rights of `status-ctl status`. Without a name the run is the only
one of the namespace.
"""

from typing import TYPE_CHECKING, Any

from reporter.errors import Forbidden, KubeError, NoAggregatorPod, SettingsError, Unavailable

if TYPE_CHECKING:
    from reporter.run.view import ReadOutcome
    from reporter.runctl.cluster_run import ByCluster

__all__ = ["find_aggregator", "get_status"]


def find_aggregator(
    run: str = "",
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: str | None = None,
) -> tuple[str, str]:
    """Return namespace and name of the Pod of a run's aggregator, as `status-ctl status` finds it.

    `run` is its name, also as run/NAME. Raises `NoAggregatorPod`, another KubeError, and
    SettingsError for what is no name, and where no cluster is known.
    """
    from reporter.common.objects import View

    found = _chosen(run, namespace, context, kubeconfig).find()
    if found.pod is None:
        raise _error(found.outcome, found.detail)
    return View(found.pod).namespace, View(found.pod).name


def get_status(
    run: str = "",
    *,
    namespace: str | None = None,
    context: str | None = None,
    kubeconfig: str | None = None,
    timeout: float = 10.0,
) -> dict[str, Any]:
    """Return the run as `/status` shows it, or `partial` by the annotations on the Pod.

    `timeout` in seconds is for each request. Raises as `find_aggregator` does; `NoAggregatorPod`
    also where no Pod of a run will come any more.
    """
    from reporter.cli.exits import CannotTell

    chosen = _chosen(run, namespace, context, kubeconfig)
    try:
        look = chosen.look(timeout)
    except CannotTell as error:
        raise NoAggregatorPod(str(error)) from None
    finally:
        chosen.close()
    if look.document is None:
        raise _error(look.outcome, look.detail)
    return dict(look.document)


def _chosen(
    run: str, namespace: str | None, context: str | None, kubeconfig: str | None
) -> "ByCluster":
    # Here, because a command takes none of it.
    from argparse import ArgumentTypeError, Namespace

    from reporter.cli.exits import CannotTell
    from reporter.runctl.cluster_run import by_cluster
    from reporter.runctl.origin import run_name

    options = Namespace(namespace=namespace, context=context, kubeconfig=kubeconfig)
    try:
        return by_cluster(options, run and run_name(run))
    except (CannotTell, ArgumentTypeError) as error:
        raise SettingsError([str(error)]) from None


def _error(outcome: "ReadOutcome", detail: str) -> KubeError:
    kinds: dict[str, type[KubeError]] = {"not_found": NoAggregatorPod, "forbidden": Forbidden}
    return kinds.get(outcome, Unavailable)(detail)
