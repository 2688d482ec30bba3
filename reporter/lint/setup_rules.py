"""Rules about what the reporter is told, its form and place among the containers, and times."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from typing import Final

from reporter.common.objects import Place, items, number, section, text
from reporter.common.text import go_duration
from reporter.jobs.setting import MARGIN
from reporter.lint.case import Case, Problems, Rule, Severity, job_rule, rule
from reporter.lint.jobs import Job
from reporter.verdict.facts import Form
from reporter.verdict.pod import find_adapter

RULES: Final = list[Rule]()
_error: Final = partial(rule, RULES, Severity.ERROR)
_warning: Final = partial(rule, RULES, Severity.WARNING)
_JOB_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")
_GRACE: Final = 5  # seconds; two of them are kept for the exit
_REAPED: Final = 120
"""Seconds after a Job's end, at most, when the reaper writes: its --settle and --interval."""
_BACKOFF_LIMIT: Final = 6  # the API server's default


@job_rule(
    RULES,
    Severity.ERROR,
    "not-injected",
    "the label `status-reporter.io/inject` is set, and the Pod template has no reporter",
)
def not_injected(job: Job) -> Problems:
    if job.reporters:
        return
    if job.asked[: len(job.place) + 1] == (*job.place, "template"):
        yield (
            job.asked,
            "The label is on the Pod template, where it has no effect.",
            "Move it to the labels of the Job, then run status-ctl inject.",
        )
        return
    yield (
        job.asked,
        "The label requests a reporter, but the Pod template has none.",
        "Run status-ctl inject, or check what kubectl kustomize prints with the component of "
        "deploy/components. If the policy of deploy/admission adds it in the cluster, use --ignore "
        "not-injected.",
    )


@_error("settings", "the reporter does not start with these settings", partial=True)
def settings(case: Case) -> Problems:
    for name, (place, entry) in case.reporter.variables.items():
        if not isinstance(entry.get("value", ""), str):
            yield (
                (*place, "value"),
                f"The value of {name} is not text: the API server rejects the Job.",
                "Put the value in quotes.",
            )
    for name, problem, refused in _complaints(case):
        if refused:
            yield (
                case.reporter.variable(name)[0],
                f"The reporter does not start: {problem}.",
                f"Set {name} as docs/settings.md says.",
            )


@_warning("settings-ignored", "a setting is invalid, and the default is used instead", partial=True)
def settings_ignored(case: Case) -> Problems:
    for name, problem, refused in _complaints(case):
        if not refused:
            yield (
                case.reporter.variable(name)[0],
                f"The reporter ignores the value: {problem}.",
                f"Set {name} as docs/settings.md says, or remove it.",
            )


@_warning("unknown-setting", "a variable looks like a misspelled setting")
def unknown_setting(case: Case) -> Problems:
    given = case.reporter.variables
    # A setting that is there is not what was meant: POD_NAMESPACE is no misspelt JOB_NAMESPACE.
    missing = sorted(case.world.settings - given.keys())
    for name in sorted(given.keys() - case.world.settings):
        likely = get_close_matches(name.upper(), missing, 1, 0.75)
        if likely and not name.startswith("SSL_"):  # OpenSSL's
            yield (
                given[name][0],
                f"{name} is not a setting of the reporter.",
                f"Rename it if you meant {likely[0]}.",
            )


