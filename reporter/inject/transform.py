"""The reporter in a Job's value, or out of it again, and why a Job cannot have one.

What was there before is untouched; `editing` carries a change over into the text.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from reporter.common.defaults import REPORTER
from reporter.common.objects import Object, items, json_object, number, section, text
from reporter.inject.container import Beside, Wishes, container
from reporter.inject.jobs import FoundJob, get, labels_of
from reporter.inject.results_volume import VOLUME, results
from reporter.jobs.setting import LABEL, reporters_in, says_so
from reporter.launch import added_container
from reporter.run.names import PLUGIN_LABEL
from reporter.verdict.facts import Form
from reporter.verdict.pod import PROXIES, Names, find_adapter

ANNOTATION: Final = "status-reporter.io/injected"
"""On a Job with a reporter: the lists and objects that were made for it, as JSON."""
DISABLED: Final = "disabled"
SAME_ACCOUNT: Final = (
    "every container with a token of a Job's account can write the verdict of any Job in the "
    "namespace: give these Jobs their own account, and use --own-token-only (or "
    "automountServiceAccountToken: false) unless their containers need the API"
)
"""A remark that is the same for every Job."""
AUTOMOUNT: Final = "automountServiceAccountToken"
_SYSTEM: Final = "kubernetes.io/os"
_VOLUMES: Final = (VOLUME, added_container.TOKEN, added_container.CERTIFICATES)
_SOMETIMES: Final = frozenset(
    {"ports", "restartPolicy", "runAsUser", "runAsGroup", "subPath", "subPathExpr", AUTOMOUNT}
)
"""Keys of our parts that no API server adds: one that is not wanted any more is an old one."""


@dataclass(frozen=True, slots=True)
class Injected:
    """It has a reporter then, and what a person should know."""

    form: Form
    adapter: str
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Left as it is, and rightly so."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Left as it is because it cannot be done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What is said of a Job, the Job without an earlier reporter, and the Job as it is to be."""

    said: Injected | Skipped | Refused
    bare: Any
    job: Any


def decide(job: Any, found: FoundJob, wishes: Wishes) -> Decision:
    """Decide about a Job as if it had never had a reporter of `status-ctl inject`."""
    bare = without_reporter(job)
    beside = _look(bare, found, wishes)
    if isinstance(beside, Skipped):
        return Decision(beside, bare, bare)
    if isinstance(beside, Refused):
        return Decision(beside, job, job)
    reporter, remarks = container(wishes, beside)
    shared = _remarks(bare, found, beside.pod, wishes)
    notes = [beside.doubt, beside.results.remark, *remarks, *shared]
    said = Injected(beside.form, beside.adapter["name"], tuple(filter(None, notes)))
    made = _with_reporter(bare, beside, wishes, reporter)
    return Decision(said, job, job) if covers(job, made) else Decision(said, bare, made)


def covers(shown: Any, wanted: Any) -> bool:
    """Say whether all that is wanted is there: an API server adds its defaults to an object."""
    if isinstance(shown, Mapping) and isinstance(wanted, Mapping):
        if _SOMETIMES & (shown.keys() - wanted.keys()):
            return False
        return all(key in shown and covers(shown[key], part) for key, part in wanted.items())
    if isinstance(shown, list) and isinstance(wanted, list):
        return len(shown) == len(wanted) and all(map(covers, shown, wanted))
    return bool(shown == wanted)


def without_reporter(job: Any) -> Any:
    """Return a Job without what `status-ctl inject` has put in; the same where it has not."""
    written = section(job, "metadata", "annotations").get(ANNOTATION)
    if not isinstance(written, str):
        return job
    # A record that somebody has changed names nothing.
    listed = (json_object(written) or {}).get("added")
    added = {str(each) for each in listed} if isinstance(listed, list) else set()
    made = deepcopy(job)
    metadata = made["metadata"]
    _take(metadata, "annotations", (ANNOTATION,), added)
    # A label that somebody has changed since is what they wish for.
    if _labelled(section(metadata, "labels").get(LABEL)) in added:
        _take(metadata, "labels", (LABEL,), added)
    if not metadata and "metadata" in added:
        del made["metadata"]
    pod = get(made, ("spec", "template", "spec"))
    if isinstance(pod, dict):
        for kind in ("initContainers", "containers"):
            _take(pod, kind, (REPORTER,), added)
        if AUTOMOUNT in added and pod.get(AUTOMOUNT) is False:
            del pod[AUTOMOUNT]
        _take(pod, "volumes", _VOLUMES, added)
        for each in items(pod, "containers"):
            _take(each, "volumeMounts", (VOLUME,), added)  # type: ignore[arg-type]
    return made


