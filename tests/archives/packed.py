"""What the tarball of a run would hold if it were made now."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from reporter.aggregator.tarball.content import Sources
from reporter.aggregator.tarball.package import package
from reporter.ledger.blobs import BlobStore
from reporter.ledger.layout import Layout
from reporter.results.process import Judge
from reporter.run.state import Snapshot
from tests.archives.tars import OURS


def packed(layout: Layout, snapshot: Snapshot) -> dict[str, bytes]:
    """The content of every regular file that came, by name, from the rows and blobs of a run."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "now.tar.gz")
        sources = Sources(
            BlobStore(layout).open, layout.podlogs, Path(folder), Judge(), lambda: None
        )
        package(snapshot, target, sources)
        with tarfile.open(target) as tar:
            opened = ((member.name, tar.extractfile(member)) for member in tar)
            found = {name: file.read() for name, file in opened if file is not None}
        return {name: data for name, data in found.items() if not name.endswith(OURS)}
