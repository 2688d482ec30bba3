"""The container that is added to a Job's Pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from reporter.common.defaults import REPORTER, RESULTS_PATH, WAIT_SECONDS
from reporter.common.objects import Object, items, number, quantity, section, text
from reporter.inject.results_volume import Results
from reporter.jobs.setting import MARGIN
from reporter.launch import added_container
from reporter.launch.added_container import from_field, variables
from reporter.run.names import PLUGIN_LABEL
from reporter.verdict.facts import Form

_PORT: Final = 9464


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of `status-ctl inject`; the form may be another one by a Job's label.

    `adapter` and `aggregator` are names, empty for none. `cpu_limit` is a quantity, empty for none.
    `own_token_only`: the Pod's other containers get no token, unless the Pod says that they do.
    `without_token` are namespaces and names of the accounts whose Pods get none by themselves.
    """

    image: str
    form: Form = Form.NATIVE
    adapter: str = ""
    results_path: str = RESULTS_PATH
    environment: Mapping[str, str] = field(default_factory=dict)
    aggregator: str = ""
    cpu_limit: str = ""
    own_token_only: bool = False
    without_token: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Beside:
    """What the container stands beside: the template, its adapter, and the Job's deadline.

    `plugin` is whose result it is, for an aggregator; `labelled`: a label of the Pod says so.
    `doubt` is a remark on the choice of the adapter.
    """

    form: Form
    template: Object
    adapter: Object
    results: Results
    deadline: int | None
    plugin: str
    labelled: bool
    doubt: str

    @property
    def pod(self) -> Object:
        """The Pod's spec."""
        return section(self.template, "spec")


def container(wishes: Wishes, beside: Beside) -> tuple[dict[str, Any], list[str]]:
    """Return the container, and what a person should know of it."""
    port, remarks = _metrics_port(wishes, beside)
    wait, waiting = _wait(wishes, beside)
    values = {**wait, **({} if port else {"METRICS_PORT": "0"}), **wishes.environment}
    # The usual port is not declared: it can be found by the container's name, and a Job that comes
    # to use the node's network would claim it there.
    declared = port not in {0, _PORT}
    if beside.results.path != RESULTS_PATH:
        values["RESULTS_PATH"] = beside.results.path
    mounts = [dict(beside.results.mount), added_container.token_mount()]
    if wishes.aggregator:
        mounts.append(added_container.certificates_mount())
    made = {
        "name": REPORTER,
        "image": wishes.image,
        # This makes an init container a sidecar.
        **({"restartPolicy": "Always"} if beside.form is Form.NATIVE else {}),
        "env": [
            {"name": "REPORTER_FORM", "value": beside.form.value},
            # Every version sets this label.
            from_field("JOB_NAME", "metadata.labels['job-name']"),
            from_field("JOB_NAMESPACE", "metadata.namespace"),
            from_field("POD_NAME", "metadata.name"),
            {"name": "ADAPTER_CONTAINER_NAME", "value": text(beside.adapter, "name")},
            *variables(values),
            *(_link(wishes.aggregator, beside) if wishes.aggregator else []),
        ],
        **({"ports": [{"name": "metrics", "containerPort": port}]} if declared else {}),
        "resources": _resources(wishes.cpu_limit),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": added_container.security(beside.adapter, beside.pod),
        "volumeMounts": mounts,
    }
    if guaranteed(beside.pod) and not wishes.cpu_limit:
        remarks.append("the Guaranteed Pod becomes Burstable: --cpu-limit 500m keeps its class")
    return made, [*waiting, *remarks]


def guaranteed(pod: Object) -> bool:
    """Return whether a Pod without a reporter has the QoS class Guaranteed."""
    containers = [*items(pod, "initContainers"), *items(pod, "containers")]
    # Resources of the Pod as a whole decide alone, where they are given.
    return bool(containers) and not pod.get("resources") and all(map(limited, containers))


def limited(container: Object) -> bool:
    """Return whether a container's requests are its limits, for CPU and memory."""
    limits = section(container, "resources", "limits")
    requests = section(container, "resources", "requests")
    return all(
        (most := quantity(str(limits.get(name)))) is not None
        and most > 0
        and quantity(str(requests.get(name, limits[name]))) == most
        for name in ("cpu", "memory")
    )


def _resources(cpu_limit: str) -> dict[str, dict[str, str]]:
    """Return requests and limits; with a CPU limit they are equal, as Guaranteed demands."""
    if cpu_limit:
        both = {"cpu": cpu_limit, "memory": "64Mi"}
        return {"requests": both, "limits": dict(both)}
    return {"requests": {"cpu": "50m", "memory": "48Mi"}, "limits": {"memory": "64Mi"}}


def _metrics_port(wishes: Wishes, beside: Beside) -> tuple[int, list[str]]:
    """Return the port of the metrics, 0 for none: on the node's network it is everybody's."""
    asked = wishes.environment.get("METRICS_PORT", "").strip()
    if asked:
        # Judged by the settings' own rules before.
        port = int(asked)
        taken = _taken(beside.pod, port)
        return port, [f"port {port} is also container {taken}'s"] if taken and port else []
    if section(beside.template, "spec").get("hostNetwork") is True:
        return 0, [f"no metrics: the Pod uses the node's network, where port {_PORT} may be taken"]
    if taken := _taken(beside.pod, _PORT):
        return 0, [f"no metrics: port {_PORT} is container {taken}'s"]
    return _PORT, []


def _taken(pod: Object, port: int) -> str:
    """Return the name of the container that has the port; all of a Pod share one network."""
    everyone: Sequence[Object] = (*items(pod, "initContainers"), *items(pod, "containers"))
    for each in everyone:
        if any(number(one, "containerPort") == port for one in items(each, "ports")):
            return text(each, "name")
    return ""


def _wait(wishes: Wishes, beside: Beside) -> tuple[dict[str, str], list[str]]:
    """Wait nearly as long as the Job may take, where it says how long that is."""
    if "MAX_WAIT_TIME_SECONDS" in wishes.environment:
        return {}, []
    if beside.deadline is None:
        return {}, [
            f"waits {WAIT_SECONDS} s for a result: "
            "set --env MAX_WAIT_TIME_SECONDS if it may take longer"
        ]
    # The verdict takes its time too, but a short deadline is mostly the adapter's.
    spare = min(max(MARGIN, min(30, beside.deadline // 10)), beside.deadline // 2)
    return {"MAX_WAIT_TIME_SECONDS": str(beside.deadline - spare)}, []


def _link(aggregator: str, beside: Beside) -> list[dict[str, Any]]:
    plugin = {"name": "RESULT_TYPE", "value": beside.plugin}
    if beside.labelled:
        plugin = from_field("RESULT_TYPE", f"metadata.labels['{PLUGIN_LABEL}']")
    return [
        {"name": "AGGREGATOR_URL", "value": f"https://{aggregator}:8080"},
        plugin,
        *variables(added_container.certificate_files()),
    ]