def reporter_of(pod: Object, adapter: str = "") -> Object | None:
    """Return a Pod's reporter, whoever has put it there.

    One that does not say so is the adapter if that is its name, or if no other container can be.
    """
    likely = {text(each, "name"): each for _, _, each in reporters_in(pod)}
    others = {text(each, "name") for each in items(pod, "containers")} - likely.keys() - PROXIES
    first = next(iter(likely.values()), None)
    if first is not None and (says_so(first) or (others and adapter not in likely)):
        return first
    return None


def account_of(pod: Object) -> str:
    """Return the name of the account of a Pod."""
    return text(pod, "serviceAccountName") or text(pod, "serviceAccount") or "default"


def _look(job: Any, found: FoundJob, wishes: Wishes) -> Beside | Skipped | Refused:
    """Return what a reporter would stand beside in a Job that has none of ours, or why not."""
    label = labels_of(job, found).get(LABEL, wishes.form.value)
    if label == DISABLED:
        return Skipped(f"label {LABEL}={DISABLED}")
    if label not in list(Form):
        return Refused(f"label {LABEL}={label} must be native, classic or {DISABLED}")
    template = section(job, "spec", "template")
    pod = section(template, "spec")
    if other := reporter_of(pod, wishes.adapter):
        shown = text(other, "name")
        if not (wishes.adapter or says_so(other)):
            why = "has a reporter's variables: set --adapter to it, or to the adapter next to it"
            return Refused(f"container {shown!r} {why}")
        return Skipped(f"has a container {shown!r} that was not added by status-ctl inject")
    deadline = _deadline(section(job))
    if why := _unfit(pod) or _too_short(deadline, wishes):
        return Refused(why)
    name, doubt = _adapter(template, wishes)
    if not name:
        return Refused(doubt)
    adapter = next(each for each in items(pod, "containers") if text(each, "name") == name)
    volume = results(pod, adapter, wishes.results_path)
    if isinstance(volume, str):
        return Refused(f"no volume for results: {volume}")
    label_value = text(section(template, "metadata", "labels"), PLUGIN_LABEL)
    if wishes.aggregator and not (label_value or found.name):
        return Refused(
            f"neither a name nor a label {PLUGIN_LABEL} says which plugin the result belongs to"
        )
    return Beside(
        form=Form(label),
        template=template,
        adapter=adapter,
        results=volume,
        deadline=deadline,
        plugin=label_value or found.name,
        labelled=bool(label_value),
        doubt=doubt,
    )


def _with_reporter(job: Any, beside: Beside, wishes: Wishes, reporter: Object) -> Any:
    """Return the Job with the reporter's container, and all that belongs to it."""
    made, added = deepcopy(job), set[str]()
    metadata = _part(made, "metadata", {}, added)
    annotations = _part(metadata, "annotations", {}, added)
    if LABEL not in section(metadata, "labels"):
        added.add(_labelled(beside.form))
        _part(metadata, "labels", {}, added)[LABEL] = beside.form.value
    pod = made["spec"]["template"]["spec"]
    volumes = [added_container.token_volume()]
    if beside.results.added is not None:
        adapter = pod["containers"][pod["containers"].index(beside.adapter)]
        _part(adapter, "volumeMounts", [], added).append(beside.results.added)
        # On disk: with `medium: Memory` results would count as the adapter's memory.
        volumes.insert(0, {"name": VOLUME, "emptyDir": {}})
    if wishes.aggregator:
        secret = f"{wishes.aggregator.partition('.')[0]}-{beside.plugin}"
        volumes.append(added_container.certificates_volume(secret))
    kind = "initContainers" if beside.form is Form.NATIVE else "containers"
    _part(pod, kind, [], added).insert(0, reporter)
    _part(pod, "volumes", [], added).extend(volumes)
    if wishes.own_token_only and pod.get(AUTOMOUNT) is None:
        added.add(AUTOMOUNT)
        pod[AUTOMOUNT] = False
    annotations[ANNOTATION] = json.dumps({"added": sorted(added)}, separators=(",", ":"))
    return made


