"""Rules about settings and names: what the reporter is told, and what is so."""

from collections.abc import Iterator
from typing import Final

from reporter.common.objects import section, text
from reporter.lint.case import Case, Hit, shown
from reporter.verdict.pod import find_adapter

_JOB_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")


def settings(case: Case) -> Iterator[Hit]:
    """What the reporter refuses to start with."""
    for place, entry in case.reporter.variables:
        name = text(entry, "name")
        if not isinstance(entry.get("value", ""), str):
            yield Hit(
                (*place, "value"),
                f"The value of {name} is not text: the API server rejects the Job.",
                "Put the value in quotes.",
            )
    for name, problem, refused in _complaints(case):
        if refused:
            yield Hit(
                case.reporter.variable(name)[0],
                f"The reporter does not start: {problem}.",
                f"Set {name} as docs/settings.md says.",
            )


def settings_ignored(case: Case) -> Iterator[Hit]:
    """What the reporter does not use."""
    for name, problem, refused in _complaints(case):
        if not refused:
            yield Hit(
                case.reporter.variable(name)[0],
                f"The reporter ignores the value: {problem}.",
                f"Set {name} as docs/settings.md says, or remove it.",
            )


def _complaints(case: Case) -> list[tuple[str, str, bool]]:
    reporter = case.reporter
    entries = {text(entry, "name") for _, entry in reporter.variables}
    hidden = entries - reporter.literal.keys()
    found = case.world.judge(reporter.literal)
    if case.job.whole and "envFrom" not in reporter.container:
        return [each for each in found if each[0] not in hidden]
    return [each for each in found if each[0] in reporter.literal]


def job_name(case: Case) -> Iterator[Hit]:
    """Where the reporter looks for its Job and its Pod."""
    job, reporter = case.job, case.reporter
    literal = reporter.literal
    place = reporter.variable("JOB_NAME")[0]
    path = _field(case, "JOB_NAME")
    if (told := literal.get("JOB_NAME", "")) and told != job.name:
        real = f"this Job is named {job.name!r}" if job.name else "the Job gets a generated name"
        yield Hit(
            (*place, "value"),
            f"JOB_NAME is {told!r}, but {real}: the verdict goes to another Job or to none.",
            "Take it from the Pod: fieldRef: metadata.labels['job-name'].",
        )
    elif path and path not in {f"metadata.labels['{label}']" for label in _JOB_LABELS}:
        label = path.removeprefix("metadata.labels['").removesuffix("']")
        if not job.name or text(job.labels, label) != job.name:
            yield Hit(
                (*place, "valueFrom", "fieldRef", "fieldPath"),
                f"JOB_NAME is taken from {path}, which does not hold the Job's name.",
                "Take it from metadata.labels['job-name'].",
            )
    told, real = literal.get("JOB_NAMESPACE", ""), job.namespace
    if told and real and told != real:
        yield Hit(
            (*reporter.variable("JOB_NAMESPACE")[0], "value"),
            f"JOB_NAMESPACE is {told!r}, but the Job is in namespace {real!r}.",
            "Take it from the Pod: fieldRef: metadata.namespace.",
        )
    if literal.get("POD_NAME", ""):
        yield Hit(
            (*reporter.variable("POD_NAME")[0], "value"),
            "POD_NAME is a fixed text, but the Pods of a Job get generated names.",
            "Take it from the Pod: fieldRef: metadata.name.",
        )
    for name, wanted in (("JOB_NAMESPACE", "metadata.namespace"), ("POD_NAME", "metadata.name")):
        if _field(case, name) not in {"", wanted}:
            yield Hit(
                (*reporter.variable(name)[0], "valueFrom", "fieldRef", "fieldPath"),
                f"{name} is taken from {_field(case, name)}.",
                f"Take it from {wanted}.",
            )


def _field(case: Case, name: str) -> str:
    return text(section(case.reporter.variable(name)[1], "valueFrom", "fieldRef"), "fieldPath")


def reporter_name(case: Case) -> Iterator[Hit]:
    """How the reporter knows itself."""
    reporter = case.reporter
    told = reporter.value("REPORTER_CONTAINER_NAME")
    if told not in {None, reporter.name}:
        yield Hit(
            reporter.variable("REPORTER_CONTAINER_NAME")[0],
            f"The reporter's container is named {reporter.name!r}, but REPORTER_CONTAINER_NAME is "
            f"{told!r}: the reporter may take itself for the adapter.",
            f"Set REPORTER_CONTAINER_NAME to {reporter.name!r}, or name the container {told!r}.",
        )


def adapter_not_found(case: Case) -> Iterator[Hit]:
    """Whom the reporter watches."""
    names = case.job.names(case.reporter)
    misfit = names and find_adapter(case.job.as_pod(), names)[1]
    if misfit:
        yield Hit(
            case.reporter.variable("ADAPTER_CONTAINER_NAME")[0],
            f"The reporter finds no adapter: {misfit}.",
            "Set ADAPTER_CONTAINER_NAME to the adapter container.",
        )


def adapter_guessed(case: Case) -> Iterator[Hit]:
    """Whom the reporter watches where several could be meant."""
    names = case.job.names(case.reporter)
    for remark in find_adapter(case.job.as_pod(), names)[2] if names else ():
        yield Hit(
            case.reporter.place,
            f"It is not clear which container is the adapter ({remark}).",
            "Set ADAPTER_CONTAINER_NAME.",
        )


def same_condition(case: Case) -> Iterator[Hit]:
    """Two reporters that write the same condition."""
    own = case.reporter.value("CONDITION_TYPE")
    others = [
        each.name
        for each in case.job.reporters
        if each.place != case.reporter.place
        and own is not None
        and (each.value("CONDITION_TYPE") or "").replace("/", ".") == own.replace("/", ".")
    ]
    if others:
        yield Hit(
            case.reporter.variable("CONDITION_TYPE")[0],
            f"The reporters {shown(sorted({case.reporter.name, *others}))} write one condition "
            f"({own}): the verdict of one replaces that of the other.",
            "Give each reporter its own CONDITION_TYPE.",
        )
