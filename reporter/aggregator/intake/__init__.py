"""Taking in results: bodies to blobs, rows and trees, and the tarball at the end.

`Intake` is the whole of it; everything else exported here is what it takes and gives.
"""

from reporter.aggregator.intake.intake import Intake
from reporter.aggregator.intake.layout import Layout
from reporter.aggregator.intake.limits import Limits
from reporter.aggregator.intake.meta import Meta, filename_of
from reporter.aggregator.intake.outcomes import (
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
from reporter.aggregator.intake.package import Interrupted, PackageFailed
from reporter.aggregator.intake.recovery import Recovered

__all__ = [
    "Closed",
    "Cut",
    "DiskFull",
    "Failed",
    "Held",
    "Intake",
    "Interrupted",
    "Layout",
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
