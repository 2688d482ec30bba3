"""The Job of an entry, and the Secret with the certificate by which its Pod reports.

The Pod is the definition's own, as it is, and what is added to it.
"""

import base64
import posixpath
from copy import deepcopy
from typing import Any, Final

from reporter.common.objects import Object, items, number, section, text
from reporter.launch import added_container
from reporter.launch.added_container import CONFIG, ResultsMount, Setting
from reporter.run import names
from reporter.run.definition import Definition, full_image
from reporter.run.identity import ANY_NODE
from reporter.run.nodes import affinity
from reporter.run.plan import GLOBAL, Key, Plan, Plugin
from reporter.run.spec import Launch, RunLocation
from reporter.verdict.pod import DEFAULT_CONTAINER, Names, find_adapter

UPLOADS: Final = 3_600  # seconds for uploads after the plugin's time: none is cut off
KEPT: Final = 86_400  # seconds that a Job stays whose launcher never came back
CONFIG_AT: Final = "/tmp/sonobuoy/config"  # noqa: S108 - the path of Sonobuoy's plugins
PROGRESS_PORT: Final = 8099
GRACE: Final = 60  # seconds that our containers have for an upload after SIGTERM
DEFAULT_GRACE: Final = 30  # what Kubernetes gives to Pods that name none

_RESULTS = "results"
_RESULTS_AT = {"result-file": "/results", "done-file": "/tmp/sonobuoy/results"}  # noqa: S108


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
    place: RunLocation, launch: Launch, plugin: Plugin, key: Key, *, index: int, timeout: int
) -> dict[str, Any]:
    """Return an entry's Job.

    `index` is the plugin's place in the plan, `timeout` the seconds from the start of its container
    to its result. One Pod, never a second: a plugin's first result counts, and what became of its
    Pod is told.
    """
    definition = launch.definition(plugin.name)
    name = names.entry_name(place.run, key)
    pod: dict[str, Any] = deepcopy(dict(section(definition.template, "spec")))
    host_network = pod.get("hostNetwork") is True
    said = number(pod, "terminationGracePeriodSeconds")
    own_grace = DEFAULT_GRACE if said is None else max(said, 1)
    given = Setting(
        place,
        launch,
        definition,
        key,
        name,
        # Pods on the node's network would take each other's port.
        port=PROGRESS_PORT + index if host_network else PROGRESS_PORT,
        timeout=timeout,
        grace=max(GRACE, own_grace),
        host_network=host_network,
        per_node=key.node != GLOBAL,
    )
    _whole(pod, given)
    _containers(pod, given)
    _contract(pod, given, secret_name(place.run, plugin, key))
    template = deepcopy(dict(definition.template))
    template |= {"metadata": _pod_metadata(given, own_grace), "spec": pod}
    spec: dict[str, Any] = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": definition.start_timeout_seconds + timeout + UPLOADS,
        "template": template,
    }
    if definition.cleanup != "never":
        spec["ttlSecondsAfterFinished"] = KEPT
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(place, name, key),
        "spec": spec,
    }


def secret(
    place: RunLocation, name: str, key: Key, *, ca: bytes, certificate: bytes, private_key: bytes
) -> dict[str, Any]:
    """Return a Secret with a client's certificate, all three as PEM."""
    files = {"ca.crt": ca, "tls.crt": certificate, "tls.key": private_key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(place, name, key),
        "type": "kubernetes.io/tls",
        "data": {file: base64.b64encode(pem).decode("ascii") for file, pem in files.items()},
    }


def _metadata(place: RunLocation, name: str, key: Key) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": place.namespace,
        "labels": {**names.labels(place.run), names.PLUGIN_LABEL: key.plugin},
        "annotations": names.annotations(key),
    }
    if place.owner is not None:
        metadata["ownerReferences"] = [dict(place.owner)]
    return metadata


def _pod_metadata(given: Setting, grace: int) -> dict[str, Any]:
    run, key = given.place.run, given.key
    metadata = deepcopy(dict(section(given.definition.template, "metadata")))
    labels, annotations = section(metadata, "labels"), section(metadata, "annotations")
    mesh = "sidecar.istio.io/inject"
    # A proxy that is put into the Pod keeps its Job from ending.
    no_mesh = {} if mesh in annotations else {mesh: "false"}
    metadata["labels"] = {
        **no_mesh,
        **labels,
        **names.labels(run),
        names.PLUGIN_LABEL: key.plugin,
        "sonobuoy-component": "plugin",
        "sonobuoy-plugin": key.plugin,
        "sonobuoy-run": run,
    }
    metadata["annotations"] = {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        DEFAULT_CONTAINER: plugin_container(given.definition),
        **annotations,
        **names.annotations(key),
        names.OWN_GRACE: str(grace),
    }
    return metadata


def _whole(spec: dict[str, Any], given: Setting) -> None:
    """Add what concerns the Pod as a whole."""
    spec["restartPolicy"] = "Never"
    if not (spec.get("serviceAccountName") or spec.get("serviceAccount")):
        spec["serviceAccountName"] = given.launch.service_account
    present = {text(each, "name") for each in items(spec, "imagePullSecrets")}
    missing = [{"name": name} for name in given.launch.pull_secrets if name not in present]
    if missing:
        spec["imagePullSecrets"] = [*_listed(spec, "imagePullSecrets"), *missing]
    if given.per_node:
        spec["affinity"] = affinity(spec, given.key.node)
        if not spec.get("tolerations"):
            spec["tolerations"] = [{"operator": "Exists"}]
    # With ClusterFirst such Pods get the node's resolver, which does not know the aggregator.
    if given.host_network and spec.get("dnsPolicy", "ClusterFirst") == "ClusterFirst":
        spec["dnsPolicy"] = "ClusterFirstWithHostNet"
    if given.definition.contract != "link":
        spec["terminationGracePeriodSeconds"] = given.grace


