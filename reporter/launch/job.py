"""The Job of an entry, and the Secret with the certificate by which its Pod reports.

The Pod is the definition's own with what `_Template` adds and sets: labels, annotations, images,
pull secrets, the account, affinity, tolerations, dnsPolicy, a container, volumes, variables,
restartPolicy, the grace period.
"""

import base64
import posixpath
from copy import deepcopy
from typing import Any, Final

from reporter.common.manifest import filled
from reporter.common.objects import Object, items, number, section, text
from reporter.launch import added_container
from reporter.launch.added_container import CONFIG, variables
from reporter.run import names
from reporter.run.definition import PROGRESS_PORT, Definition, full_image
from reporter.run.identity import ANY_NODE
from reporter.run.launch_file import Launch, RunLocation
from reporter.run.nodes import affinity
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.verdict.pod import DEFAULT_CONTAINER, Names, find_adapter

UPLOADS: Final = 3_600  # seconds for uploads after the plugin's time: none is cut off
KEPT: Final = 86_400  # seconds that a Job stays whose launcher never came back
CONFIG_AT: Final = "/tmp/sonobuoy/config"  # noqa: S108 - the path of Sonobuoy's plugins
USUAL_PORT: Final = 8099  # for progress, as Sonobuoy's
GRACE: Final = 60  # seconds that our containers have for an upload after SIGTERM
DEFAULT_GRACE: Final = 30  # what Kubernetes gives to Pods that name none
RESULT_FILE: Final = "adapter-result.json"

_RESULTS = "results"
_RESULTS_AT = {"result-file": "/results", "done-file": "/tmp/sonobuoy/results"}  # noqa: S108
# Where the Pod really is: a wrong one would be refused.
_NODE_NAME: Final = added_container.from_field("NODE_NAME", "spec.nodeName")


def certificate_holder(plugin: Plugin, key: Key) -> Key:
    """Return for whom the certificate of an entry's Pod speaks: all nodes of a plugin may share it.

    The entry name of that is the name of its Secret.
    """
    shared = plugin.nodes and plugin.identity == "plugin"
    return Key(plugin.name, ANY_NODE) if shared else key


def secret_name(run: str, plugin: Plugin, key: Key) -> str:
    """Return the name of the Secret that an entry's Pod mounts."""
    return names.entry_name(run, certificate_holder(plugin, key))


def secret_names(plan: Plan) -> set[str]:
    """Return the names of all Secrets that are made for a run."""
    return {secret_name(plan.run, plugin, key) for plugin in plan.plugins for key in plugin.keys}


def plugin_container(definition: Definition) -> str:
    """Return the name of the plugin's container: the adapter's rules, for every contract."""
    spec = section(definition.template, "spec")
    at = _RESULTS_AT.get(definition.contract, "")
    found, _, _ = find_adapter(definition.template, Names(results_path=f"{at}/any"))
    return found or text(next(items(spec, "containers")), "name")


def job(
    location: RunLocation, launch: Launch, plugin: Plugin, key: Key, *, index: int, timeout: int
) -> dict[str, Any]:
    """Return an entry's Job.

    `index` is the plugin's place in the plan, `timeout` the seconds from the start of its container
    to its result. One Pod, never a second: a plugin's first result counts, and what became of its
    Pod is told.
    """
    definition = launch.definition(plugin.name)
    name = names.entry_name(location.run, key)
    template = _Template(location, launch, definition, key, index)
    template.add_to_pod()
    template.add_to_containers()
    template.add_contract(name, secret_name(location.run, plugin, key), timeout)
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": definition.start_timeout_seconds + timeout + UPLOADS,
        "template": template.document(),
    }
    if definition.cleanup != "never":
        spec["ttlSecondsAfterFinished"] = KEPT
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(location, name, key),
        "spec": spec,
    }


def secret(
    location: RunLocation, name: str, key: Key, *, ca: bytes, certificate: bytes, private_key: bytes
) -> dict[str, Any]:
    """Return a Secret with a client's certificate, all three as PEM."""
    files = {"ca.crt": ca, "tls.crt": certificate, "tls.key": private_key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(location, name, key),
        "type": "kubernetes.io/tls",
        "data": {file: base64.b64encode(pem).decode("ascii") for file, pem in files.items()},
    }


def _metadata(location: RunLocation, name: str, key: Key) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": location.namespace,
        "labels": {**names.labels(location.run), names.PLUGIN_LABEL: key.plugin},
        "annotations": names.annotations(key),
    }
    if location.owner is not None:
        metadata["ownerReferences"] = [dict(location.owner)]
    return metadata


def own_grace(definition: Definition) -> int:
    """Return the seconds that a plugin's own containers have after SIGTERM."""
    said = number(section(definition.template, "spec"), "terminationGracePeriodSeconds")
    return DEFAULT_GRACE if said is None else max(said, 1)


