"""The tarball of a run with very many workers, each within the aggregator's own caps."""

from pathlib import Path

import pytest

from reporter.results.facts import read_facts
from reporter.run.settings import Settings
from reporter.runctl.archive import TARBALL
from reporter.untar import Caps
from tests.archives.tars import file, pax, tgz

HEADER = 512  # bytes of a member that is empty


def test_no_number_of_members_is_too_large() -> None:
    """How many results there are is up to the plan: only bytes bound what is in them."""
    assert TARBALL.members > (TARBALL.content_bytes + TARBALL.free_bytes) // HEADER


@pytest.mark.parametrize(
    ("setting", "cap"),
    [
        ("archive_max_members", "members"),
        ("archive_max_bytes", "content_bytes"),
    ],
)
def test_ten_thousand_results_of_the_default_size(setting: str, cap: str) -> None:
    """Each was accepted, so all of them can be unpacked."""
    of_one = Settings.model_fields[setting].default

    assert 10_000 * of_one <= getattr(TARBALL, cap)


def test_facts_beside_the_longest_path_of_a_result(tmp_path: Path) -> None:
    """A result may have paths of 4096 bytes, and the tarball has more before them."""
    results = b"plugins/facts/results/node-1/"
    deep = b"/".join([b"d" * 204] * 20)[: Caps().path_bytes]
    facts = b'{"api_version": "v1", "collected_at": "now", "node": "node-1"}'
    tarball = tmp_path / "run.tar.gz"
    tarball.write_bytes(
        tgz(pax(path=results + deep), file(b"x"), file(results + b"facts.json", facts))
    )

    assert ["node-1"] == list(read_facts(tarball).nodes)
