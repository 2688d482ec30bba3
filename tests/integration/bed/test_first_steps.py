"""What `make cluster` prints in the end is what the documents say to type."""

import re
from pathlib import Path

from tests.bed.__main__ import first_steps
from tests.bed.attached import ROOT


def test_the_exports_are_those_of_the_quickstart() -> None:
    """Also for one who types them without reading what was printed."""
    document = (ROOT / "docs/quickstart.md").read_text(encoding="utf-8")
    _, _, after = document.partition("\nmake cluster DIR=/tmp/cluster")
    told = re.findall(r"^export .*$", after.partition("\n```")[0], re.MULTILINE)
    printed = first_steps(Path("/tmp/cluster/kubeconfig"), Path("/cache/kubectl"))

    assert told == re.findall(r"^  (export .*)$", printed, re.MULTILINE)


def test_a_directory_with_a_space() -> None:
    """The line can be pasted all the same."""
    printed = first_steps(Path("/tmp/my cluster/kubeconfig"), Path("/cache/kubectl"))

    assert "  export KUBECONFIG='/tmp/my cluster/kubeconfig' PATH=" in printed