def pod_grace(definition: Definition) -> int:
    """Return the seconds that a plugin's Pod has after SIGTERM."""
    own = own_grace(definition)
    return own if definition.contract == "link" else max(GRACE, own)


class _Template:
    """A definition's Pod template, to which what is ours is added."""

    def __init__(
        self, location: RunLocation, launch: Launch, definition: Definition, key: Key, index: int
    ) -> None:
        self.location, self.launch, self.definition, self.key = location, launch, definition, key
        self.spec: dict[str, Any] = deepcopy(dict(section(definition.template, "spec")))
        self.host_network = self.spec.get("hostNetwork") is True
        self.node = [_NODE_NAME] if key.node != GLOBAL else []
        self.own_grace = own_grace(definition)
        self.grace = pod_grace(definition)
        for kind in ("initContainers", "containers"):
            for container in items(self.spec, kind):
                _fill_in(container, launch, definition.name)
        name = plugin_container(definition)
        self.plugin: Any = next(
            each for each in items(self.spec, "containers") if text(each, "name") == name
        )
        self.port = self._progress_port(index)

    def document(self) -> dict[str, Any]:
        """Return the whole template."""
        run, key = self.location.run, self.key
        whole = deepcopy(dict(self.definition.template))
        metadata = dict(section(whole, "metadata"))
        labels, annotations = section(metadata, "labels"), section(metadata, "annotations")
        mesh = "sidecar.istio.io/inject"
        metadata["labels"] = {
            # A proxy that is put into the Pod keeps its Job from ending.
            **({} if mesh in annotations else {mesh: "false"}),
            **labels,
            **names.labels(run),
            names.PLUGIN_LABEL: key.plugin,
            "sonobuoy-component": "plugin",
            "sonobuoy-plugin": key.plugin,
            "sonobuoy-run": run,
        }
        metadata["annotations"] = {
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            DEFAULT_CONTAINER: plugin_container(self.definition),
            **annotations,
            **names.annotations(key),
            names.OWN_GRACE: str(self.own_grace),
        }
        return {**whole, "metadata": metadata, "spec": self.spec}

    def add_to_pod(self) -> None:
        """Add what concerns the Pod as a whole."""
        spec = self.spec
        spec["restartPolicy"] = "Never"
        if not (spec.get("serviceAccountName") or spec.get("serviceAccount")):
            spec["serviceAccountName"] = self.launch.service_account
        present = {text(each, "name") for each in items(spec, "imagePullSecrets")}
        missing = [{"name": name} for name in self.launch.pull_secrets if name not in present]
        _add(spec, "imagePullSecrets", missing)
        if self.node:
            spec["affinity"] = affinity(spec, self.key.node)
            if not spec.get("tolerations"):
                spec["tolerations"] = [{"operator": "Exists"}]
        # With ClusterFirst such Pods get the node's resolver, which does not know the aggregator.
        if self.host_network and spec.get("dnsPolicy", "ClusterFirst") == "ClusterFirst":
            spec["dnsPolicy"] = "ClusterFirstWithHostNet"
        if self.definition.contract != "link":
            spec["terminationGracePeriodSeconds"] = self.grace

    def add_to_containers(self) -> None:
        """Add what the plugin's own containers get under every contract."""
        launch, definition, spec = self.launch, self.definition, self.spec
        config = launch.config_keys.get(definition.name, {})
        values = {}
        if definition.contract == "done-file":
            values["SONOBUOY"] = "true"
            if launch.kubernetes_version:
                values["SONOBUOY_K8S_VERSION"] = launch.kubernetes_version
        if definition.contract == "done-file" or config:
            values["SONOBUOY_CONFIG_DIR"] = CONFIG_AT
        added = [*variables(values), *self.node]
        if definition.contract != "link":
            added.append(self.port)
        for container in items(spec, "containers"):
            _put_variables(container, added, ours_win=False)
            if config:
                mount = {"name": CONFIG, "mountPath": CONFIG_AT, "readOnly": True}
                _add(container, "volumeMounts", [mount])
        if config:
            files = [{"key": key, "path": file} for file, key in config.items()]
            volume = {"name": CONFIG, "configMap": {"name": self.location.run, "items": files}}
            _add(spec, "volumes", [volume])

    def _progress_port(self, index: int) -> dict[str, Any]:
        """Return the variable of the relay's port: what the plugin's container has, else the run's.

        A plugin may be unable to post to another.
        """
        for each in reversed(_listed(self.plugin, "env")):
            if text(section(each), "name") == PROGRESS_PORT:
                return dict(each)
        port = self.launch.progress_port or USUAL_PORT
        if self.host_network and not self.launch.progress_port:
            port = names.node_port(self.location.namespace, self.location.run, index)
        return {"name": PROGRESS_PORT, "value": str(port)}

    def add_contract(self, job_name: str, certificate: str, timeout: int) -> None:
        """Add what the plugin's contract asks for; the Secret `certificate` has the client's."""
        spec, contract, plugin = self.spec, self.definition.contract, self.plugin
        link = {
            "AGGREGATOR_URL": self.location.aggregator_url,
            "RESULT_TYPE": self.key.plugin,
            "AGGREGATOR_SCOPE": "node" if self.node else "global",
            **added_container.certificate_files(),
        }
        volumes = [added_container.certificates_volume(certificate)]
        if contract == "link":
            _put_variables(plugin, [*variables(link), *self.node], ours_win=True)
            _add(plugin, "volumeMounts", [added_container.certificates_mount()])
            _add(spec, "volumes", volumes)
            return
        directory, mount = _results(plugin, _RESULTS_AT[contract])
        if text(mount, "name") == _RESULTS and _RESULTS not in {
            text(volume, "name") for volume in items(spec, "volumes")
        }:
            # On disk: with `medium: Memory` results would count as the plugin's memory.
            volumes.append({"name": _RESULTS, "emptyDir": {}})
        _add(spec, "volumes", [*volumes, added_container.token_volume()])
        of_results_file = contract == "result-file"
        kind, file = ("initContainers", "sidecar") if of_results_file else ("containers", "worker")
        (ours,) = filled(
            "reporter.launch",
            f"{file}.yaml",
            {
                "image": self.launch.image,
                "job": job_name,
                "namespace": self.location.namespace,
                "plugin_container": text(plugin, "name"),
                "results_directory": directory,
                "results_path": f"{directory}/{RESULT_FILE}",
                "timeout": str(timeout),
                "grace": str(self.grace),
                "scope": "single-node" if self.node else "global",
                "silent": not self.definition.heartbeats,
                "no_conditions": not self.launch.write_conditions,
                "host_network": self.host_network,
            },
        )
        ours["env"] += [*variables(link), self.port, *self.node]
        ours["securityContext"] = added_container.security(plugin, spec)
        ours["volumeMounts"] = [
            {**mount, "readOnly": True} if of_results_file else dict(mount),
            added_container.certificates_mount(),
            added_container.token_mount(),
        ]
        if contract == "done-file":
            paths = {"SONOBUOY_RESULTS_DIR": directory, "RESULTS_DIR": directory}
            for container in items(spec, "containers"):
                _put_variables(container, variables(paths), ours_win=False)
        # Before all others, so that the failure of an init container is reported too; and the
        # kubelet starts containers in order: a pull that hangs would hold ours back.
        spec[kind] = [ours, *_listed(spec, kind)]


