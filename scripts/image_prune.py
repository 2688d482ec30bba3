"""Cuts an installed package tree down to what the image's programs can import.

    python3 image_prune.py SITE

Lives in the build stage of the Dockerfile. Licences and METADATA stay: scanners and lawyers
read them. What is cut too deep shows in image_bytecode.py, which imports everything of ours.
"""

import shutil
import sys
from pathlib import Path

# kubernetes ships an asyncio twin of its client (40 MB); this package is there for it alone.
ASYNC_ONLY = ("aiohttp_retry",)
# What compilers and type checkers read, no interpreter.
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
    drop(site / "kubernetes" / "aio")
    for name in ASYNC_ONLY:
        drop(site / name)
        (metadata,) = site.glob(f"{name}-*.dist-info")
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
