"""Building images from Dockerfiles without a registry or an engine.

What lives here: a local base image (debootstrap, Debian's Python), locked wheels, and buildah's
invocation. All of it is cached; what has not changed is there at once.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.bed.binaries import cache_dir, pip_command

SUITE = "bookworm"
# The last one is for the image of the plugin `ansible`.
PACKAGES = "python3,python3-venv,ca-certificates,iproute2"
PYTHON = "3.11"
UNUSED = (
    *(f"usr/share/{name}" for name in ("doc", "man", "info", "locale", "lintian", "zoneinfo")),
    *(f"var/{name}" for name in ("cache/apt", "cache/debconf", "lib/apt/lists", "log")),
)
BASE_DOCKERFILE = """FROM scratch
ADD base.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
# With that variable Python's bytecode would name no time, and ours would not take it for current.
BOOTSTRAP = ("env", "-u", "SOURCE_DATE_EPOCH", "debootstrap", "--variant=minbase")
BUD = ("--isolation", "chroot", "--pull-never", "--format", "oci")
# Of every file of ours: two builds of the same sources have the same digest. Not of the base, whose
# bytecode would be out of date.
ONE_TIME = ("--timestamp", "0")
KEPT_ARCHIVES = 4


def why_not() -> str | None:
    """The reason why images cannot be built here, or None."""
    if platform.system() != "Linux" or os.geteuid() != 0:
        return "building the image needs Linux and root"
    missing = [name for name in ("buildah", "debootstrap") if not shutil.which(name)]
    if missing:
        return f"building the image needs {', '.join(missing)}: run tests/bed/setup.sh"
    return None


def base_image() -> str:
    """The name of the base image in buildah's store, made when it is not there (a minute).

    For this and for `archive` the caller has the lock `image`.
    """
    recipe = repr((SUITE, PACKAGES, UNUSED, BASE_DOCKERFILE, BOOTSTRAP, BUD))
    name = f"localhost/bed-base:{hashlib.sha256(recipe.encode()).hexdigest()[:10]}"
    if name in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        return name
    with tempfile.TemporaryDirectory(dir=cache_dir()) as folder:
        root = Path(folder) / "root"
        _run(*BOOTSTRAP, f"--include={PACKAGES}", SUITE, str(root))
        for unused in UNUSED:
            shutil.rmtree(root / unused, ignore_errors=True)
            (root / unused).mkdir(parents=True)
        _run("tar", "-C", str(root), "--one-file-system", "-cf", f"{folder}/base.tar", ".")
        shutil.rmtree(root)
        (Path(folder) / "Dockerfile").write_text(BASE_DOCKERFILE)
        _bud(Path(folder), name)
        _buildah("rm", "--all")
    return name


def base_layers() -> str:
    """What names the base's layers by their diff ids."""
    return _buildah("inspect", "--type", "image", "--format", "{{.OCIv1.RootFS}}", base_image())


def archive(
    context: Path, name: str, arguments: Mapping[str, str], other: Path | None = None
) -> Path:
    """The cached OCI archive of a context's Dockerfile, built when it is not there.

    `other`: the archive of another of our images, which the Dockerfile may name.
    """
    # By its id: a base that was made once more from the same recipe has other layers.
    base = _buildah("images", "--quiet", "--no-trunc", base_image()).strip()
    archives = cache_dir() / "images"
    archives.mkdir(exist_ok=True)
    made_from = [_digest(context), base, *([other.stem] if other else [])]
    key = hashlib.sha256(" ".join(made_from).encode()).hexdigest()[:24]
    kept = archives / f"{key}.tar"
    if not kept.exists():
        _build(context, name, arguments, kept, other)
        for old in sorted(archives.glob("*.tar"), key=_age)[:-KEPT_ARCHIVES]:
            old.unlink()
    kept.touch()
    return kept


def build_again(context: Path, name: str, arguments: Mapping[str, str], out: Path) -> None:
    """What `archive` does, into `out` and whatever the cache has."""
    _build(context, name, arguments, out, None)


def _build(
    context: Path, name: str, arguments: Mapping[str, str], kept: Path, other: Path | None
) -> None:
    half = kept.with_suffix(".part")
    half.unlink(missing_ok=True)
    build_args = [word for k, v in arguments.items() for word in ("--build-arg", f"{k}={v}")]
    base = base_image()
    try:
        if other:
            _buildah("pull", "--quiet", f"oci-archive:{other}")
        _bud(context, name, *ONE_TIME, *build_args)
        _buildah("push", name, f"oci-archive:{half}:{name}")
        half.rename(kept)
    finally:
        # The vfs driver copies whole file systems: keep the base alone.
        _buildah("rm", "--all")
        for image in _buildah("images", "--quiet", "--no-trunc", "--all").split():
            if image not in _buildah("images", "--quiet", "--no-trunc", base).split():
                _buildah("rmi", "--force", image)


def wheels(requirements: Path) -> Path:
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


def copy_sources(project: Path, context: Path) -> None:
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
    _buildah("bud", *BUD, *options, "--tag", name, str(context))


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
