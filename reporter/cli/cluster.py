"""The user's cluster: the options that name it, and access to it.

The Kubernetes client is imported only when a cluster is asked: that takes a third of a second.
"""

import argparse
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from reporter.cli.exits import CannotTell
from reporter.errors import KubeError, SettingsError

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

TIMEOUT = 15.0  # seconds for one request
_SORTS = ("", "job", "jobs", "job.batch", "jobs.batch", "job.v1.batch", "jobs.v1.batch")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def cluster_arguments(
    parser: argparse.ArgumentParser, *, everywhere: bool, default: str = "the context's"
) -> None:
    """Declare `-n`, `--context`, `--kubeconfig`, and `-A` where it makes sense.

    `default` says which namespace is meant without `-n`.
    """
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "-n", "--namespace", metavar="NS", help=f"the namespace (default: {default})"
    )
    if everywhere:
        group.add_argument(
            "-A", "--all-namespaces", action="store_true", help="search all namespaces"
        )
    group.add_argument("--context", metavar="NAME", help="the kubeconfig's context")
    group.add_argument(
        "--kubeconfig", metavar="FILE", help="the kubeconfig (default: $KUBECONFIG, ~/.kube/config)"
    )


def named(options: argparse.Namespace) -> bool:
    """Return whether the options name a cluster or a namespace."""
    everywhere = getattr(options, "all_namespaces", False)
    return bool(everywhere or options.namespace or options.context or options.kubeconfig)


def reachable(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether there is a cluster to try without being told one."""
    if environ.get("KUBERNETES_SERVICE_HOST") or environ.get("KUBECONFIG"):
        return True
    return _some("~/.kube/config")


def open_cluster(options: argparse.Namespace) -> "tuple[KubeApi, str | None]":
    """Return the API and the namespace; None for all of them. Raises CannotTell."""
    relax = os.environ.get("KUBERNETES_RELAX_X509_STRICT", "").lower() == "true"
    files = options.kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
    mounted = bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
    try:
        from reporter.kube.api import KubeApi

        if mounted and not options.kubeconfig and not options.context and not _some(files):
            api, namespace = KubeApi.in_cluster(relax_x509_strict=relax), _own_namespace()
        else:
            api, namespace = KubeApi.from_kubeconfig(
                files, context=options.context, relax_x509_strict=relax
            )
    except ModuleNotFoundError as error:
        needed = "access to a cluster requires the extra [sidecar] of the package"
        raise CannotTell(f"{needed}: {error.name} is not installed") from None
    except SettingsError as error:
        raise CannotTell(str(error)) from None
    if getattr(options, "all_namespaces", False):
        return api, None
    return api, options.namespace or namespace or "default"


def job_name(written: str, options: argparse.Namespace) -> str:
    """Return the name of a Job as other commands print it; a usage error for anything else."""
    sort, _, name = written.rpartition("/")
    if sort not in _SORTS or len(name) > 253 or not _NAME.fullmatch(name):
        options.error(f"not a valid Job name: {written!r}")
    return name


def words(error: KubeError) -> str:
    """Return the API server's own words, or what has become of the request."""
    return error.said or str(error)


def said(error: KubeError) -> str:
    """Say what the API server did not do."""
    return f"cannot read from the cluster ({error.failure.replace('_', ' ')}): {error}"


@contextmanager
def asking() -> Iterator[None]:
    """Raise CannotTell where the API server does not answer what is asked."""
    try:
        yield
    except KubeError as error:
        raise CannotTell(said(error)) from None


def _some(files: str) -> bool:
    # Not Path.expanduser, which fails for a user without a home.
    return any(Path(os.path.expanduser(name)).exists() for name in files.split(os.pathsep) if name)  # noqa: PTH111


def _own_namespace() -> str:
    try:
        return Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace").read_text().strip()
    except OSError:
        return ""
