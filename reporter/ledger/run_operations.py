"""What happens to the run as a whole inside a transaction: its beginning, its phases, its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reporter.ledger.contract import RunNotReady, WrongRun
from reporter.ledger.transaction import Operation, Run, Transaction, known
from reporter.run.entry import State
from reporter.run.plan import Key, Plan, differences
from reporter.run.state import Phase, Tar
from reporter.run.tar_upload import TarUpload, UploadState

_NAMED = 5  # differences between two plans


def open_run(plan: Plan, now: float, wall: float) -> Operation[Mapping[Key, bool]]:
    """Create the run or take it up again; return which keys were heard, as `armed` does."""

    def operation(transaction: Transaction) -> Mapping[Key, bool]:
        run = transaction.run
        if run is None:
            transaction.create(Run(plan, now, alive_at=now, alive_wall=wall))
        elif run.plan.run != plan.run:
            raise WrongRun(f"the store holds run {run.plan.run}, not {plan.run}")
        elif found := differences(run.plan, plan):
            more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
            named = "; ".join(found[:_NAMED])
            raise WrongRun(f"run {plan.run} started with a different plan: {named}{more}")
        else:
            transaction.put_run(run)  # whoever cannot write must not begin
        return transaction.armed()

    return operation


def begin_launching() -> Operation[None]:
    """Note that objects of the run may exist from now on."""

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        if not run.launching:
            transaction.put_run(replace(run, launching=True))

    return operation


def advance_run(phase: Phase, tar: Tar | None, error: str | None) -> Operation[None]:
    """Go one phase on."""
    order = list(Phase)

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        steps = order.index(phase) - order.index(run.phase)
        if steps <= 0:
            return
        if steps > 1:
            raise RunNotReady(f"{phase} does not follow {run.phase}")
        if still_open := transaction.entries_in(State.RUNNING):
            first, *others = still_open
            raise RunNotReady(f"{first} and {len(others)} others are open")
        if phase is Phase.CLOSED:
            # Results that are missing now count as failed.
            transaction.put_entries(transaction.entries_in(State.FAILED).values())
        transaction.put_run(replace(run, phase=phase, tar=tar, error=error))

    return operation


def packing_failed(error: str, at: float) -> Operation[float]:
    """Say why there is no tarball yet; return since when."""

    def operation(transaction: Transaction) -> float:
        run = known(transaction)
        since = at if run.packing_failed_since is None else run.packing_failed_since
        if run.phase is Phase.POST_PROCESSING:
            transaction.put_run(replace(run, error=error, packing_failed_since=since))
        return since

    return operation


def retrieved(at: float) -> Operation[None]:
    """Note that a client has the tarball; the first time stands."""

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        if run.retrieved_at is None:
            transaction.put_run(replace(run, retrieved_at=at))

    return operation


def note_upload(upload: TarUpload, tar: Tar | None) -> Operation[None]:
    """Say how the upload stands, and that there is a tarball now; what is over stays so."""

    def operation(transaction: Transaction) -> None:
        run = known(transaction)
        stands = run.upload is not None and run.upload.over
        found = run.upload if stands else upload
        transaction.put_run(replace(run, upload=found, tar=run.tar or tar))

    return operation


def package_again() -> Operation[bool]:
    """Take back that packing was given up."""

    def operation(transaction: Transaction) -> bool:
        run = known(transaction)
        if run.packing_failed_since is None or run.tar is not None:
            return False
        phase, upload = Phase.POST_PROCESSING, run.upload
        if upload is not None:
            upload = replace(upload, state=UploadState.WAITING, error="", since=None)
        run = replace(run, phase=phase, error=None, packing_failed_since=None, upload=upload)
        transaction.put_run(run)
        return True

    return operation
