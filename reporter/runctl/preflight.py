"""What speaks against a run, asked of the API server before it exists.

Of a namespace that is made for the run only what is outside of it can be asked before it is there:
it is created first, and removed again if anything speaks against the run.

Every object, and of each plugin a Pod and what will make it, is created as a dry run: that names
missing rights (also those that cannot be granted on), admission policies, quotas, Pod Security and
accounts that do not exist. All answers together are the answer.
"""

from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reporter.cli.cluster import TIMEOUT, words
from reporter.common.objects import Object, View, items, section, text
from reporter.errors import AlreadyExists, Forbidden, KubeError, NotFound
from reporter.launch.job import job
from reporter.run.launch_file import RunLocation
from reporter.run.names import RUN_LABEL
from reporter.runctl.cluster_run import is_gone
from reporter.runctl.objects import own_namespace, without_namespace
from reporter.runctl.spec import OWN_NAMESPACE, RunSpec, display_name, namespace_of

if TYPE_CHECKING:
    from reporter.kube.api import KubeApi

AT_ONCE: Final = 8
INSTEAD: Final = "; -n uses a namespace that exists"
ACCOUNT: Final = "default"
"""The account that every namespace has."""
_NODES: Final = 20
_STRANGERS: Final = "app.kubernetes.io/part-of!=status-reporter"
_NO_NAMESPACE: Final = 'namespaces "{}" not found'
_SHARED: Final = (
    "namespace {} is shared: anyone who controls the run's aggregator can read every Secret in it; "
    "without -n a run gets its own namespace"
)


@dataclass(slots=True)
class Checked:
    """What was found; `conditions` says whether the verdicts may be written on the Jobs."""

    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    conditions: bool = True


def check(
    api: "KubeApi", spec: RunSpec, *, in_namespace: bool = True, nothing_there: bool = False
) -> Checked:
    """Ask all of it at once. Of nodes that were given by name, only the first are looked up.

    Unless `in_namespace`, the namespace is still to be made, and what is in it cannot be asked; it
    may be known that there is `nothing_there`.
    """
    namespace, given = spec.namespace, spec.launch.pull_secrets
    wanted = without_namespace(spec)
    pods = list(_pods(spec, wanted))
    if not in_namespace:
        wanted = [each for each in wanted if namespace_of(each, namespace) != namespace]
        pods = []
        given = given if nothing_there else ()
    found, ask = Checked(), _Questions(api, namespace)
    with ThreadPoolExecutor(AT_ONCE, "check") as pool:
        answers = [
            *(pool.submit(ask.whether_made, each) for each in wanted),
            *(pool.submit(ask.whether_pod, *each) for each in pods),
            *(pool.submit(ask.pull_secret, "--image-pull-secret", name) for name in given),
            *(pool.submit(ask.node, name) for name in spec.named_nodes[:_NODES]),
        ]
        # The kubelet tries without them, and a controller may yet copy them into the namespace.
        doubts = [pool.submit(ask.pull_secret, *each) for each in _pull_secrets(pods, given)]
        if in_namespace and not spec.create_namespace:
            doubts.append(pool.submit(ask.strangers))
        for answer in answers:
            said = answer.result()
            if _NO_NAMESPACE.format(namespace) in said:
                # Each answer says it, and one is enough.
                said = f"there is no namespace {namespace}; --create-namespace creates it"
            if said and said not in found.problems:
                found.problems.append(said)
    found.conditions = ask.conditions
    found.remarks += [remark for doubt in doubts if (remark := doubt.result())]
    return found


def check_unstarted(api: "KubeApi", spec: RunSpec) -> list[str]:
    """Say what speaks against a run that is not started anyway; create nothing.

    So of a namespace that it would make, it is not known what is refused in it.
    """
    if not spec.create_namespace:
        return check(api, spec).problems
    trouble, free = _check_namespace(api, own_namespace(spec))
    found = check(api, spec, in_namespace=False, nothing_there=free)
    return [*filter(None, [trouble]), *found.problems]


def _check_namespace(api: "KubeApi", wanted: Object) -> tuple[str, bool]:
    """Say what speaks against a new namespace, and whether it could be made now.

    One of that name that is being deleted is waited for, so nothing speaks against it.
    """
    try:
        api.create("Namespace", None, wanted, dry_run=True, timeout=TIMEOUT)
    except KubeError as error:
        why = words(error)
        if isinstance(error, AlreadyExists):
            why += f"; {advice(wanted)}"
            with suppress(KubeError):
                there = api.get("Namespace", None, View(wanted).name, timeout=TIMEOUT)
                if View(there).deleting:
                    return "", False
        elif isinstance(error, Forbidden):
            why += INSTEAD
        return f"{display_name(wanted)}: {why}", False
    return "", True