@_error("job-name", "`JOB_NAME`, `JOB_NAMESPACE` or `POD_NAME` does not match the Job or its Pod")
def job_name(case: Case) -> Problems:
    job, reporter = case.job, case.reporter
    literal = reporter.literal
    place = reporter.variable("JOB_NAME")[0]
    path = _field(case, "JOB_NAME")
    if (told := literal.get("JOB_NAME", "")) and told != job.name:
        real = f"this Job is named {job.name!r}" if job.name else "the Job gets a generated name"
        yield (
            (*place, "value"),
            f"JOB_NAME is {told!r}, but {real}: the verdict goes to another Job or to none.",
            "Take it from the Pod: fieldRef: metadata.labels['job-name'].",
        )
    elif path and path not in {f"metadata.labels['{label}']" for label in _JOB_LABELS}:
        label = path.removeprefix("metadata.labels['").removesuffix("']")
        if not job.name or text(section(job.template, "metadata", "labels"), label) != job.name:
            yield (
                (*place, "valueFrom", "fieldRef", "fieldPath"),
                f"JOB_NAME is taken from {path}, which does not hold the Job's name.",
                "Take it from metadata.labels['job-name'].",
            )
    told, real = literal.get("JOB_NAMESPACE", ""), job.namespace
    if told and real and told != real:
        yield (
            (*reporter.variable("JOB_NAMESPACE")[0], "value"),
            f"JOB_NAMESPACE is {told!r}, but the Job is in namespace {real!r}.",
            "Take it from the Pod: fieldRef: metadata.namespace.",
        )
    if literal.get("POD_NAME", ""):
        yield (
            (*reporter.variable("POD_NAME")[0], "value"),
            "POD_NAME is a fixed text, but the Pods of a Job get generated names.",
            "Take it from the Pod: fieldRef: metadata.name.",
        )
    for name, wanted in (("JOB_NAMESPACE", "metadata.namespace"), ("POD_NAME", "metadata.name")):
        if _field(case, name) not in {"", wanted}:
            yield (
                (*reporter.variable(name)[0], "valueFrom", "fieldRef", "fieldPath"),
                f"{name} is taken from {_field(case, name)}.",
                f"Take it from {wanted}.",
            )


@_error(
    "reporter-name",
    "`REPORTER_CONTAINER_NAME` is not the name of the reporter's container",
    partial=True,
)
def reporter_name(case: Case) -> Problems:
    reporter = case.reporter
    told = reporter.value("REPORTER_CONTAINER_NAME")
    if told not in {None, reporter.name}:
        yield (
            reporter.variable("REPORTER_CONTAINER_NAME")[0],
            f"The reporter's container is named {reporter.name!r}, but REPORTER_CONTAINER_NAME is "
            f"{told!r}: the reporter may mistake itself for the adapter.",
            f"Set REPORTER_CONTAINER_NAME to {reporter.name!r}, or name the container {told!r}.",
        )


@_error(
    "adapter-not-found", "`ADAPTER_CONTAINER_NAME` names no container, or there is none to watch"
)
def adapter_not_found(case: Case) -> Problems:
    names = case.reporter.names
    misfit = names and find_adapter(case.job.template, names)[1]
    if misfit:
        yield (
            case.reporter.variable("ADAPTER_CONTAINER_NAME")[0],
            f"The reporter finds no adapter: {misfit}.",
            "Set ADAPTER_CONTAINER_NAME to the adapter container.",
        )


@_warning("adapter-guessed", "several containers could be the adapter")
def adapter_guessed(case: Case) -> Problems:
    names = case.reporter.names
    for remark in find_adapter(case.job.template, names)[2] if names else ():
        yield (
            case.reporter.place,
            f"It is not clear which container is the adapter ({remark}).",
            "Set ADAPTER_CONTAINER_NAME.",
        )


@_error("same-condition", "two reporters of a Pod write the same condition")
def same_condition(case: Case) -> Problems:
    own = case.reporter.value("CONDITION_TYPE")
    others = [
        each.name
        for each in case.job.reporters
        if each.place != case.reporter.place
        and own is not None
        and (each.value("CONDITION_TYPE") or "").replace("/", ".") == own.replace("/", ".")
    ]
    if others:
        yield (
            case.reporter.variable("CONDITION_TYPE")[0],
            f"The reporters {_listed(sorted({case.reporter.name, *others}))} write one condition "
            f"({own}): the verdict of one replaces that of the other.",
            "Give each reporter its own CONDITION_TYPE.",
        )


