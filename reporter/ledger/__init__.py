"""Where a run is kept: what was expected, what came, and what is known about the rest.

`store` is what others call, with its promises. Changes are decided in the one thread that writes
(`writer`), in transactions on the rows (`rows`) of a database (`database`); `lifecycle` has the
rules for the run as a whole, and `view` what readers see. `blobs` keeps bodies. Nothing in here
knows HTTP or Kubernetes.
"""

from reporter.ledger.errors import (
    RunNotReady,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreLocked,
    WrongRun,
)
from reporter.ledger.store import ProgressTaken, Received, Store, Windows

__all__ = [
    "ProgressTaken",
    "Received",
    "RunNotReady",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "Windows",
    "WrongRun",
]
