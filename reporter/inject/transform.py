"""What a Job's Pods must have for the reporter, as changes of the Job: put in, and taken out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from reporter.common.defaults import REPORTER
from reporter.common.objects import Object, items, number, section, text
from reporter.inject import record
from reporter.inject.container import Beside, container
from reporter.inject.edits import Add, Edit, Path, Put, Remove, get, put
from reporter.inject.jobs import FoundJob
from reporter.inject.options import DISABLED, Wishes, wanted_form
from reporter.inject.record import ANNOTATION, InjectionRecord
from reporter.inject.results_volume import VOLUME, Results, results
from reporter.jobs.setting import LABEL, reporters_in, says_so
from reporter.launch import added_container
from reporter.run.names import PLUGIN_LABEL
from reporter.verdict.facts import Form
from reporter.verdict.pod import PROXIES, Names, find_adapter

SAME_ACCOUNT: Final = (
    "every container with a token of a Job's account can write the verdict of any Job in the "
    "namespace: use an account for these Jobs alone, and --own-token-only (or "
    "automountServiceAccountToken: false) where their containers do not need the API"
)
"""A remark that is the same for every Job."""
AUTOMOUNT: Final = "automountServiceAccountToken"
_LABELLED: Final = "label="
_SYSTEM: Final = "kubernetes.io/os"
_VOLUMES: Final = (VOLUME, added_container.TOKEN, added_container.CERTIFICATES)


@dataclass(frozen=True, slots=True)
class Injected:
    """It can be done: the changes, and what a person should know. Without changes it is done."""

    form: Form
    adapter: str
    edits: tuple[Edit, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """Left as it is, and rightly so."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Left as it is because it cannot be done."""

    reason: str


def inject(value: Any, found: FoundJob, wishes: Wishes) -> Injected | Skipped | Refused:
    """Decide about one Job of an object that has no reporter by `status-ctl inject`."""
    job, template = get(value, found.job), get(value, found.pod[:-1])
    form = wanted_form(found.labels, wishes.form)
    if form == DISABLED:
        return Skipped(f"label {LABEL}={DISABLED}")
    if not isinstance(form, Form):
        return Refused(f"label {LABEL}={form} must be native, classic or {DISABLED}")
    pod = section(template, "spec")
    if other := reporter_of(pod, wishes.adapter):
        if not (wishes.adapter or says_so(other)):
            why = "has a reporter's variables: set --adapter to it, or to the adapter next to it"
            return Refused(f"container {text(other, 'name')!r} {why}")
        shown = text(other, "name")
        return Skipped(f"has a container {shown!r} that was not added by status-ctl inject")
    deadline = _deadline(section(job))
    if why := _unfit(pod) or _too_short(deadline, wishes):
        return Refused(why)
    name, doubt = adapter_of(template, wishes)
    if not name:
        return Refused(doubt)
    adapter = next(each for each in items(pod, "containers") if text(each, "name") == name)
    seen = results(pod, adapter, wishes.results_path)
    if isinstance(seen, str):
        return Refused(f"no volume for results: {seen}")
    plugin = "" if PLUGIN_LABEL in _labels(template) else found.name
    if wishes.aggregator and not (plugin or PLUGIN_LABEL in _labels(template)):
        return Refused(
            f"neither a name nor a label {PLUGIN_LABEL} says which plugin the result belongs to"
        )
    beside = Beside(form, section(template), adapter, seen, deadline, plugin)
    made, remarks = container(wishes, beside)
    added: list[str] = []
    edits = [
        *_marks(value, found, form, added),
        _listed(value, (*found.pod, _kind(form)), made, added, first=True),
        *_mount(value, found, seen, adapter, added),
        *_volumes(value, found, seen, _secret(wishes, beside), added),
        *_token_mounts(pod, found, wishes, added),
    ]
    edits.insert(0, _annotation(value, found, added))
    notes = [doubt, seen.remark, *remarks, *_whole(section(job, "spec"), pod, wishes)]
    return Injected(form, name, tuple(_joined(edits)), tuple(each for each in notes if each))