@_error(
    "form",
    "`REPORTER_FORM` does not match, or an init container has no `restartPolicy: Always`",
    partial=True,
)
def form(case: Case) -> Problems:
    reporter, native = case.reporter, case.reporter.form is Form.NATIVE
    policy = text(reporter.container, "restartPolicy")
    if native and policy != "Always" and case.job.whole:
        yield (
            reporter.place,
            "The reporter is an init container without restartPolicy: Always: the Pod waits for "
            "its end, and the adapter never starts.",
            "Set restartPolicy: Always on this container.",
        )
    told, real = reporter.value("REPORTER_FORM"), "native" if native else "classic"
    if told in {"native", "classic"} - {real}:
        listed = "initContainers" if native else "containers"
        yield (
            (*reporter.variable("REPORTER_FORM")[0], "value"),
            f"REPORTER_FORM is {told}, but the container is listed under {listed}.",
            f"Set REPORTER_FORM to {real}.",
        )


@_error(
    "classic-not-first",
    "the reporter is not the first container: a hanging image pull blocks it",
    partial=True,
)
def classic_not_first(case: Case) -> Problems:
    reporter, ours = case.reporter, {each.name for each in case.job.reporters}
    others = [
        name
        for each in list(items(case.job.pod, "containers"))[: reporter.index]
        if (name := text(each, "name")) not in ours
    ]
    if reporter.form is Form.CLASSIC and others:
        yield (
            reporter.place,
            f"Containers start before the reporter ({_listed(others)}): an image pull that hangs "
            "blocks it, and that is not reported.",
            "List the reporter first under containers.",
        )


@_warning(
    "native-not-first",
    "the failure of an init container before the reporter is not reported",
    partial=True,
)
def native_not_first(case: Case) -> Problems:
    reporter, pod = case.reporter, case.job.pod
    before = [text(each, "name") for each in items(pod, "initContainers")][: reporter.index]
    if reporter.form is Form.NATIVE and before:
        yield (
            reporter.place,
            f"Init containers start before the reporter ({_listed(before)}): a failure "
            "of one is not reported.",
            "List the reporter first under initContainers.",
        )


@_error(
    "wait-beyond-deadline",
    "`MAX_WAIT_TIME_SECONDS` is not less than `activeDeadlineSeconds` of the Job or Pod",
    partial=True,
)
def wait_beyond_deadline(case: Case) -> Problems:
    wait = _wait(case)
    for owner, place, limit in _deadlines(case):
        if wait is not None and wait >= limit:
            yield (
                place,
                f"The reporter waits {go_duration(wait)}, but the {owner}'s activeDeadlineSeconds "
                f"ends all work after {go_duration(limit)}: that leaves little time to report an "
                "adapter that hangs.",
                _todo(wait, limit),
            )


@_warning(
    "wait-near-deadline",
    "`activeDeadlineSeconds` is less than 10 s longer than `MAX_WAIT_TIME_SECONDS`",
    partial=True,
)
def wait_near_deadline(case: Case) -> Problems:
    wait = _wait(case)
    for owner, place, limit in _deadlines(case):
        if wait is not None and wait < limit < wait + MARGIN:
            yield (
                place,
                f"The {owner}'s activeDeadlineSeconds expires only {limit - wait} s after the wait "
                "time and starts counting earlier: the verdict may come too late.",
                _todo(wait, limit),
            )


@_warning("no-deadline", "neither the Job nor its Pods have `activeDeadlineSeconds`")
def no_deadline(case: Case) -> Problems:
    if not _deadlines(case):
        yield (
            (*case.job.place, "activeDeadlineSeconds"),
            "The Job has no deadline: an adapter that hangs is reported, but the Job never ends.",
            f"Set activeDeadlineSeconds, at least {MARGIN} s longer than MAX_WAIT_TIME_SECONDS.",
        )