def _fill_in(container: Any, launch: Launch, plugin: str) -> None:
    image = full_image(text(container, "image"), launch.image, launch.kubernetes_version)
    container["image"] = image
    if launch.kubernetes_version.startswith("v1.29."):  # a dry run there refuses what it ignores
        mount: Any
        for mount in items(container, "volumeMounts"):
            mount.pop("recursiveReadOnly", None)
    if wished := variables(launch.environment.get(plugin, {})):
        _put_variables(container, wished, ours_win=True)


def _results(plugin: Any, path: str) -> tuple[str, Object]:
    """Find where the container writes its results, and the mount that leads there.

    A mount for them is added where none is.
    """
    mounted = [
        (posixpath.normpath(text(each, "mountPath")), each)
        for each in items(plugin, "volumeMounts")
    ]
    leading = [each for each in mounted if f"{path}/".startswith(f"{each[0].rstrip('/')}/")]
    if leading:
        return path, _as_ours(max(leading, key=lambda each: len(each[0]))[1])
    for at, mount in mounted:
        if text(mount, "name") == _RESULTS:
            return at, _as_ours(mount)
    added = {"name": _RESULTS, "mountPath": path}
    _add(plugin, "volumeMounts", [added])
    return path, added


def _as_ours(mount: Object) -> dict[str, Any]:
    return {name: mount[name] for name in ("name", "mountPath", "subPath") if name in mount}


def _put_variables(container: Any, added: list[dict[str, Any]], *, ours_win: bool) -> None:
    """Put variables before a container's own, which may refer to them as `$(NAME)`."""
    own = _listed(container, "env")
    ours = {variable["name"] for variable in added}
    present = {text(variable, "name") for variable in items(container, "env")}
    if ours_win:
        own = [each for each in own if text(section(each), "name") not in ours]
    else:
        added = [variable for variable in added if variable["name"] not in present]
    container["env"] = [*added, *own]


def _add(value: Any, key: str, more: list[dict[str, Any]]) -> None:
    if more:
        value[key] = [*_listed(value, key), *more]


def _listed(value: Object, key: str) -> list[Any]:
    found = value.get(key)
    return list(found) if isinstance(found, list) else []
