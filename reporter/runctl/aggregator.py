"""What makes the Pods of an aggregator, and whether another Pod may come."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reporter.cli.exits import CannotTell
from reporter.common.objects import items, section, text
from reporter.common.text import clean
from reporter.errors import KubeError, NotFound
from reporter.run.names import RUN_LABEL

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

NO_POD: Final = "its aggregator has no Pod"


class Aggregator(NamedTuple):
    """What makes the Pods of an aggregator, a StatefulSet or a Job; of a launched run, its name."""

    kind: str
    namespace: str
    name: str
    run: str

    def without_pod(self, api: "KubeApi", timeout: float) -> str:
        """Say that it is there without a Pod; return nothing where nobody says so.

        Raises CannotTell where no Pod will come: it was deleted, or has ended.
        """
        kind, namespace, name, run = self
        by_hand = f"the aggregator ({kind.lower()}/{name})"
        try:
            found = api.get(kind, namespace, name, timeout=timeout)
        except NotFound:
            raise CannotTell(f"{f'run {run}' if run else by_hand} was deleted") from None
        except KubeError:
            return ""
        if kind == "Job":
            _expect_a_word(found)
        return f"run {run}: {NO_POD}" if run else f"{by_hand} has no Pod"

    def expect_another_pod(self, api: "KubeApi", timeout: float) -> None:
        """Raise CannotTell where it is a Job that has ended without a last word."""
        if self.kind != "Job":
            return
        try:
            job = api.get("Job", self.namespace, self.name, timeout=timeout)
        except KubeError:
            return
        _expect_a_word(job)


def maker_of(pod: Mapping[str, Any]) -> Aggregator | None:
    """Return what makes that Pod; None where it is neither a StatefulSet nor a Job."""
    metadata = section(pod, "metadata")
    for owner in items(metadata, "ownerReferences"):
        if (kind := text(owner, "kind")) in {"StatefulSet", "Job"}:
            run = text(section(metadata, "labels"), RUN_LABEL)
            return Aggregator(kind, text(metadata, "namespace"), text(owner, "name"), run)
    return None


def _expect_a_word(job: Mapping[str, Any]) -> None:
    """Raise CannotTell where the aggregator's Job has ended: no other Pod will tell of the run."""
    name = text(section(job, "metadata"), "name")
    for each in items(section(job, "status"), "conditions"):
        if text(each, "type") in {"Complete", "Failed"} and text(each, "status") == "True":
            said = clean(text(each, "message"), 512)
            raise CannotTell(
                f"the aggregator has ended (job/{name}: {text(each, 'type').lower()}"
                f"{f': {said}' if said else ''}) without the status of the run"
            )