def uninject(value: Any, found: FoundJob) -> tuple[Edit, ...]:
    """Return the changes that take out what `inject` has put in; none where it has not."""
    metadata = (*found.job, "metadata")
    known = record.read(section(get(value, (*metadata, "annotations"))))
    if known is None:
        return ()
    own: dict[Path, set[Any]] = {(*metadata, "annotations"): {ANNOTATION}}
    # One that somebody has changed since is what they wish for.
    label = get(value, (*metadata, "labels", LABEL))
    if f"{_LABELLED}{label}" in known.added:
        own[(*metadata, "labels")] = {LABEL}
    for kind in ("initContainers", "containers"):
        own[(*found.pod, kind)] = set(_named(value, (*found.pod, kind), (REPORTER,)))
    if AUTOMOUNT in known.added and get(value, (*found.pod, AUTOMOUNT)) is False:
        own[found.pod] = {AUTOMOUNT}
    own[(*found.pod, "volumes")] = set(_named(value, (*found.pod, "volumes"), _VOLUMES))
    for index, _ in enumerate(get(value, (*found.pod, "containers")) or ()):
        mounts = (*found.pod, "containers", index, "volumeMounts")
        if index not in own[(*found.pod, "containers")]:
            own[mounts] = set(_named(value, mounts, (VOLUME,)))
    return tuple(_without(value, own, known))


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


def adapter_of(template: Any, wishes: Wishes) -> tuple[str, str]:
    """Return the adapter's name and a remark, or an empty name and why there is none."""
    names = [text(each, "name") for each in items(section(template, "spec"), "containers")]
    listed = ", ".join(names) or "none"
    if wishes.adapter:
        missing = f"no container {wishes.adapter!r}; containers: {listed}"
        return (wishes.adapter, "") if wishes.adapter in names else ("", missing)
    found, _, _ = find_adapter(section(template), Names(REPORTER, "", wishes.results_path))
    if found:
        return found, ""
    likely = [name for name in names if name and name not in PROXIES]
    if not likely:
        return "", f"no container can be the adapter; containers: {listed}"
    if len(likely) == 1:
        return likely[0], ""
    return likely[0], f"{likely[0]!r} is the first of {listed}: set --adapter for another"


def account_of(pod: Object) -> str:
    """Return the name of the account of a Pod."""
    return text(pod, "serviceAccountName") or text(pod, "serviceAccount") or "default"


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


def _whole(job: Object, pod: Object, wishes: Wishes) -> Iterator[str]:
    """Yield what a person should know of the Job as a whole."""
    for field in ("parallelism", "completions"):
        if (number(job, field) or 1) > 1:
            rule = "the verdict is that of its newest Pod"
            if field == "completions" and job.get("completionMode") == "Indexed":
                rule = "a failed index keeps its verdict, else it is that of the newest Pod"
            yield f"{field} is {job[field]}: {rule}"
            break
    if wishes.aggregator and number(job, "backoffLimit") != 0:
        yield "set backoffLimit: 0: the aggregator keeps the result of the first attempt"
    for field in ("shareProcessNamespace", "hostPID"):
        if pod.get(field) is True:
            yield f"{field}: containers of the same user can read the reporter's token"
    mounts = pod.get(AUTOMOUNT, None if not wishes.own_token_only else False)
    if mounts is not False or account_of(pod) == "default":
        yield SAME_ACCOUNT
    if mounts is True and wishes.own_token_only:
        yield f"{AUTOMOUNT} is true: the Pod's other containers keep their token"


def _labels(template: Any) -> Object:
    return section(template, "metadata", "labels")


def _kind(form: Form) -> str:
    return "initContainers" if form is Form.NATIVE else "containers"


def _secret(wishes: Wishes, beside: Beside) -> str:
    """Return the Secret with the client's certificate, empty if there is no aggregator."""
    if not wishes.aggregator:
        return ""
    plugin = beside.plugin or text(_labels(beside.template), PLUGIN_LABEL)
    return f"{wishes.aggregator.partition('.')[0]}-{plugin}"