def advice(wanted: Object) -> str:
    """Say what to do where an object of that name exists."""
    metadata = section(wanted, "metadata")
    own = OWN_NAMESPACE.format(run=section(metadata, "labels").get(RUN_LABEL))
    if text(wanted, "kind") == "Namespace" and text(metadata, "name") != own:
        return "leave out --create-namespace to use it"
    return "choose another --name, or delete the run that uses it"


def _pods(spec: RunSpec, made: Sequence[Object]) -> Iterator[tuple[str, Object, Object | None]]:
    """Yield whose they are, as `plugin cis`, a Pod of the aggregator and of each plugin, and what
    will make it, where that is no object of its own."""
    own = {View(each).name for each in made if text(each, "kind") == "ServiceAccount"}
    for each in made:
        if text(each, "kind") == "Job":
            yield "the aggregator", _pod_of(each, own), None
    where = RunLocation(spec.run, spec.namespace, None, f"https://{spec.worker_address}")
    for at, plugin in enumerate(spec.plan.plugins):
        timeout = spec.plan.timeout_of(plugin.name)
        one = job(where, spec.launch, plugin, plugin.keys[0], index=at, timeout=timeout)
        yield f"plugin {plugin.name}", _pod_of(one, own), one


def _pod_of(maker: Object, own: Container[str]) -> Object:
    """Return a Pod of its template; accounts that are the run's `own` do not exist yet."""
    template = section(maker, "spec", "template")
    spec = dict(section(template, "spec"))
    if text(spec, "serviceAccountName") in own:
        spec["serviceAccountName"] = ACCOUNT  # what is refused for an account is refused for any
    metadata = {**section(template, "metadata"), "name": "status-reporter-check"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _pull_secrets(
    pods: Sequence[tuple[str, Object, Object | None]], given: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield whose they are, and their names: what Pods have beside those of the option."""
    for whose, pod, _ in pods:
        for each in items(section(pod, "spec"), "imagePullSecrets"):
            if (name := text(each, "name")) and name not in given:
                yield f"{whose}: imagePullSecrets", name


class _Questions:
    """What is asked of the API server. Each answer is a line, empty where nothing is wrong."""

    def __init__(self, api: "KubeApi", namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self.conditions = True

    def whether_made(self, wanted: Object) -> str:
        kind, where = text(wanted, "kind"), namespace_of(wanted, self._namespace)
        error = self._refusal(wanted, where)
        if error is None:
            return ""
        why = words(error)
        if isinstance(error, NotFound):
            if where and where != self._namespace and _NO_NAMESPACE.format(where) in why:
                return f"there is no namespace {where}"
            # A user without permission to bind every Role is asked about a Role that is not there
            # yet; the server calls it a RoleBinding of that name.
            role = text(section(wanted, "roleRef"), "name")
            if kind in {"RoleBinding", "ClusterRoleBinding"} and f'"{role}"' in why:
                return ""
        elif isinstance(error, AlreadyExists):
            why += f"; {advice(wanted)}"
        elif isinstance(error, Forbidden) and kind == "Role" and self._only_conditions(wanted):
            self.conditions = False
            return ""
        return f"{display_name(wanted, self._namespace)}: {why}"

    def whether_pod(self, whose: str, pod: Object, maker: Object | None) -> str:
        # A mistake in the Pod would be reported for its maker again.
        for each in filter(None, (pod, maker)):
            if error := self._refusal(each, self._namespace):
                return f"{whose}: its {text(each, 'kind')} would be refused: {words(error)}"
        return ""

    def pull_secret(self, whose: str, name: str) -> str:
        said = f"{whose} {name}: there is no such Secret in namespace {self._namespace}"
        return said if is_gone(self._api, "Secret", self._namespace, name) else ""

    def node(self, name: str) -> str:
        gone = is_gone(self._api, "Node", None, name)
        return f"--node {name}: there is no such node" if gone else ""

    def strangers(self) -> str:
        for kind in ("Pod", "Secret"):
            with suppress(KubeError):
                if self._api.list_page(
                    kind, self._namespace, _STRANGERS, limit=1, timeout=TIMEOUT
                ).items:
                    return _SHARED.format(self._namespace)
        return ""

    def _only_conditions(self, role: Object) -> bool:
        """Return whether only the right to write the status of Jobs cannot be granted on."""
        rules = list(items(role, "rules"))
        reading = [
            {**each, "verbs": ["get"]} if each.get("resources") == ["jobs/status"] else each
            for each in rules
        ]
        return reading != rules and not self._refusal({**role, "rules": reading}, self._namespace)

    def _refusal(self, wanted: Object, namespace: str | None) -> KubeError | None:
        kind = text(wanted, "kind")
        try:
            self._api.create(kind, namespace, wanted, dry_run=True, timeout=TIMEOUT)
        except KubeError as error:
            return error
        return None