@_warning("grace-too-short", "`terminationGracePeriodSeconds` is less than 5", partial=True)
def grace_too_short(case: Case) -> Problems:
    grace = number(case.job.pod, "terminationGracePeriodSeconds")
    if grace is not None and grace < _GRACE:
        yield (
            (*case.job.pod_place, "terminationGracePeriodSeconds"),
            f"The Pod has {grace} s to terminate: when it is deleted, the reporter has too little "
            "time to write the verdict.",
            f"Set terminationGracePeriodSeconds to at least {_GRACE}, or leave it out (30 s).",
        )


@job_rule(
    RULES,
    Severity.WARNING,
    "ttl-too-short",
    "`ttlSecondsAfterFinished` is at most 120: too short for readers and the reaper",
    partial=True,
)
def ttl_too_short(job: Job) -> Problems:
    if job.reporters and all(each.says_no("REPORT_CONDITION") for each in job.reporters):
        return
    ttl = number(job.spec, "ttlSecondsAfterFinished")
    if ttl is not None and ttl <= _REAPED:
        yield (
            (*job.place, "ttlSecondsAfterFinished"),
            f"The Job is deleted {ttl} s after its end: its condition may never be read, and "
            "where the reporter was lost, the reaper comes too late to write it.",
            f"Set ttlSecondsAfterFinished to more than {_REAPED}.",
        )


@_warning(
    "repeated", "`restartPolicy` and `backoffLimit` repeat a failed check; its verdict may change"
)
def repeated(case: Case) -> Problems:
    """A failure that the Job hides for minutes: by restarts, or by more Pods.

    A podFailurePolicy says already which failures count; it needs `restartPolicy: Never`.
    """
    job, restarts = case.job, text(case.job.pod, "restartPolicy") == "OnFailure"
    given = [number(job.spec, key) for key in ("backoffLimit", "backoffLimitPerIndex")]
    limit = min((each for each in given if each is not None), default=_BACKOFF_LIMIT)
    if limit < 1 or (job.spec.get("podFailurePolicy") and not restarts):
        return
    place = (*job.pod_place, "restartPolicy") if restarts else (*job.place, "backoffLimit")
    count = "once" if limit == 1 else f"up to {limit} times, with growing pauses"
    never = "restartPolicy: Never and " if restarts else ""
    yield (
        place,
        f"A check that exits with an error is repeated {count}, and its verdict may change until "
        "then.",
        f"Set {never}backoffLimit: 0, or keep it if repeating is intended (--ignore repeated).",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _complaints(case: Case) -> list[tuple[str, str, bool]]:
    reporter = case.reporter
    hidden = reporter.variables.keys() - reporter.literal.keys()
    found = case.world.judge(reporter.literal)
    if case.job.whole and "envFrom" not in reporter.container:
        return [each for each in found if each[0] not in hidden]
    return [each for each in found if each[0] in reporter.literal]


def _field(case: Case, name: str) -> str:
    return text(section(case.reporter.variable(name)[1], "valueFrom", "fieldRef"), "fieldPath")


def _wait(case: Case) -> int | None:
    """Return the wait time in seconds; None where it is not shown or no number."""
    written = case.reporter.value("MAX_WAIT_TIME_SECONDS") or ""
    return int(written) if written.isascii() and written.isdigit() and len(written) < 12 else None


def _deadlines(case: Case) -> list[tuple[str, Place, int]]:
    job = case.job
    found = (
        ("Job", job.place, number(job.spec, "activeDeadlineSeconds")),
        ("Pod", job.pod_place, number(job.pod, "activeDeadlineSeconds")),
    )
    return [
        (owner, (*place, "activeDeadlineSeconds"), limit)
        for owner, place, limit in found
        if limit is not None
    ]


def _todo(wait: int, limit: int) -> str:
    shorter = f"MAX_WAIT_TIME_SECONDS to at most {limit - MARGIN}, or " if limit > MARGIN else ""
    return f"Set {shorter}the deadline to at least {wait + MARGIN}."
