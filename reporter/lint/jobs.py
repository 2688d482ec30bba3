"""Jobs in manifests: which have a reporter or ask for one, and how it was set up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reporter.common.defaults import REPORTER, RESULTS_PATH, WAIT_SECONDS
from reporter.common.objects import Object, Place, section, text
from reporter.inject.hooks import Hook
from reporter.inject.jobs import FoundJob, get, jobs, name_of
from reporter.inject.transform import DISABLED, account_of
from reporter.jobs.setting import FALSE, LABEL, reporters_in
from reporter.verdict.facts import Form
from reporter.verdict.pod import Names

_FORMS: Final = {"initContainers": Form.NATIVE, "containers": Form.CLASSIC}
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
    """The container of a reporter, its place in the document, and its index in its list."""

    container: Object
    place: Place
    form: Form
    index: int

    @property
    def name(self) -> str:
        """The container's name."""
        return text(self.container, "name")

    @property
    def variables(self) -> dict[str, tuple[Place, Object]]:
        """The entries of `env` by name, each with its place; of one name the last counts."""
        entries = self.container.get("env")
        return {
            text(entry, "name"): ((*self.place, "env", at), entry)
            for at, entry in enumerate(entries if isinstance(entries, list) else ())
            if isinstance(entry, Mapping)
        }

    @property
    def literal(self) -> dict[str, str]:
        """The variables whose values stand in the manifest."""
        return {
            name: value
            for name, (_, entry) in self.variables.items()
            if isinstance(value := entry.get("value", ""), str)
            and "valueFrom" not in entry
            and "$(" not in value
        }

    def variable(self, name: str) -> tuple[Place, Object]:
        """Return the entry of a variable and its place; the container's and {} without one."""
        return self.variables.get(name, (self.place, {}))

    def value(self, name: str) -> str | None:
        """Return a variable's value or its default; None where the manifest does not show it."""
        if not self.variable(name)[1]:
            return None if self.container.get("envFrom") else _DEFAULTS[name]
        found = self.literal.get(name)
        return None if found is None else found.strip() or _DEFAULTS[name]

    def says_no(self, name: str) -> bool:
        """Return whether a variable is false for certain."""
        return self.literal.get(name, "").strip() in FALSE

    @property
    def names(self) -> Names | None:
        """How it finds the adapter; None where the manifest does not show it."""
        adapter = self.value("ADAPTER_CONTAINER_NAME")
        path = self.value("RESULTS_PATH")
        return None if adapter is None or path is None else Names(self.name, adapter, path)


@dataclass(frozen=True, slots=True)
class Job:
    """A Job, or what a CronJob or a part of a JobSet makes. Places are those in the document.

    `title` is as people write it: `Job checks/nightly`, `JobSet checks/nightly (workers)`. `name`
    is the Job's own, empty where only the cluster knows it; `namespace` is empty where nobody says
    it. `asked` is the place of the label that asks for a reporter; empty without one. `hook` says
    when Helm creates it.
    """

    title: str
    name: str
    namespace: str
    place: Place
    spec: Object
    reporters: tuple[Reporter, ...]
    asked: Place
    hook: Hook

    @property
    def pod_place(self) -> Place:
        """The place of the Pod's spec; `place` is that of the Job's."""
        return (*self.place, "template", "spec")

    @property
    def template(self) -> Object:
        """The template of the Job's Pods."""
        return section(self.spec, "template")

    @property
    def pod(self) -> Object:
        """The Pod's spec."""
        return section(self.template, "spec")

    @property
    def whole(self) -> bool:
        """Whether it is more than a patch: a Job must set a restart policy."""
        return text(self.pod, "restartPolicy") != ""

    @property
    def account(self) -> str:
        """The name of the Pod's service account."""
        return account_of(self.pod)


def read_jobs(value: Object, place: Place, elsewhere: str = "") -> Iterator[Job]:
    """Yield the Jobs of an object, or what it makes, that have a reporter or ask for one.

    `elsewhere` is the namespace of a manifest that names none.
    """
    kind = text(value, "kind")
    for found in jobs(value):
        spec, spec_place = section(get(value, (*found.job, "spec"))), (*place, *found.job, "spec")
        reporters = tuple(
            Reporter(container, (*spec_place, "template", "spec", listed, at), _FORMS[listed], at)
            for listed, at, container in reporters_in(section(spec, "template", "spec"))
        )
        asked = _asked(value, found)
        if not reporters and not asked:
            continue
        part = section(get(value, found.job[:-1])) if kind == "JobSet" else {}
        part_name, namespace = text(part, "name"), found.namespace or elsewhere
        where, which = namespace and f"{namespace}/", part_name and f" ({part_name})"
        once = found.name and part.get("replicas") in (None, 1)
        names = {"Job": found.name, "JobSet": f"{found.name}-{part_name}-0" if once else ""}
        yield Job(
            title=f"{kind} {where}{name_of(value)}{which}",
            name=names.get(kind, ""),
            namespace=namespace,
            place=spec_place,
            spec=spec,
            reporters=reporters,
            asked=(*place, *asked) if asked else (),
            hook=found.hook,
        )


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
