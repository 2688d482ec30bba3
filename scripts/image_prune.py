"""Cuts an installed package tree down to what the image's programs can import.

    python3 image_prune.py SITE

Lives in the build stage of the Dockerfile. Licences and METADATA stay: scanners and lawyers
read them. A cut that is too deep shows in image_bytecode.py, which imports everything of ours.
"""

import shutil
import sys
from pathlib import Path

# Dependencies of ours need these for things that no program here does: the asynchronous twin of the
# Kubernetes client, exec, compilers of C bindings, time zones by name.
UNUSED = {
    "aiohttp_retry": ["aiohttp_retry"],
    "durationpy": ["durationpy"],
    "pycparser": ["pycparser"],
    "tzdata": ["tzdata"],
}
"""Distributions that go whole, with the packages they install."""
# cryptography loads the binary part of cffi alone.
PARTS = ("cffi", "kubernetes/aio", "pydantic/v1")
# Modules for each resource (30 MB); the client sends plain dicts.
GENERATED = ("kubernetes/client/api", "kubernetes/client/models")
# Compilers and type checkers read these, no interpreter does.
SOURCES = ("*.c", "*.h", "*.pxd", "*.pyi", "*.pyx")


def drop(path: Path) -> None:
    """Remove the file or directory PATH; it must exist."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def prune(site: Path) -> None:
    """Remove from SITE, a tree of `pip install --target`, what no program of the image imports.

    Raises FileNotFoundError when something that should go is not there: the list is out of date.
    """
    for part in PARTS:
        drop(site / part)
    for generated in GENERATED:
        for module in (site / generated).iterdir():
            if module.name != "__init__.py":
                drop(module)
    for name, packages in UNUSED.items():
        for package in packages:
            drop(site / package)
        metadata = next(site.glob(f"{name}-*.dist-info"), None)
        if metadata is None:
            raise FileNotFoundError(f"{name}: not installed")
        drop(metadata)
    shutil.rmtree(site / "bin", ignore_errors=True)
    for tests in [*site.rglob("tests"), *site.rglob("__pycache__")]:
        shutil.rmtree(tests, ignore_errors=True)
    for pattern in SOURCES:
        for source in site.rglob(pattern):
            drop(source)
    # The lists of installed files and the installer's notes are no longer true.
    for name in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
        for note in site.glob(f"*.dist-info/{name}"):
            drop(note)


if __name__ == "__main__":
    prune(Path(sys.argv[1]))
