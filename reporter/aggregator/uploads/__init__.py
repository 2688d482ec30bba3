"""Taking in results: bodies to blobs, rows and trees, and the tarball at the end.

`Intake` is the whole of it; everything else exported here is what it takes and gives.
"""

from reporter.aggregator.finish.package import Interrupted, PackageFailed
from reporter.aggregator.uploads.intake import Intake
from reporter.aggregator.uploads.limits import Limits
from reporter.aggregator.uploads.meta import Meta, filename_of
from reporter.aggregator.uploads.outcomes import (
    Closed,
    Cut,
    DiskFull,
    Failed,
    Held,
    Refused,
    Stalled,
    Stored,
    TooLarge,
    Unwritable,
    UploadCut,
    UploadStalled,
    Verdict,
)
from reporter.aggregator.uploads.recovery import Recovered

__all__ = [
    "Closed",
    "Cut",
    "DiskFull",
    "Failed",
    "Held",
    "Intake",
    "Interrupted",
    "Limits",
    "Meta",
    "PackageFailed",
    "Recovered",
    "Refused",
    "Stalled",
    "Stored",
    "TooLarge",
    "Unwritable",
    "UploadCut",
    "UploadStalled",
    "Verdict",
    "filename_of",
]