def _marks(value: Any, found: FoundJob, form: Form, added: list[str]) -> Iterator[Edit]:
    metadata = (*found.job, "metadata")
    if not isinstance(get(value, metadata), dict):
        added.append("metadata")
    if LABEL not in section(get(value, (*metadata, "labels"))):
        added.append(f"{_LABELLED}{form.value}")
        if not isinstance(get(value, (*metadata, "labels")), dict):
            added.append("labels")
        yield put(value, (*metadata, "labels", LABEL), form.value)


def _annotation(value: Any, found: FoundJob, added: list[str]) -> Edit:
    path = (*found.job, "metadata", "annotations")
    if not isinstance(get(value, path), dict):
        added.append("annotations")
    return put(value, (*path, ANNOTATION), InjectionRecord(tuple(sorted(added))).text())


def _mount(
    value: Any, found: FoundJob, seen: Results, adapter: Object, added: list[str]
) -> Iterator[Edit]:
    if seen.added is not None:
        containers = get(value, (*found.pod, "containers"))
        path = (*found.pod, "containers", containers.index(adapter), "volumeMounts")
        yield _listed(value, path, seen.added, added)


def _token_mounts(pod: Object, found: FoundJob, wishes: Wishes, added: list[str]) -> Iterator[Edit]:
    if wishes.own_token_only and pod.get(AUTOMOUNT) is None:
        added.append(AUTOMOUNT)
        yield Put((*found.pod, AUTOMOUNT), False)


def _volumes(
    value: Any, found: FoundJob, seen: Results, secret: str, added: list[str]
) -> Iterator[Edit]:
    new: list[dict[str, Any]] = []
    if seen.added is not None:
        # On disk: with `medium: Memory` results would count as the adapter's memory.
        new.append({"name": VOLUME, "emptyDir": {}})
    new.append(added_container.token_volume())
    if secret:
        new.append(added_container.certificates_volume(secret))
    path = (*found.pod, "volumes")
    if isinstance(get(value, path), list):
        yield from (Add(path, each) for each in new)
    else:
        added.append("volumes")
        yield Put(path, new)


def _listed(value: Any, path: Path, new: Object, added: list[str], *, first: bool = False) -> Edit:
    if isinstance(get(value, path), list):
        return Add(path, new, first)
    added.append(str(path[-1]))
    return Put(path, [new])


def _joined(edits: list[Edit]) -> Iterator[Edit]:
    """Make one change of those that would put the same key: `metadata` with both its parts."""
    made: dict[Path, Any] = {}
    for edit in edits:
        if isinstance(edit, Put) and edit.path in made:
            made[edit.path] = {**made[edit.path], **edit.value}
        elif isinstance(edit, Put):
            made[edit.path] = edit.value
    for edit in edits:
        if not isinstance(edit, Put):
            yield edit
        elif edit.path in made:
            yield Put(edit.path, made.pop(edit.path))


def _named(value: Any, path: Path, names: tuple[str, ...]) -> Iterator[int]:
    found = get(value, path)
    for index, each in enumerate(found if isinstance(found, list) else []):
        if text(section(each), "name") in names:
            yield index


def _without(value: Any, own: dict[Path, set[Any]], known: InjectionRecord) -> Iterator[Remove]:
    """Take out each part, or the whole of what was made for our parts alone."""
    gone: set[Path] = set()
    for path, parts in own.items():
        whole = get(value, path)
        if parts and path[-1] in known.added and len(whole) == len(parts):
            gone.add(path)
        else:
            gone |= {(*path, part) for part in parts}
    metadata = next(iter(own))[:-1]
    inside = {path for path in gone if path[:-1] == metadata}
    if "metadata" in known.added and len(inside) == len(get(value, metadata)):
        gone = gone - inside | {metadata}
    yield from (Remove(path) for path in sorted(gone, key=str))
