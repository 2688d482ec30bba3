"""What the tarball of a run would hold if it were made now."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from reporter.aggregator.tarball.package import package
from reporter.aggregator.tarball.summary import Summaries
from reporter.ledger.blobs import BlobStore
from reporter.ledger.layout import Layout
from reporter.results.process import Judge
from reporter.run.state import Snapshot
from tests.archives.tars import OURS


def packed(layout: Layout, snapshot: Snapshot) -> dict[str, bytes]:
    """The content of every regular file that came, by name, from the rows and blobs of a run."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "now.tar.gz")
        package(
            snapshot,
            target,
            open_blob=BlobStore(layout).open,
            podlogs=layout.podlogs,
            unfinished=Path(folder),
            stopping=lambda: False,
            summaries=Summaries(
                snapshot,
                Judge(),
                {},
                BlobStore(layout).open,
                Path(folder),
            ),
        )
        with tarfile.open(target) as tar:
            opened = ((member.name, tar.extractfile(member)) for member in tar)
            found = {name: file.read() for name, file in opened if file is not None}
        return {name: data for name, data in found.items() if not name.endswith(OURS)}