def _containers(spec: dict[str, Any], given: Setting) -> None:
    """Add what the plugin's own containers get under every contract."""
    launch, definition = given.launch, given.definition
    config = launch.config_keys.get(definition.name, {})
    for kind in ("initContainers", "containers"):
        for container in items(spec, kind):
            _fill_in(container, launch, definition.name)
    for container in items(spec, "containers"):
        known = _known(given, bool(config))
        _put_variables(container, known, ours_win=False)
        if config:
            _put_mount(container, {"name": CONFIG, "mountPath": CONFIG_AT, "readOnly": True})
    if config:
        files = [{"key": key, "path": file} for file, key in config.items()]
        volume = {"name": CONFIG, "configMap": {"name": given.place.run, "items": files}}
        spec["volumes"] = [*_listed(spec, "volumes"), volume]


def _fill_in(container: Any, launch: Launch, plugin: str) -> None:
    image = full_image(text(container, "image"), launch.image, launch.kubernetes_version)
    container["image"] = image
    wished = added_container.variables(launch.environment.get(plugin, {}))
    if wished:
        _put_variables(container, wished, ours_win=True)


def _known(given: Setting, has_config: bool) -> list[dict[str, Any]]:
    values = {}
    if given.definition.contract == "done-file":
        values["SONOBUOY"] = "true"
        if given.launch.kubernetes_version:
            values["SONOBUOY_K8S_VERSION"] = given.launch.kubernetes_version
    if given.definition.contract == "done-file" or has_config:
        values["SONOBUOY_CONFIG_DIR"] = CONFIG_AT
    if given.definition.contract != "link":
        values["SONOBUOY_PROGRESS_PORT"] = str(given.port)
    node = [added_container.node_name()] if given.per_node else []
    return [*added_container.variables(values), *node]


def _contract(spec: dict[str, Any], given: Setting, secret: str) -> None:
    """Add what the plugin's contract asks for."""
    name = plugin_container(given.definition)
    plugin: Any = next(each for each in items(spec, "containers") if text(each, "name") == name)
    volumes = [added_container.certificates_volume(secret)]
    if given.definition.contract == "link":
        link = added_container.link_environment(given.place, given.key, per_node=given.per_node)
        _put_variables(plugin, link, ours_win=True)
        _put_mount(plugin, added_container.certificates_mount())
    else:
        results = _results(plugin, _RESULTS_AT[given.definition.contract])
        if text(results.mount, "name") == _RESULTS and _RESULTS not in _volumes(spec):
            # On disk: with `medium: Memory` results would count as the plugin's memory.
            volumes.append({"name": _RESULTS, "emptyDir": {}})
        volumes.append(added_container.token_volume())
        if given.definition.contract == "result-file":
            # Before all others, so that their failure is reported too.
            first = added_container.sidecar(given, plugin, spec, results)
            spec["initContainers"] = [first, *_listed(spec, "initContainers")]
        else:
            shown = {"SONOBUOY_RESULTS_DIR": results.directory, "RESULTS_DIR": results.directory}
            for container in items(spec, "containers"):
                _put_variables(container, added_container.variables(shown), ours_win=False)
            # The kubelet starts containers in order: a pull that hangs would hold ours back.
            first = added_container.worker(given, plugin, spec, results)
            spec["containers"] = [first, *_listed(spec, "containers")]
    spec["volumes"] = [*_listed(spec, "volumes"), *volumes]


def _results(plugin: Any, path: str) -> ResultsMount:
    """Find where the container writes its results; a mount for them is added where none is."""
    mounted = [
        (posixpath.normpath(text(each, "mountPath")), each)
        for each in items(plugin, "volumeMounts")
    ]
    leading = [each for each in mounted if f"{path}/".startswith(f"{each[0].rstrip('/')}/")]
    if leading:
        return ResultsMount(path, _as_ours(max(leading, key=lambda each: len(each[0]))[1]))
    for at, mount in mounted:
        if text(mount, "name") == _RESULTS:
            return ResultsMount(at, _as_ours(mount))
    added = {"name": _RESULTS, "mountPath": path}
    _put_mount(plugin, added)
    return ResultsMount(path, added)


def _as_ours(mount: Object) -> dict[str, Any]:
    return {name: mount[name] for name in ("name", "mountPath", "subPath") if name in mount}


def _volumes(spec: Object) -> set[str]:
    return {text(volume, "name") for volume in items(spec, "volumes")}


def _put_variables(container: Any, added: list[dict[str, Any]], *, ours_win: bool) -> None:
    """Put variables before a container's own, which may refer to them as `$(NAME)`."""
    own = _listed(container, "env")
    taken = {variable["name"] for variable in added}
    present = {text(variable, "name") for variable in items(container, "env")}
    if ours_win:
        own = [each for each in own if text(section(each), "name") not in taken]
    else:
        added = [variable for variable in added if variable["name"] not in present]
    container["env"] = [*added, *own]


def _put_mount(container: Any, mount: Object) -> None:
    container["volumeMounts"] = [*_listed(container, "volumeMounts"), dict(mount)]


def _listed(value: Object, key: str) -> list[Any]:
    found = value.get(key)
    return list(found) if isinstance(found, list) else []