def _part(holder: Any, key: str, empty: Any, added: set[str]) -> Any:
    """Return the list or object under a key; it is made where there is none."""
    if not isinstance(holder.get(key), type(empty)):
        added.add(key)
        holder[key] = empty
    return holder[key]


def _take(holder: dict[str, Any], key: str, ours: tuple[str, ...], added: set[str]) -> None:
    """Take our parts out, and with them what was made for them alone."""
    part = holder.get(key)
    if isinstance(part, dict):
        kept: Any = {name: each for name, each in part.items() if name not in ours}
    elif isinstance(part, list):
        kept = [each for each in part if text(section(each), "name") not in ours]
    else:
        return
    if kept or key not in added:
        holder[key] = kept
    elif part:
        del holder[key]


def _labelled(form: Any) -> str:
    return f"label={form}"


def _adapter(template: Any, wishes: Wishes) -> tuple[str, str]:
    """Return the adapter's name and a remark, or an empty name and why there is none."""
    names = [text(each, "name") for each in items(section(template, "spec"), "containers")]
    listed = ", ".join(names) or "none"
    if wishes.adapter:
        missing = f"no container {wishes.adapter!r}; containers: {listed}"
        return (wishes.adapter, "") if wishes.adapter in names else ("", missing)
    found, _, _ = find_adapter(template, Names(REPORTER, "", wishes.results_path))
    if found:
        return found, ""
    likely = [name for name in names if name and name not in PROXIES]
    if not likely:
        return "", f"no container can be the adapter; containers: {listed}"
    if len(likely) == 1:
        return likely[0], ""
    doubt = f"several containers could be the adapter ({', '.join(likely)}): using {likely[0]!r}"
    return likely[0], f"{doubt}; set --adapter to choose another"


def _unfit(pod: Object) -> str:
    policy = text(pod, "restartPolicy")
    if policy not in ("Never", "OnFailure"):
        shown = policy or "missing, which means Always"
        return f"restartPolicy is {shown}; a Job's must be Never or OnFailure"
    systems = text(section(pod, "os"), "name"), text(section(pod, "nodeSelector"), _SYSTEM)
    if "windows" in systems:
        return "its Pods run on Windows; the reporter needs Linux"
    taken = {text(each, "name") for each in items(pod, "volumes")} & set(_VOLUMES)
    if taken:
        return f"volume {min(taken)!r} is not the reporter's"
    return ""


def _too_short(deadline: int | None, wishes: Wishes) -> str:
    if deadline is None or deadline > 1 or "MAX_WAIT_TIME_SECONDS" in wishes.environment:
        return ""
    return f"activeDeadlineSeconds is {deadline}, which leaves no time for a verdict"


def _deadline(job: Object) -> int | None:
    own = number(section(job, "spec"), "activeDeadlineSeconds")
    pods = number(section(job, "spec", "template", "spec"), "activeDeadlineSeconds")
    return min((each for each in (own, pods) if each is not None), default=None)


def _remarks(whole: Any, found: FoundJob, pod: Object, wishes: Wishes) -> Iterator[str]:
    """Yield what a person should know of the Job as a whole."""
    job = section(whole, "spec")
    several = [name for name in ("completions", "parallelism") if (number(job, name) or 1) > 1]
    if several:
        rule = "the verdict is that of its newest Pod"
        if several[0] == "completions" and job.get("completionMode") == "Indexed":
            rule = "a failed index keeps its verdict, else it is that of the newest Pod"
        yield f"{several[0]} is {job[several[0]]}: {rule}"
    if wishes.aggregator and number(job, "backoffLimit") != 0:
        yield "set backoffLimit: 0: the aggregator keeps the result of the first attempt"
    for field in ("shareProcessNamespace", "hostPID"):
        if pod.get(field) is True:
            yield f"{field}: containers of the same user can read the reporter's token"
    # Kustomize and `kubectl -n` fill in the namespaces that files do not have.
    none = wishes.own_token_only or any(
        name == account_of(pod) and (not namespace or found.namespace in ("", namespace))
        for namespace, name in wishes.without_token
    )
    mounts = pod.get(AUTOMOUNT, False if none else None)
    if mounts is not False or account_of(pod) == "default":
        yield SAME_ACCOUNT
    if mounts is True and wishes.own_token_only:
        yield f"{AUTOMOUNT} is true: the Pod's other containers keep their token"
