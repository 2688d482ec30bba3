"""How the reporter was set up in a Pod's spec."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from reporter.common.defaults import REPORTER, RESULTS_PATH, WAIT_SECONDS
from reporter.common.objects import Object, items, section, text
from reporter.verdict.condition import DEFAULT_TYPE, is_condition_type
from reporter.verdict.facts import Form
from reporter.verdict.pod import Names, find_form

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


@dataclass(frozen=True)
class Setup:
    """A reporter's container; only the literal values of its variables are known."""

    container: Object
    form: Form

    @property
    def name(self) -> str:
        """The container's."""
        return text(self.container, "name")

    @cached_property
    def values(self) -> dict[str, str]:
        """Its variables; those that come from elsewhere are empty."""
        return {text(each, "name"): text(each, "value") for each in items(self.container, "env")}

    @property
    def wait(self) -> int:
        """MAX_WAIT_TIME_SECONDS."""
        return self._seconds("MAX_WAIT_TIME_SECONDS", WAIT_SECONDS)

    @property
    def poll(self) -> int:
        """POLL_INTERVAL_SECONDS."""
        return self._seconds("POLL_INTERVAL_SECONDS", 2)

    @property
    def condition(self) -> str:
        """CONDITION_TYPE, or what the reporter uses instead of one that is refused."""
        given = self._value("CONDITION_TYPE")
        return given if is_condition_type(given) else DEFAULT_TYPE

    @property
    def writes(self) -> bool:
        """Whether it writes a condition at all: REPORT_CONDITION."""
        return self._value("REPORT_CONDITION") not in FALSE

    @property
    def names(self) -> Names:
        """How this reporter finds the adapter."""
        adapter = self._value("ADAPTER_CONTAINER_NAME")
        return Names(self.name, adapter, self._value("RESULTS_PATH") or RESULTS_PATH)

    def elsewhere(self, job: Object) -> Iterator[tuple[str, str, str, str]]:
        """Yield what makes it write to another Job: variable, its value, whose, the right value."""
        for variable, whose in (("JOB_NAME", "name"), ("JOB_NAMESPACE", "namespace")):
            told, right = self._value(variable), text(section(job, "metadata"), whose)
            if told and "$(" not in told and told != right:
                yield variable, told, whose, right

    def _value(self, variable: str) -> str:
        return self.values.get(variable, "").strip()

    def _seconds(self, variable: str, default: int) -> int:
        value = self._value(variable)
        return int(value) if value.isascii() and value.isdigit() and len(value) < 12 else default


def find_setups(spec: Object) -> list[Setup]:
    """Return all reporters of a Pod's spec."""
    return [
        Setup(container, find_form(spec, text(container, "name")) or Form.CLASSIC)
        for _, _, container in reporters_in(spec)
    ]


def find_setup(spec: Object) -> Setup | None:
    """Return the first reporter of a Pod's spec."""
    return next(iter(find_setups(spec)), None)


def reporters_in(spec: Object) -> list[tuple[str, int, Object]]:
    """Return the reporters of a Pod's spec: the list that each is in, its index there, and it.

    Told by the usual name, or by the three variables that every reporter needs. An adapter may
    have these too: they alone count only where no container says that it is a reporter.
    """
    listed = {kind: spec.get(kind) for kind in ("initContainers", "containers")}
    likely = [
        (kind, at, each)
        for kind, found in listed.items()
        for at, each in enumerate(found if isinstance(found, list) else ())
        if isinstance(each, Mapping) and (_named(each) or _variables(each) >= _NEEDED)
    ]
    return [each for each in likely if says_so(each[2])] or likely


def says_so(container: Object) -> bool:
    """Say whether a container with a reporter's variables says that it is one."""
    return _named(container) or bool(_variables(container) & _TELLING)


def _named(container: Object) -> bool:
    return text(container, "name") == REPORTER


def _variables(container: Object) -> set[str]:
    return {text(each, "name") for each in items(container, "env")}
