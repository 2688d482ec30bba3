"""The product's own image, built from the project's Dockerfile without a registry or an engine.

What lives here: a local base image (debootstrap, Debian's Python), the wheels, and buildah's
invocation. All of it is cached; an unchanged tree gives the cached archive at once.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bed.binaries import BedUnavailable, cache_dir, locked, pip_command
from tests.bed.images import layer_sizes

PRODUCT_IMAGE = "localhost/status-reporter:dev"
PROJECT = Path(__file__).resolve().parents[2]
SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
PYTHON = "3.11"
REQUIREMENTS = "requirements/image.txt"
UNUSED = (
    *(f"usr/share/{name}" for name in ("doc", "man", "info", "locale", "lintian", "zoneinfo")),
    *(f"var/{name}" for name in ("cache/apt", "cache/debconf", "lib/apt/lists", "log")),
)
BASE_DOCKERFILE = """FROM scratch
ADD base.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
KEPT_ARCHIVES = 3


@dataclass(frozen=True)
class Built:
    """An OCI archive of PRODUCT_IMAGE; `own_bytes`: compressed layers without the base."""

    archive: Path
    own_bytes: int


def why_not() -> str | None:
    """The reason why the image cannot be built here, or None."""
    if platform.system() != "Linux" or os.geteuid() != 0:
        return "building the image needs Linux and root"
    missing = [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
    if missing:
        return f"building the image needs {', '.join(missing)}: run tests/bed/setup.sh"
    return None


def build_product_image(out: Path, project: Path = PROJECT) -> Built:
    """Build `project`'s Dockerfile into the OCI archive `out`; BedUnavailable where impossible."""
    if reason := why_not():
        raise BedUnavailable(reason)
    with locked("image"), tempfile.TemporaryDirectory() as folder:
        base = base_image()
        context = Path(folder)
        _copy_sources(project, context)
        shutil.copytree(_wheels(project / REQUIREMENTS), context / "wheels")
        archives = cache_dir() / "images"
        archives.mkdir(exist_ok=True)
        kept = archives / f"{_digest(context)}-{base.rpartition(':')[2]}.tar"
        if not kept.exists():
            _build(context, base, kept)
            for old in sorted(archives.glob("*.tar"), key=_age)[:-KEPT_ARCHIVES]:
                old.unlink()
        kept.touch()
        shutil.copyfile(kept, out)
    base_layers = _buildah("inspect", "--type", "image", "--format", "{{.OCIv1.RootFS}}", base)
    sizes = layer_sizes(out)
    return Built(out, sum(size for layer, size in sizes.items() if layer not in base_layers))


def _build(context: Path, base: str, archive: Path) -> None:
    half = archive.with_suffix(".part")
    half.unlink(missing_ok=True)
    arguments = {"BUILD_IMAGE": base, "RUNTIME_IMAGE": base, "PYTHON": "/usr/bin/python3"}
    build_args = [word for k, v in arguments.items() for word in ("--build-arg", f"{k}={v}")]
    try:
        _bud(context, PRODUCT_IMAGE, *build_args)
        _buildah("push", PRODUCT_IMAGE, f"oci-archive:{half}:{PRODUCT_IMAGE}")
        half.rename(archive)
    finally:
        # The vfs driver copies whole file systems: keep the base alone.
        _buildah("rm", "--all")
        for image in _buildah("images", "--quiet", "--no-trunc", "--all").split():
            if image not in _buildah("images", "--quiet", "--no-trunc", base).split():
                _buildah("rmi", "--force", image)


def base_image() -> str:
    """The name of the base image in buildah's store, made when it is not there (a minute)."""
    recipe = repr((SUITE, PACKAGES, UNUSED, BASE_DOCKERFILE))
    name = f"localhost/bed-base:{hashlib.sha256(recipe.encode()).hexdigest()[:10]}"
    if name in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        return name
    with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
        root = Path(folder) / "root"
        _run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root))
        for unused in UNUSED:
            shutil.rmtree(root / unused, ignore_errors=True)
            (root / unused).mkdir(parents=True)
        _run("tar", "-C", str(root), "--one-file-system", "-cf", f"{folder}/base.tar", ".")
        shutil.rmtree(root)
        (Path(folder) / "Dockerfile").write_text(BASE_DOCKERFILE)
        _bud(Path(folder), name)
        _buildah("rm", "--all")
    return name


def _wheels(requirements: Path) -> Path:
    """A folder with the locked wheels for the base's Python, downloaded once per lock file."""
    lock = requirements.read_bytes()
    home = cache_dir() / "wheels" / f"{hashlib.sha256(lock).hexdigest()[:10]}-{PYTHON}"
    if not home.is_dir():
        machine = platform.machine()
        tags = [f"manylinux{tag}_{machine}" for tag in ("2014", "_2_17", "_2_28", "_2_34")]
        platforms = [word for tag in tags for word in ("--platform", tag)]
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as folder:
            part = Path(folder) / "part"
            _run(
                *(*pip_command(), "download", "--quiet", "--require-hashes", "--dest", str(part)),
                *("--only-binary", ":all:", "--python-version", PYTHON, *platforms),
                *("--requirement", str(requirements)),
            )
            part.rename(home)
    return home


def _copy_sources(project: Path, context: Path) -> None:
    """Copy what git would commit: nothing that lies about in a working tree enters the image."""
    command = [
        "git",
        "-c",
        "safe.directory=*",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]
    for name in _run(*command, cwd=project).split("\0"):
        source = project / name
        if name and source.is_file():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, context / name)


def _digest(context: Path) -> str:
    """A digest of what can enter the image, without tests and prose."""
    digest = hashlib.sha256()
    for path in sorted(context.rglob("*")):
        name = path.relative_to(context)
        if path.is_file() and name.parts[0] not in ("tests", "docs", ".git"):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{name} {path.stat().st_mode:o} {content}\n".encode())
    return digest.hexdigest()[:16]


def _bud(context: Path, name: str, *options: str) -> None:
    isolation = ("--isolation", "chroot", "--pull-never", "--format", "oci")
    _buildah("bud", *isolation, *options, "--tag", name, str(context))


def _buildah(*args: str) -> str:
    store = cache_dir() / "buildah"
    places = ("--root", str(store / "root"), "--runroot", str(store / "run"))
    return _run("buildah", "--storage-driver", "vfs", *places, *args)


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
        raise RuntimeError(f"{' '.join(command[:8])} ... ended with {done.returncode}")
    return done.stdout


def _age(path: Path) -> float:
    return path.stat().st_mtime
