"""Rules about the Pod: order, probes, volumes, memory, token, rights."""

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reporter.common.objects import items, number, quantity, section, text
from reporter.inject.container import guaranteed, limited
from reporter.inject.transform import AUTOMOUNT
from reporter.lint.case import Case, Hit, shown
from reporter.lint.jobs import Job
from reporter.lint.rights import EVENTS, NEEDED, WATCH, Account, Right
from reporter.verdict.facts import Form
from reporter.verdict.pod import declared, find_adapter, mount_of, mounted_at, volume_of, writes

PEAK: Final = 51_000_000
"""Bytes: what a reporter needs at most (docs/benchmarks.md)."""
_ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"


def not_injected(job: Job) -> Iterator[Hit]:
    """A Job without a reporter never has a verdict, and nobody notices."""
    if job.asked[: len(job.spec_place) + 1] == (*job.spec_place, "template"):
        yield Hit(
            job.asked,
            "The label is on the Pod template, where it has no effect.",
            "Move it to the labels of the Job, then run status-ctl inject.",
        )
        return
    yield Hit(
        job.asked,
        "The label requests a reporter, but the Pod template has none.",
        "Run status-ctl inject, or check what kubectl kustomize prints with the component of "
        "deploy/components. If the policy of deploy/admission adds it in the cluster, use --ignore "
        "not-injected.",
    )


def classic_not_first(case: Case) -> Iterator[Hit]:
    """The kubelet starts containers in order."""
    reporter, ours = case.reporter, {each.name for each in case.job.reporters}
    others = [
        name
        for each in list(items(case.job.pod, "containers"))[: reporter.index]
        if (name := text(each, "name")) not in ours
    ]
    if reporter.form is Form.CLASSIC and others:
        yield Hit(
            reporter.place,
            f"Containers start before the reporter ({shown(others)}): an image pull that hangs "
            "blocks it, and that is not reported.",
            "List the reporter first under containers.",
        )


def native_not_first(case: Case) -> Iterator[Hit]:
    """Init containers before ours end, or fail, before we run."""
    reporter, pod = case.reporter, case.job.pod
    before = [text(each, "name") for each in items(pod, "initContainers")][: reporter.index]
    if reporter.form is Form.NATIVE and before:
        yield Hit(
            reporter.place,
            f"Init containers start before the reporter ({shown(before)}): a failure "
            "of one is not reported.",
            "List the reporter first under initContainers.",
        )


def form(case: Case) -> Iterator[Hit]:
    """What the reporter is told it is, and what it is."""
    reporter, native = case.reporter, case.reporter.form is Form.NATIVE
    policy = text(reporter.container, "restartPolicy")
    if native and policy != "Always" and case.job.whole:
        yield Hit(
            reporter.place,
            "The reporter is an init container without restartPolicy: Always: the Pod waits for "
            "its end, and the adapter never starts.",
            "Set restartPolicy: Always on this container.",
        )
    told, real = reporter.value("REPORTER_FORM"), "native" if native else "classic"
    if told in {"native", "classic"} - {real}:
        listed = "initContainers" if native else "containers"
        yield Hit(
            (*reporter.variable("REPORTER_FORM")[0], "value"),
            f"REPORTER_FORM is {told}, but the container is listed under {listed}.",
            f"Set REPORTER_FORM to {real}.",
        )


def liveness_probe(case: Case) -> Iterator[Hit]:
    """A probe that kills a reporter which waits for the API server."""
    if "livenessProbe" in case.reporter.container:
        yield Hit(
            (*case.reporter.place, "livenessProbe"),
            "A liveness probe kills a reporter that waits for the API server, and the verdict is "
            "lost.",
            "Remove it; /readyz on the metrics port shows the reporter's state.",
        )


def startup_probe(case: Case) -> Iterator[Hit]:
    """A probe that the adapter waits for."""
    if "startupProbe" in case.reporter.container:
        yield Hit(
            (*case.reporter.place, "startupProbe"),
            "A startup probe delays the adapter, and kills the reporter when it fails.",
            "Remove it; the reporter is ready to report from its first moment.",
        )


def memory_limit(case: Case) -> Iterator[Hit]:
    """A limit that the reporter cannot live with."""
    limit = section(case.reporter.container, "resources", "limits").get("memory")
    found = quantity(str(limit))
    if found is not None and found < PEAK:
        yield Hit(
            (*case.reporter.place, "resources", "limits", "memory"),
            f"The memory limit is {limit}, but a reporter needs up to {PEAK // 10**6} MB: it would "
            "be OOM-killed.",
            "Set the limit to 64Mi.",
        )


def parallel(case: Case) -> Iterator[Hit]:
    """Several Pods at once."""
    count = number(case.job.spec, "parallelism") or 1
    if count > 1:
        yield Hit(
            (*case.job.spec_place, "parallelism"),
            f"The Job runs {count} Pods at once: only the verdict of the newest one counts.",
            "Use one Job for each verdict.",
        )


def completions(case: Case) -> Iterator[Hit]:
    """Several Pods one after the other, which nothing tells apart."""
    job = case.job
    count = number(job.spec, "completions") or 1
    if count > 1 and text(job.spec, "completionMode") != "Indexed":
        yield Hit(
            (*job.spec_place, "completions"),
            f"The Job needs {count} successful Pods: the verdict of a later one replaces that of "
            "one that failed.",
            "Use one Job for each verdict, or set completionMode: Indexed: the verdict of an index "
            "that failed is kept.",
        )


