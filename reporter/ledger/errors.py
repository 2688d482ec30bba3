"""Why a store did not do what it was asked; every module of this folder may raise it."""

from reporter.errors import ReporterError


class StoreError(ReporterError):
    """The store could not do it; nothing was changed. Trying again may help."""


class StoreFull(StoreError):
    """No space is left on the device of the store."""


class StoreBusy(StoreError):
    """More operations wait for the disk than the store takes; it is slow, not broken."""


class StoreLocked(StoreError):
    """Another process has the store open."""


class WrongRun(StoreError):
    """The store holds another run, or the run with a plan that this one contradicts."""


class RunNotReady(StoreError):
    """The run cannot go on to that phase: an entry is open, or a phase would be left out."""
