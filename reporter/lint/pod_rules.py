"""Rules about the Pod: volumes, probes, memory, token, rights, and how many run."""

import posixpath
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from reporter.common.objects import items, number, quantity, section, text
from reporter.inject.container import guaranteed, limited
from reporter.inject.rights import EVENTS, NEEDED, WATCH, Right
from reporter.inject.transform import AUTOMOUNT
from reporter.lint.case import Case, Problems, Rule, Severity, rule
from reporter.lint.rights import Account
from reporter.verdict.pod import declared, find_adapter, mount_of, mounted_at, volume_of, writes

RULES: Final = list[Rule]()
PEAK: Final = 51_000_000
"""Bytes: what a reporter needs at most (docs/benchmarks.md)."""
_error: Final = partial(rule, RULES, Severity.ERROR)
_warning: Final = partial(rule, RULES, Severity.WARNING)
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


@_error("results-not-shared", "the adapter does not mount the volume of the result file")
def results_not_shared(case: Case) -> Problems:
    job, reporter, pod = case.job, case.reporter, case.job.pod
    names = reporter.names
    if names is None or reporter.says_no("RESULT_REQUIRED"):
        return
    mount = mount_of(reporter.container, names.results_path)
    volume = text(mount, "name")
    if not volume:
        yield (
            (*reporter.place, "volumeMounts"),
            f"The reporter mounts no volume that holds {names.results_path}: it never sees a "
            "result.",
            "Mount the volume that the adapter writes to.",
        )
        return
    adapter, _, _ = find_adapter(job.template, names)
    container = declared(pod, adapter) if adapter else {}
    if not adapter or _shares(container, mount, names.results_path):
        return
    at = [text(each, "name") for each in items(pod, "containers")].index(adapter)
    place = (*job.pod_place, "containers", at, "volumeMounts")
    if writes(container, volume):
        yield (
            place,
            f"The adapter {adapter!r} mounts a different subPath of the volume {volume!r} than the "
            f"reporter, which reads {names.results_path} from it.",
            "Mount the same subPath in both.",
        )
    else:
        yield (
            place,
            f"The adapter {adapter!r} does not mount {volume!r} writable, the volume from which "
            f"the reporter reads {names.results_path}.",
            f"Mount {volume!r} in the adapter, and write the result there.",
        )


@_warning("results-not-emptydir", "the volume of the result file outlives the Pod", partial=True)
def results_not_emptydir(case: Case) -> Problems:
    job, names = case.job, case.reporter.names
    volume = volume_of(case.reporter.container, names.results_path) if names else ""
    listed = job.pod.get("volumes")
    for at, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, Mapping) and volume and text(each, "name") == volume:
            if _lives_with_pod(each):
                return
            yield (
                (*job.pod_place, "volumes", at),
                f"The volume {volume!r} of the result file is not an emptyDir: a file of an "
                "earlier Pod may be there, and it can be distinguished from a new one only by its "
                "timestamp.",
                "Use an emptyDir, or a separate path for each Pod.",
            )


@_error(
    "liveness-probe",
    "the reporter has a liveness probe, which can kill it before the verdict is written",
    partial=True,
)
def liveness_probe(case: Case) -> Problems:
    if "livenessProbe" in case.reporter.container:
        yield (
            (*case.reporter.place, "livenessProbe"),
            "A liveness probe kills a reporter that waits for the API server, and the verdict is "
            "lost.",
            "Remove it; /readyz on the metrics port shows the reporter's state.",
        )


@_warning(
    "startup-probe", "the reporter has a startup probe, which delays the adapter", partial=True
)
def startup_probe(case: Case) -> Problems:
    if "startupProbe" in case.reporter.container:
        yield (
            (*case.reporter.place, "startupProbe"),
            "A startup probe delays the adapter, and kills the reporter when it fails.",
            "Remove it; the reporter is ready to report from its first moment.",
        )


@_error("memory-limit", "the reporter's memory limit is below its measured peak", partial=True)
def memory_limit(case: Case) -> Problems:
    limit = section(case.reporter.container, "resources", "limits").get("memory")
    found = quantity(str(limit))
    if found is not None and found < PEAK:
        yield (
            (*case.reporter.place, "resources", "limits", "memory"),
            f"The memory limit is {limit}, but a reporter needs up to {PEAK // 10**6} MB: it would "
            "be OOM-killed.",
            "Set the limit to 64Mi.",
        )


@_error("token", "no service account token is mounted into the reporter")
def token(case: Case) -> Problems:
    own = volume_of(case.reporter.container, f"{_ACCOUNT}/token")
    if not _mounts_token(case) and not own:
        yield (
            (*case.reporter.place, "volumeMounts"),
            "No service account token is mounted into the reporter, so it cannot write the "
            "verdict.",
            f"Mount a projected token at {_ACCOUNT} (deploy/components/native has one).",
        )


@_warning("token-shared", "every container of the Pod has a token that can write the verdict")
def token_shared(case: Case) -> Problems:
    if _mounts_token(case):
        yield (
            (*case.job.pod_place, AUTOMOUNT),
            f"Every container of the Pod has a token of {case.job.account!r}, and can write the "
            "verdict of any Job in the namespace.",
            "Set automountServiceAccountToken: false and mount a token into the reporter "
            "(status-ctl inject --own-token-only), or use --ignore token-shared if the containers "
            "need the API.",
        )


@_error(
    "missing-rights", "the service account lacks permission to read or write what the verdict needs"
)
def missing_rights(case: Case) -> Problems:
    yield from _lacking(case, NEEDED)


@_warning(
    "missing-optional-rights", "the service account lacks permission to watch Pods or create Events"
)
def missing_optional_rights(case: Case) -> Problems:
    silent = case.reporter.says_no("REPORT_EVENTS")
    yield from _lacking(case, (WATCH,) if silent else (WATCH, EVENTS))