def host_network(case: Case) -> Iterator[Hit]:
    """A port that is not the Pod's own."""
    reporter = case.reporter
    if case.job.pod.get("hostNetwork") is not True:
        return
    if reporter.container.get("ports"):
        yield Hit(
            (*reporter.place, "ports"),
            "The Pod uses the node's network, so each containerPort becomes a host port: a second "
            "such Pod on the node stays Pending.",
            "Remove the reporter's ports.",
        )
    if not reporter.variable("METRICS_PORT")[1] and not reporter.container.get("envFrom"):
        yield Hit(
            (*reporter.place, "env"),
            "The Pod uses the node's network: the reporter serves its metrics on port 9464 of the "
            "node, and takes it from others.",
            "Set METRICS_PORT to 0, or to a port that is free on every node.",
        )


def not_guaranteed(case: Case) -> Iterator[Hit]:
    """A Pod that is evicted earlier, and cannot have CPUs of its own, because of the reporter."""
    ours = [each.container for each in case.job.reporters]
    everyone = [
        each
        for kind in ("initContainers", "containers")
        for each in items(case.job.pod, kind)
        if each not in ours
    ]
    others = {**case.job.pod, "initContainers": [], "containers": everyone}
    if guaranteed(others) and not limited(case.reporter.container):
        yield Hit(
            (*case.reporter.place, "resources"),
            "The Pod would have the QoS class Guaranteed, but the reporter's requests and limits "
            "make it Burstable.",
            "Give the reporter equal requests and limits for CPU and memory (status-ctl inject "
            "--cpu-limit 500m).",
        )


def results_not_shared(case: Case) -> Iterator[Hit]:
    """The adapter's file has to be where the reporter looks."""
    job, reporter, pod = case.job, case.reporter, case.job.pod
    names = job.names(reporter)
    if names is None or reporter.says_no("RESULT_REQUIRED"):
        return
    mount = mount_of(reporter.container, names.results_path)
    volume = text(mount, "name")
    if not volume:
        yield Hit(
            (*reporter.place, "volumeMounts"),
            f"The reporter mounts no volume that holds {names.results_path}: it never sees a "
            "result.",
            "Mount the volume that the adapter writes to.",
        )
        return
    adapter, _, _ = find_adapter(job.as_pod(), names)
    container = declared(pod, adapter) if adapter else {}
    if not adapter or _shares(container, mount, names.results_path):
        return
    at = [text(each, "name") for each in items(pod, "containers")].index(adapter)
    place = (*job.pod_place, "containers", at, "volumeMounts")
    if writes(container, volume):
        yield Hit(
            place,
            f"The adapter {adapter!r} mounts another subPath of the volume {volume!r} than the "
            f"reporter, which reads {names.results_path} from it.",
            "Mount the same subPath in both.",
        )
    else:
        yield Hit(
            place,
            f"The adapter {adapter!r} does not mount the volume {volume!r} writable, which the "
            f"reporter reads {names.results_path} from.",
            f"Mount {volume!r} in the adapter, and write the result there.",
        )


def results_not_emptydir(case: Case) -> Iterator[Hit]:
    """Volumes that outlive a Pod."""
    job, names = case.job, case.job.names(case.reporter)
    volume = volume_of(case.reporter.container, names.results_path) if names else ""
    listed = job.pod.get("volumes")
    for at, each in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(each, Mapping) and volume and text(each, "name") == volume:
            if _lives_with_pod(each):
                return
            yield Hit(
                (*job.pod_place, "volumes", at),
                f"The volume {volume!r} of the result file is not an emptyDir: a file of an "
                "earlier Pod may be there, and it can be distinguished from a new one only by its "
                "timestamp.",
                "Use an emptyDir, or a separate path for each Pod.",
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


def token_shared(case: Case) -> Iterator[Hit]:
    """The adapter has what it takes to write its own verdict."""
    if _mounts_token(case):
        yield Hit(
            (*case.job.pod_place, AUTOMOUNT),
            f"Every container of the Pod has a token of {case.job.account!r}, and can write the "
            "verdict of any Job in the namespace.",
            "Set automountServiceAccountToken: false and mount a token into the reporter "
            "(status-ctl inject --own-token-only), or use --ignore token-shared if the containers "
            "need the API.",
        )


def token(case: Case) -> Iterator[Hit]:
    """Without a token nothing is written."""
    own = volume_of(case.reporter.container, f"{_ACCOUNT}/token")
    if not _mounts_token(case) and not own:
        yield Hit(
            (*case.reporter.place, "volumeMounts"),
            "No service account token is mounted into the reporter, so it cannot write the "
            "verdict.",
            f"Mount a projected token at {_ACCOUNT} (deploy/components/native has one).",
        )


def missing_rights(case: Case) -> Iterator[Hit]:
    """Rights without which there is no verdict, or a poor one."""
    yield from _lacking(case, NEEDED)


def missing_optional_rights(case: Case) -> Iterator[Hit]:
    """Rights without which the reporter works, but slower or without Events."""
    silent = case.reporter.says_no("REPORT_EVENTS")
    yield from _lacking(case, (WATCH,) if silent else (WATCH, EVENTS))


def _lacking(case: Case, wanted: tuple[Right, ...]) -> Iterator[Hit]:
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
        yield Hit(
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
