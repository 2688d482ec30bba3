"""Our own images, built from the project's Dockerfiles: the product's, and the plugin `ansible`."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bed import building
from tests.bed.binaries import BedUnavailable, locked
from tests.bed.images import layer_sizes, manifest_digest

PRODUCT_IMAGE = "localhost/status-reporter:dev"
ANSIBLE_IMAGE = f"{PRODUCT_IMAGE}-ansible"
PROJECT = Path(__file__).resolve().parents[2]
REQUIREMENTS = "requirements/image.txt"
ANSIBLE = "deploy/plugins/ansible"


@dataclass(frozen=True)
class Built:
    """An OCI archive; compressed bytes of all layers, and of those without the base's."""

    archive: Path
    all_bytes: int
    own_bytes: int


def build_product_image(out: Path, project: Path = PROJECT) -> Built:
    """Build `project`'s Dockerfile into the OCI archive `out`; BedUnavailable where impossible."""
    if reason := building.why_not():
        raise BedUnavailable(reason)
    with locked("image"):
        shutil.copyfile(_product(project), out)
        return _built(out)


def digests_of_two_builds(project: Path = PROJECT) -> tuple[str, str]:
    """The digests of the product's image as it is in the cache, and built once more."""
    if reason := building.why_not():
        raise BedUnavailable(reason)
    with locked("image"), tempfile.TemporaryDirectory() as folder:
        again = Path(folder) / "again.tar"
        first = _product(project)
        _product(project, again)
        return manifest_digest(first), manifest_digest(again)


def build_ansible_image(out: Path, project: Path = PROJECT) -> Built:
    """Build the image of the plugin `ansible`, as `build_product_image` does."""
    if reason := building.why_not():
        raise BedUnavailable(reason)
    with locked("image"), tempfile.TemporaryDirectory() as folder:
        product, base, context = _product(project), building.base_image(), Path(folder)
        building.copy_sources(project / ANSIBLE, context)
        shutil.copytree(building.wheels(context / "requirements.txt"), context / "wheels")
        arguments = {"AGENT_IMAGE": PRODUCT_IMAGE, "BUILD_IMAGE": base, "RUNTIME_IMAGE": base}
        shutil.copyfile(building.archive(context, ANSIBLE_IMAGE, arguments, product), out)
        return _built(out)


def _product(project: Path, again: Path | None = None) -> Path:
    """The product's archive from the cache, or built into `again`."""
    with tempfile.TemporaryDirectory() as folder:
        base, context = building.base_image(), Path(folder)
        building.copy_sources(project, context)
        shutil.copytree(building.wheels(project / REQUIREMENTS), context / "wheels")
        arguments = {"BUILD_IMAGE": base, "RUNTIME_IMAGE": base, "PYTHON": "/usr/bin/python3"}
        if again is None:
            return building.archive(context, PRODUCT_IMAGE, arguments)
        building.build_again(context, PRODUCT_IMAGE, arguments, again)
        return again


def _built(out: Path) -> Built:
    base_layers, sizes = building.base_layers(), layer_sizes(out)
    own = (size for layer, size in sizes.items() if layer not in base_layers)
    return Built(out, sum(sizes.values()), sum(own))