@_error(
    "rights-after-hook",
    "Helm creates the rights or the service account of a hook after the hook",
)
def rights_after_hook(case: Case) -> Problems:
    job = case.job
    late = case.world.rights.later_than(job.hook, Account(job.namespace, job.account))
    if late:
        yield (
            (*job.pod_place, "serviceAccountName"),
            f"The Job is a Helm hook ({job.hook}) and runs before Helm creates {', '.join(late)}.",
            "Give them the same helm.sh/hook and a lower helm.sh/hook-weight (status-ctl inject "
            "--with-rbac does this for the rights), or use a later hook.",
        )


@_warning("parallel", "the Job runs several Pods at once", partial=True)
def parallel(case: Case) -> Problems:
    count = number(case.job.spec, "parallelism") or 1
    if count > 1:
        yield (
            (*case.job.place, "parallelism"),
            f"The Job runs {count} Pods at once: only the verdict of the newest one counts.",
            "Use one Job for each verdict.",
        )


@_warning(
    "completions",
    "the Job needs several Pods and is not `Indexed`: a later verdict replaces a failure",
    partial=True,
)
def completions(case: Case) -> Problems:
    job = case.job
    count = number(job.spec, "completions") or 1
    if count > 1 and text(job.spec, "completionMode") != "Indexed":
        yield (
            (*job.place, "completions"),
            f"The Job needs {count} successful Pods: the verdict of a later one replaces that of "
            "one that failed.",
            "Use one Job for each verdict, or set completionMode: Indexed: the verdict of an index "
            "that failed is kept.",
        )


@_warning("host-network", "with `hostNetwork` the reporter's port is on the node")
def host_network(case: Case) -> Problems:
    reporter = case.reporter
    if case.job.pod.get("hostNetwork") is not True:
        return
    if reporter.container.get("ports"):
        yield (
            (*reporter.place, "ports"),
            "The Pod uses the node's network, so each containerPort becomes a host port: a second "
            "such Pod on the node stays Pending.",
            "Remove the reporter's ports.",
        )
    if not reporter.variable("METRICS_PORT")[1] and not reporter.container.get("envFrom"):
        yield (
            (*reporter.place, "env"),
            "The Pod uses the node's network: the reporter's metrics occupy port 9464 of the node.",
            "Set METRICS_PORT to 0, or to a port that is free on every node.",
        )


@_warning("not-guaranteed", "the reporter's resources make a Guaranteed Pod Burstable")
def not_guaranteed(case: Case) -> Problems:
    ours = [each.container for each in case.job.reporters]
    everyone = [
        each
        for kind in ("initContainers", "containers")
        for each in items(case.job.pod, kind)
        if each not in ours
    ]
    others = {**case.job.pod, "initContainers": [], "containers": everyone}
    if guaranteed(others) and not limited(case.reporter.container):
        yield (
            (*case.reporter.place, "resources"),
            "The Pod would have the QoS class Guaranteed, but the reporter's requests and limits "
            "make it Burstable.",
            "Give the reporter equal requests and limits for CPU and memory (status-ctl inject "
            "--cpu-limit 500m).",
        )


def _lives_with_pod(volume: Mapping[str, Any]) -> bool:
    """Return whether a volume is made for each Pod. Without a source it is an emptyDir."""
    sources = {key: each for key, each in volume.items() if key != "name" and each is not None}
    return not sources or any(
        isinstance(sources.get(key), Mapping) for key in ("emptyDir", "ephemeral")
    )


def _mounts_token(case: Case) -> bool:
    """Return whether every container of the Pod gets a token of its account."""
    job = case.job
    stated = job.pod.get(AUTOMOUNT)
    account = Account(job.namespace, job.account)
    return case.world.rights.mounts_token(account) if stated is None else stated is not False


def _lacking(case: Case, wanted: tuple[Right, ...]) -> Problems:
    job, rights = case.job, case.world.rights
    account = Account(job.namespace, job.account)
    denied = case.world.denied.get((account, job.name))
    if denied is None:
        lacking = rights.lacking(account, job.name, wanted) or frozenset()
        where = "the files"
    else:
        # The rights in the files are perhaps not applied yet.
        lacking = denied - rights.granted(account, job.name, wanted)
        where = "the cluster"
    found = [str(each) for each in wanted if each in lacking]
    if found:
        yield (
            (*job.pod_place, "serviceAccountName"),
            f"By the RBAC rules of {where}, the service account {job.account!r} has no permission "
            f"to {', '.join(found)}.",
            f"Bind the Role of deploy/base to {job.account!r}, or set the serviceAccountName that "
            "it is bound to.",
        )


def _shares(container: Mapping[str, Any], mount: Mapping[str, Any], path: str) -> bool:
    """Return whether a container can write the file that `mount` of another shows at `path`.

    Mounted at the same path, both have to be of the same part of the volume.
    """
    file = posixpath.join(_part(mount), posixpath.relpath(path, mounted_at(mount)))
    for each in items(container, "volumeMounts"):
        if text(each, "name") != text(mount, "name") or each.get("readOnly") is True:
            continue
        if text(each, "subPathExpr") or text(mount, "subPathExpr"):
            return True  # known only in the Pod
        part = _part(each)
        if mounted_at(each) == mounted_at(mount):
            found = part == _part(mount)
        else:
            found = not part or file.startswith(part + "/")
        if found:
            return True
    return False


def _part(mount: Mapping[str, Any]) -> str:
    """Return which folder of its volume a mount shows; empty for all of it."""
    return posixpath.normpath(f"/{text(mount, 'subPath')}").strip("/")
