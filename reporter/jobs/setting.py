"""How the reporter was set up in a Pod's spec, and what of that cannot work."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.common.defaults import REPORTER, RESULTS_PATH, WAIT_SECONDS
from reporter.common.objects import items, number, section, text
from reporter.common.text import go_duration
from reporter.jobs.finding import Finding, Object, problem, warning
from reporter.verdict.condition import DEFAULT_TYPE, is_condition_type
from reporter.verdict.facts import Form
from reporter.verdict.pod import Names, find_adapter, find_form

LABEL: Final = "status-reporter.io/inject"
"""On a Job: the form of reporter that it asks for, or that it wants none."""
_NEEDED: Final = frozenset({"JOB_NAME", "JOB_NAMESPACE", "POD_NAME"})
_TELLING: Final = frozenset(
    {"ADAPTER_CONTAINER_NAME", "CONDITION_TYPE", "REPORTER_CONTAINER_NAME", "REPORTER_FORM"}
)
"""Settings that no adapter needs; a second reporter of a Pod has one of them at least."""
MARGIN: Final = (
    10  # seconds between the wait time's end and a deadline, so that the verdict is written
)
FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
"""How a variable says no."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The reporter's container as far as it matters here; `values` are its literal variables."""

    name: str
    form: Form
    image: str
    values: dict[str, str] = field(default_factory=dict)

    @property
    def wait(self) -> int:
        """MAX_WAIT_TIME_SECONDS."""
        return _seconds(self.values.get("MAX_WAIT_TIME_SECONDS", ""), WAIT_SECONDS)

    @property
    def condition(self) -> str:
        """CONDITION_TYPE, or what the reporter uses instead of one that is refused."""
        given = self.values.get("CONDITION_TYPE", "").strip()
        return given if is_condition_type(given) else DEFAULT_TYPE

    @property
    def writes(self) -> bool:
        """Whether it writes a condition at all: REPORT_CONDITION."""
        return self.values.get("REPORT_CONDITION", "").strip() not in FALSE

    @property
    def names(self) -> Names:
        """How this reporter finds the adapter."""
        return Names(
            self.name,
            self.values.get("ADAPTER_CONTAINER_NAME", "").strip(),
            self.values.get("RESULTS_PATH", "").strip() or RESULTS_PATH,
        )


def find_setup(spec: Object) -> Setup | None:
    """Return how the reporter was set up: the first, if there are several; None without one."""
    return next(iter(find_setups(spec)), None)


def find_setups(spec: Object) -> list[Setup]:
    """Return all reporters."""
    found = []
    for _, _, container in reporters_in(spec):
        values = {text(each, "name"): text(each, "value") for each in items(container, "env")}
        name = text(container, "name")
        form = find_form(spec, name) or Form.CLASSIC
        found.append(Setup(name, form, text(container, "image"), values))
    return found


def reporters_in(spec: Object) -> list[tuple[str, int, Object]]:
    """Return the reporters of a Pod's spec: the list that each is in, its index there, and it.

    Told by the usual name, or by the three variables that every reporter needs. An adapter may
    have these too: they alone count only where no container says that it is a reporter.
    """
    everyone = [
        (kind, at, each)
        for kind in ("initContainers", "containers")
        for at, each in enumerate(_listed(spec, kind))
        if isinstance(each, Mapping)
    ]
    likely = [each for each in everyone if _named(each[2]) or _variables(each[2]) >= _NEEDED]
    return [each for each in likely if says_so(each[2])] or likely


def says_so(container: Object) -> bool:
    """Say whether a container with a reporter's variables says that it is one."""
    return _named(container) or bool(_variables(container) & _TELLING)


def _listed(spec: Object, kind: str) -> Sequence[Any]:
    found = spec.get(kind)
    return found if isinstance(found, list) else ()


def _named(container: Object) -> bool:
    return text(container, "name") == REPORTER


def _variables(container: Object) -> set[str]:
    return {text(each, "name") for each in items(container, "env")}


def judge(job: Object, setup: Setup | None) -> Iterator[Finding]:
    """Yield which settings cannot work, whatever the Pods do."""
    if setup is None:
        yield problem(
            "no-reporter",
            "No status reporter runs in this Job's Pods, so no condition is written.",
            "Add the sidecar to the Pod template (deploy/ has it as a kustomize component), or "
            "check the Job's name.",
        )
        return
    spec = section(job, "spec", "template", "spec")
    yield from _times(job, spec, setup)
    yield from _names(job, spec, setup)
    if (number(section(job, "spec"), "parallelism") or 1) > 1:
        yield warning(
            "parallel",
            "The Job runs several Pods at once: only the verdict of the newest one counts.",
            "Use one Job for each verdict.",
        )


def _times(job: Object, spec: Object, setup: Setup) -> Iterator[Finding]:
    limits = {
        "Job": number(section(job, "spec"), "activeDeadlineSeconds"),
        "Pod": number(spec, "activeDeadlineSeconds"),
    }
    for owner, limit in limits.items():
        if limit is not None and setup.wait + MARGIN > limit:
            shorter = f"MAX_WAIT_TIME_SECONDS to at most {limit - MARGIN}, or "
            yield warning(
                "wait-beyond-deadline",
                f"The reporter may wait {go_duration(setup.wait)}, but the {owner}'s "
                f"activeDeadlineSeconds ends all work after {go_duration(limit)}: that leaves "
                "little time to report an adapter that hangs.",
                f"Set {shorter if limit > MARGIN else ''}the deadline to at least "
                f"{setup.wait + MARGIN}.",
            )
    poll = _seconds(setup.values.get("POLL_INTERVAL_SECONDS", ""), 2)
    if poll >= setup.wait:
        yield warning(
            "settings",
            f"POLL_INTERVAL_SECONDS ({poll}) has to be less than MAX_WAIT_TIME_SECONDS "
            f"({setup.wait}): the reporter uses a shorter one.",
            "Set a shorter interval or a longer wait.",
        )


def _names(job: Object, spec: Object, setup: Setup) -> Iterator[Finding]:
    for variable, owned in (("JOB_NAME", "name"), ("JOB_NAMESPACE", "namespace")):
        told, real = setup.values.get(variable, ""), text(section(job, "metadata"), owned)
        if told and "$(" not in told and told != real:
            yield problem(
                "settings",
                f"The reporter has {variable}={told}, but this Job's {owned} is {real}: it writes "
                "to another Job or to none.",
                f"Set {variable} to {real}, or take it from the Pod's labels and namespace.",
            )
    _, misfit, _ = find_adapter({"metadata": {}, "spec": spec}, setup.names)
    if misfit:
        yield problem(
            "settings",
            f"The reporter finds no adapter: {misfit}.",
            "Set ADAPTER_CONTAINER_NAME to the adapter container.",
        )


def _seconds(value: str, default: int) -> int:
    value = value.strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 12 else default
