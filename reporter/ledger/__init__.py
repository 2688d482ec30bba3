"""Where a run is kept: what was expected, what came, and what is known about the rest.

`contract` is the interface with its promises. A call goes through `cached` (what is known already),
`operations` (the rules), `engine` (one thread writes, in batches), `sqlite_transaction` and `rows`
(the SQL); `published` then has what readers see. `blobs` keeps bodies. Nothing in here knows HTTP
or Kubernetes.
"""

from reporter.ledger.contract import (
    ProgressTaken,
    Received,
    RunNotReady,
    Store,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreLocked,
    WrongRun,
)
from reporter.ledger.operations import Windows
from reporter.ledger.sqlite import SqliteStore

__all__ = [
    "ProgressTaken",
    "Received",
    "RunNotReady",
    "SqliteStore",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "Windows",
    "WrongRun",
]
