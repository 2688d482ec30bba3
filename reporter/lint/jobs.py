"""Jobs in manifests: which have a reporter or ask for one, and how it was set up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reporter.common.defaults import REPORTER, RESULTS_PATH, WAIT_SECONDS
from reporter.common.objects import Object, section, text
from reporter.inject.edits import get
from reporter.inject.jobs import FoundJob, jobs
from reporter.inject.options import DISABLED
from reporter.inject.transform import account_of
from reporter.jobs.setting import FALSE, LABEL, reporters_in
from reporter.verdict.facts import Form
from reporter.verdict.pod import Names

Place = tuple[str | int, ...]
"""Where a value stands in its document: member names and list positions."""

READ: Final = frozenset(
    {"Job", "CronJob", "JobSet", "ServiceAccount"}
    | {"Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}
)
"""The kinds of objects that rules look at."""
_DEFAULTS: Final = {
    "MAX_WAIT_TIME_SECONDS": str(WAIT_SECONDS),
    "CONDITION_TYPE": "Available",
    "RESULTS_PATH": RESULTS_PATH,
    "REPORTER_CONTAINER_NAME": REPORTER,
    "REPORTER_FORM": "auto",
    "ADAPTER_CONTAINER_NAME": "",
}


@dataclass(frozen=True, slots=True)
class Reporter:
    """The container of a reporter."""

    container: Object
    place: Place
    form: Form
    index: int

    @property
    def name(self) -> str:
        """The container's name."""
        return text(self.container, "name")

    @property
    def literal(self) -> dict[str, str]:
        """The variables whose values stand in the manifest."""
        return {
            text(entry, "name"): value
            for _, entry in self.variables
            if isinstance(value := entry.get("value", ""), str)
            and "valueFrom" not in entry
            and "$(" not in value
        }

    @property
    def variables(self) -> list[tuple[Place, Object]]:
        """All entries of `env`, each with its place; of one name the last counts."""
        entries = self.container.get("env")
        found = {
            text(entry, "name"): ((*self.place, "env", at), entry)
            for at, entry in enumerate(entries if isinstance(entries, list) else ())
            if isinstance(entry, Mapping)
        }
        return list(found.values())

    def variable(self, name: str) -> tuple[Place, Object]:
        """Return the entry of a variable and its place; the container's and {} without one."""
        found = [each for each in self.variables if text(each[1], "name") == name]
        return found[0] if found else (self.place, {})

    def value(self, name: str) -> str | None:
        """Return a variable's value or its default; None where the manifest does not show it."""
        entry = self.variable(name)[1]
        if not entry:
            return None if self.container.get("envFrom") else _DEFAULTS[name]
        found = self.literal.get(name)
        return None if found is None else found.strip() or _DEFAULTS[name]

    def says_no(self, name: str) -> bool:
        """Return whether a variable is false for certain."""
        return self.literal.get(name, "").strip() in FALSE


@dataclass(frozen=True, slots=True)
class Job:
    """A Job, or what a CronJob or a part of a JobSet makes. Places are those in the document.

    `name` is the Job's own, empty where only the cluster knows it; `part` is that of a JobSet.
    `elsewhere` is the namespace of a manifest that names none. `asked` is the place of the label
    that asks for a reporter; empty without one.
    """

    kind: str
    name: str
    part: str
    metadata: Object
    elsewhere: str
    place: Place
    spec_place: Place
    spec: Object
    reporters: tuple[Reporter, ...]
    asked: Place

    @property
    def title(self) -> str:
        """As people write it: `Job checks/nightly`, `JobSet checks/nightly (workers)`."""
        name = text(self.metadata, "name") or text(self.metadata, "generateName") + "*"
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {where}{name}{self.part and f' ({self.part})'}"

    @property
    def namespace(self) -> str:
        """Where it is; empty where nobody says."""
        return text(self.metadata, "namespace") or self.elsewhere

    @property
    def pod_place(self) -> Place:
        """The place of the Pod's spec."""
        return (*self.spec_place, "template", "spec")

    @property
    def pod(self) -> Object:
        """The Pod's spec."""
        return section(self.spec, "template", "spec")

    @property
    def labels(self) -> Object:
        """The Pod's labels, as far as the template has them."""
        return section(self.spec, "template", "metadata", "labels")

    @property
    def whole(self) -> bool:
        """Whether it is more than a patch: a Job must set a restart policy."""
        return text(self.pod, "restartPolicy") != ""

    @property
    def account(self) -> str:
        """The name of the Pod's service account."""
        return account_of(self.pod)

    def names(self, reporter: Reporter) -> Names | None:
        """Return how a reporter finds the adapter; None where the manifest does not show it."""
        adapter = reporter.value("ADAPTER_CONTAINER_NAME")
        path = reporter.value("RESULTS_PATH")
        if adapter is None or path is None:
            return None
        return Names(reporter.name, adapter, path)

    def as_pod(self) -> Object:
        """Return the template as a Pod."""
        return section(self.spec, "template")


def read_jobs(value: Object, place: Place, elsewhere: str = "") -> Iterator[Job]:
    """Yield the Jobs of an object, or what it makes, that have a reporter or ask for one."""
    kind, metadata = text(value, "kind"), section(value, "metadata")
    forms = {"initContainers": Form.NATIVE, "containers": Form.CLASSIC}
    for each in jobs(value):
        spec, spec_place = section(get(value, (*each.job, "spec"))), (*place, *each.job, "spec")
        part = section(get(value, each.job[:-1])) if kind == "JobSet" else {}
        reporters = tuple(
            Reporter(container, (*spec_place, "template", "spec", listed, at), forms[listed], at)
            for listed, at, container in reporters_in(section(spec, "template", "spec"))
        )
        name = {"Job": each.name, "JobSet": _name(each.name, part)}.get(kind, "")
        asked = _asked(value, each)
        if reporters or asked:
            yield Job(
                kind,
                name,
                text(part, "name"),
                metadata,
                elsewhere,
                place,
                spec_place,
                spec,
                reporters,
                (*place, *asked) if asked else (),
            )


def _name(whole: str, part: Object) -> str:
    """Return the name of the Job of a JobSet's part, if it is one."""
    one = whole and part.get("replicas") in (None, 1)
    return f"{whole}-{text(part, 'name')}-0" if one else ""


def _asked(value: Object, found: FoundJob) -> Place:
    """Return where a label asks for a reporter: the template's counts before the object's.

    On the Pod template it has no effect, and somebody believes that it has.
    """
    for at in (found.job, found.at):
        labels = section(get(value, at), "metadata", "labels")
        if LABEL in labels:
            disabled = text(labels, LABEL) == DISABLED
            return () if disabled else (*at, "metadata", "labels", LABEL)
    pod = (*found.job, "spec", "template")
    labels = section(get(value, pod), "metadata", "labels")
    return (*pod, "metadata", "labels", LABEL) if LABEL in labels else ()
