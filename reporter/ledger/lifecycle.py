"""The run as a whole, from its plan to its tarball: what its row says, and what may become of it.

Decisions only; `rows` keeps what they return.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from reporter.ledger.errors import RunNotReady, WrongRun
from reporter.run.plan import Key, Plan, differences
from reporter.run.state import Phase, Tar
from reporter.run.tar_upload import TarUpload, UploadState

_NAMED = 5  # differences between two plans


@dataclass(frozen=True, slots=True)
class Run:
    """What is kept of a run beside its plan and its entries.

    `alive_at` is when a process last said that it was there, `alive_wall` what the wall clock said
    then, `packing_failed_since` when the packing failed first. `launching` says that its plugins
    are launched by us, and that there may be objects of theirs, `retrieved_at` when the tarball was
    first downloaded as a whole, `upload` how its upload stands.
    """

    started_at: float
    alive_at: float
    alive_wall: float
    phase: Phase = Phase.RUNNING
    tar: Tar | None = None
    error: str | None = None
    packing_failed_since: float | None = None
    launching: bool = False
    retrieved_at: float | None = None
    upload: TarUpload | None = None

    @property
    def running(self) -> bool:
        """Whether the set of results is still open."""
        return self.phase is Phase.RUNNING

    def visible(self) -> tuple[object, ...]:
        """What readers see of it: with another one the run gets a new revision."""
        return self.phase, self.tar, self.error, self.retrieved_at, self.upload


def check_plan(kept: Plan, given: Plan) -> None:
    """Raise `WrongRun` unless a run that began with one plan may go on with the other."""
    if kept.run != given.run:
        raise WrongRun(f"the store holds run {kept.run}, not {given.run}")
    if found := differences(kept, given):
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        named = "; ".join(found[:_NAMED])
        raise WrongRun(f"run {given.run} started with a different plan: {named}{more}")


def advance(
    run: Run, phase: Phase, still_open: Collection[Key], *, tar: Tar | None, error: str | None
) -> Run:
    """Go one phase on, or stay where that phase is reached. Raises `RunNotReady`."""
    order = list(Phase)
    steps = order.index(phase) - order.index(run.phase)
    if steps <= 0:
        return run
    if steps > 1:
        raise RunNotReady(f"{phase} does not follow {run.phase}")
    if still_open:
        first, *others = still_open
        raise RunNotReady(f"{first} and {len(others)} others are open")
    return replace(run, phase=phase, tar=tar, error=error)


def packing_failed(run: Run, error: str, at: float) -> Run:
    """Say why there is no tarball yet."""
    if run.phase is not Phase.POST_PROCESSING:
        return run
    since = at if run.packing_failed_since is None else run.packing_failed_since
    return replace(run, error=error, packing_failed_since=since)


def note_upload(run: Run, upload: TarUpload, tar: Tar | None) -> Run:
    """Say how the upload stands, and that there is a tarball now; what is over stays so."""
    over = run.upload is not None and run.upload.over
    return replace(run, upload=run.upload if over else upload, tar=run.tar or tar)


def package_again(run: Run) -> Run | None:
    """Take back that packing was given up, or failed; nothing where it was not."""
    if run.packing_failed_since is None or run.tar is not None:
        return None
    upload = run.upload
    if upload is not None:
        upload = replace(upload, state=UploadState.WAITING, error="", since=None)
    phase = Phase.POST_PROCESSING
    return replace(run, phase=phase, error=None, packing_failed_since=None, upload=upload)
