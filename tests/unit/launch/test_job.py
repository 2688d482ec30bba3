"""The Job of an entry and its Secret: the definition's Pod, and what is added to it."""

from __future__ import annotations

import base64
import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.launch.job import job, plugin_container, secret, secret_name
from reporter.link import config
from reporter.run import names
from reporter.run.definition import Definition
from reporter.run.plan import GLOBAL, Key, Plugin
from reporter.runctl.pod_security import needed
from reporter.sidecar import settings as sidecar_settings
from reporter.verdict.pod import Names, find_adapter, find_form
from reporter.worker.command_line import parse
from tests.plugin_definitions import YAML
from tests.plugin_launches import (
    IMAGE,
    NAMESPACE,
    NODES,
    OWNER,
    PLACE,
    RUN,
    definition,
    launch_of,
    plugin_of,
)
from tests.unit.launch.job_parts import (
    OURS,
    Object,
    container,
    environ,
    made,
    made_of,
    mounts,
    pod_of,
    volume,
)

PORT = "SONOBUOY_PROGRESS_PORT"


@pytest.mark.parametrize("situation", YAML)
def test_what_a_template_says_stays(situation: str) -> None:
    """Containers keep their order and all they have; nothing of the Pod's is lost."""
    found = definition(situation)
    before, after = found.template["spec"], pod_of(made(situation))
    for kind in ("containers", "initContainers"):
        given = before.get(kind, [])
        kept = [each for each in after.get(kind, []) if each["name"] not in OURS]
        assert [each["name"] for each in given] == [each["name"] for each in kept]
        for own, now in zip(given, kept, strict=True):
            assert {**own, "env": 0, "volumeMounts": 0, "image": 0} == (
                {**now, "env": 0, "volumeMounts": 0, "image": 0}
            )
            for mount in own.get("volumeMounts", []):
                assert mount in now["volumeMounts"]
    for each in before.get("volumes", []):
        assert each in after["volumes"]
    changed = {
        "affinity",
        "containers",
        "dnsPolicy",
        "imagePullSecrets",
        "initContainers",
        "terminationGracePeriodSeconds",
        "volumes",
    }
    for name in before.keys() - changed:
        assert before[name] == after[name]


@pytest.mark.parametrize("situation", YAML)
def test_one_pod_and_never_a_second(situation: str) -> None:
    """No retry, no restart, an end for it in any case, and a name by which it is found again."""
    found = definition(situation)
    done = made(situation, timeout=600)
    spec, key = done["spec"], plugin_of(found).keys[0]
    assert (0, "Never") == (spec["backoffLimit"], pod_of(done)["restartPolicy"])
    assert found.start_timeout_seconds + 600 + 3600 == spec["activeDeadlineSeconds"]
    assert ("ttlSecondsAfterFinished" in spec) is (found.cleanup != "never")
    assert names.entry_name(RUN, key) == done["metadata"]["name"]
    assert [OWNER] == done["metadata"]["ownerReferences"]
    for labelled in (done, spec["template"]):
        assert names.labels(RUN).items() <= labelled["metadata"]["labels"].items()
        assert found.name == labelled["metadata"]["labels"][names.PLUGIN_LABEL]
        assert key == names.key_of(labelled)


@pytest.mark.parametrize("situation", YAML)
def test_keys_are_files_of_one_container(situation: str) -> None:
    """Certificates and token are seen by ours alone, by the program itself under `link`."""
    found = definition(situation)
    done = made(situation)
    pod = pod_of(done)
    key = plugin_of(found).keys[0]
    secret = volume(pod, "status-reporter-certificates")["secret"]["secretName"]
    assert secret_name(RUN, plugin_of(found), key) == secret
    seeing = {
        each["name"]
        for kind in ("initContainers", "containers")
        for each in pod.get(kind, [])
        if {"status-reporter-certificates", "status-reporter-token"} & set(mounts(each).values())
    }
    ours = {"result-file": "status-reporter", "done-file": "status-worker"}
    assert {ours.get(found.contract, plugin_container(found))} == seeing
    assert "PRIVATE" not in json.dumps(done)


@pytest.mark.parametrize("situation", YAML)
def test_every_mount_has_its_volume_and_no_volume_comes_twice(situation: str) -> None:
    pod = pod_of(made(situation))
    volumes = [each["name"] for each in pod["volumes"]]
    assert len(set(volumes)) == len(volumes)
    for each in [*pod.get("initContainers", []), *pod["containers"]]:
        assert set(mounts(each).values()) <= set(volumes)
        assert len(mounts(each)) == len(each.get("volumeMounts", []))


@pytest.mark.parametrize("situation", YAML)
def test_our_containers_understand_their_settings(situation: str) -> None:
    """By the code that reads them: nothing is set in vain and nothing is missing."""
    found = definition(situation)
    pod = pod_of(made(situation))
    per_node = found.driver == "Node"
    name = {"result-file": OURS[0], "done-file": OURS[1]}.get(
        found.contract, plugin_container(found)
    )
    values = environ(container(pod, name))
    assert (PLACE.aggregator_url, found.name) == (values["AGGREGATOR_URL"], values["RESULT_TYPE"])
    assert ("node" if per_node else "global") == values["AGGREGATOR_SCOPE"]
    assert ("spec.nodeName" if per_node else None) == values.get("NODE_NAME")
    if found.contract == "link":
        return
    link = {*config.VARIABLES.values(), "AGGREGATOR_SCOPE"}
    pems = {f"{each}_FILE" for each in ("CA_CERT", "CLIENT_CERT", "CLIENT_KEY")}
    known = {each.name for each in sidecar_settings.Settings.described()}
    assert set(values) <= link | pems | (known if found.contract == "result-file" else set())
    assert ("0" if not found.heartbeats else None) == values.get("WORKER_HEARTBEAT_SECONDS")
    if found.contract == "result-file":
        filled = {**values, "POD_NAME": "pod"}
        chosen = sidecar_settings.Settings.read(filled)
        assert names.entry_name(RUN, plugin_of(found).keys[0]) == chosen.job_name
        assert 600 == chosen.max_wait_time_seconds
    else:
        ours = container(pod, name)
        assert ["/sonobuoy"] == ours["command"]
        assert (["worker", "single-node" if per_node else "global"], 0) == parse(ours["args"])


@pytest.mark.parametrize("situation", YAML)
def test_our_container_comes_first_and_is_as_restricted_as_the_plugin_lets_it(
    situation: str,
) -> None:
    found = definition(situation)
    pod = pod_of(made(situation))
    if found.contract == "link":
        assert not any(each["name"] in OURS for each in pod["containers"])
        assert "initContainers" not in pod
        return
    if found.contract == "result-file":
        ours = pod["initContainers"][0]
        assert ("status-reporter", "Always") == (ours["name"], ours["restartPolicy"])
        assert "native" == find_form(pod, "status-reporter").name.lower()
    else:
        ours = pod["containers"][0]
        assert "status-worker" == ours["name"]
    assert IMAGE == ours["image"]
    context = ours["securityContext"]
    assert {"drop": ["ALL"]} == context["capabilities"]
    assert (False, True) == (context["allowPrivilegeEscalation"], context["readOnlyRootFilesystem"])


@pytest.mark.parametrize("situation", YAML)
def test_the_sidecar_in_the_real_pod_finds_the_same_container(situation: str) -> None:
    """What is told here is what the rules find there, or a webhook's container would be judged."""
    found = definition(situation)
    template = made(situation)["spec"]["template"]
    ours = "status-worker" if found.contract == "done-file" else "status-reporter"
    path = "/tmp/sonobuoy/results/x" if found.contract == "done-file" else "/results/x"
    named = plugin_container(found)
    adapter, misfit, _ = find_adapter(template, Names(reporter=ours, results_path=path))
    assert (named, "") == (adapter, misfit)
    assert named in [each["name"] for each in template["spec"]["containers"]]


def test_pull_secrets_are_added_once() -> None:
    pod = pod_of(made("adapter with everything of its own"))
    assert [{"name": "mine"}, {"name": "pull"}] == pod["imagePullSecrets"]
    assert [{"name": "pull"}] == pod_of(made("adapter on each node"))["imagePullSecrets"]
    found = definition("adapter on each node")
    assert "imagePullSecrets" not in pod_of(
        made_of(found, replace(launch_of(found), pull_secrets=()))
    )


@pytest.mark.parametrize(
    ("situation", "user", "group", "non_root"),
    [
        ("adapter that mounts nothing", None, None, True),
        ("restricted adapter", 1000, None, True),
        ("adapter with everything of its own", 1000, 1001, True),
        ("worker beside a plugin that is root", 0, None, False),
    ],
)
def test_our_container_is_who_the_plugin_is(
    situation: str, user: int | None, group: int | None, non_root: bool
) -> None:
    """Its files may be readable for nobody else."""
    pod = pod_of(made(situation))
    found = definition(situation)
    ours = (pod["initContainers"] if found.contract == "result-file" else pod["containers"])[0]
    context = ours["securityContext"]
    assert (user, group, non_root) == (
        context.get("runAsUser"),
        context.get("runAsGroup"),
        context["runAsNonRoot"],
    )


def test_a_pod_of_root_does_not_keep_our_container_from_starting() -> None:
    """The kubelet starts no container that must not be root as root."""
    found = definition("adapter that mounts nothing")
    spec = {**found.template["spec"], "securityContext": {"runAsUser": 0}}
    found = replace(found, template={"spec": spec})
    context = pod_of(made_of(found, launch_of(found)))["initContainers"][0]["securityContext"]
    assert False is context["runAsNonRoot"]


@pytest.mark.parametrize(
    ("situation", "grace", "own"),
    [
        ("adapter that mounts nothing", 60, 30),
        ("adapter on the node's network", 300, 300),
        ("program that uploads by itself", None, 30),
    ],
)
def test_an_upload_has_a_minute_after_the_end(situation: str, grace: int | None, own: int) -> None:
    """And who deletes the run can read how long the Pod needs without one."""
    job = made(situation)

    assert grace == pod_of(job).get("terminationGracePeriodSeconds")
    assert own == names.own_grace(job["spec"]["template"])


def test_labels_and_annotations_of_the_users_stay_but_not_over_ours() -> None:
    metadata = made("adapter with everything of its own")["spec"]["template"]["metadata"]
    labels, annotations = metadata["labels"], metadata["annotations"]
    assert ("storage", "status-reporter") == (labels["team"], labels["app.kubernetes.io/part-of"])
    assert ("kept", "true") == (annotations["note"], annotations["sidecar.istio.io/inject"])
    assert "sidecar.istio.io/inject" not in labels
    assert ("plugin", "own", RUN) == tuple(
        labels[name] for name in ("sonobuoy-component", "sonobuoy-plugin", "sonobuoy-run")
    )


def test_a_place_without_an_owner_is_for_trying_it_out() -> None:
    found = definition("adapter that mounts nothing")
    plugin = plugin_of(found)
    tried = job(
        replace(PLACE, owner=None), launch_of(found), plugin, plugin.keys[0], index=0, timeout=1
    )
    assert "ownerReferences" not in tried["metadata"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
FIELDS = (
    "affinity",
    "hostNetwork",
    "imagePullSecrets",
    "securityContext",
    "serviceAccountName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "volumes",
)
OF_CONTAINERS = ("env", "volumeMounts", "securityContext", "resources")


@given(
    contract=st.sampled_from(["result-file", "done-file", "link"]),
    per_node=st.booleans(),
    metadata=ANYTHING,
    pod=st.dictionaries(st.sampled_from(FIELDS), ANYTHING),
    container=st.dictionaries(st.sampled_from(OF_CONTAINERS), ANYTHING),
)
def test_whatever_a_template_has_a_job_comes_of_it(
    contract: Any, per_node: bool, metadata: object, pod: Object, container: Object
) -> None:
    """The API server says what is wrong with it; nothing here ends over it."""
    one = {**container, "name": "main", "image": "busybox"}
    template = {"metadata": metadata, "spec": {**pod, "containers": [one]}}
    found = Definition("any", "Node" if per_node else "Job", contract, template)
    before = deepcopy(template)
    made = made_of(found, replace(launch_of(found), environment={"any": {"A": "b"}}))
    assert needed(template)[0] in {"restricted", "baseline", "privileged"}
    json.dumps(made)
    assert before == template
    ours = {"result-file": ["status-reporter"], "done-file": ["status-worker"], "link": []}
    both = [*pod_of(made).get("initContainers", []), *pod_of(made)["containers"]]
    assert [*ours[contract], "main"] == [each["name"] for each in both]


def test_an_adapter_that_mounts_nothing_is_given_its_results_directory() -> None:
    pod = pod_of(made("adapter that mounts nothing"))
    assert "results" == mounts(container(pod, "adapter"))["/results"]
    assert {"name": "results", "emptyDir": {}} == volume(pod, "results")
    (mount,) = (
        each for each in pod["initContainers"][0]["volumeMounts"] if each["name"] == "results"
    )
    assert {"name": "results", "mountPath": "/results", "readOnly": True} == mount


def test_results_on_a_volume_of_the_plugins_are_read_where_they_are() -> None:
    """The same mount, with its subPath; no volume is added."""
    pod = pod_of(made("adapter with everything of its own"))
    ours = pod["initContainers"][0]
    mount = {"name": "scratch", "mountPath": "/results/", "subPath": "out", "readOnly": True}
    assert mount in ours["volumeMounts"]
    assert "results" not in [each["name"] for each in pod["volumes"]]
    assert "/results/adapter-result.json" == environ(ours)["RESULTS_PATH"]


def test_a_plugin_that_mounts_the_results_elsewhere_is_told_where() -> None:
    pod = pod_of(made("worker with results in a place of the plugin's"))
    plugin, worker = container(pod, "plugin"), pod["containers"][0]
    assert "/out" == environ(worker)["SONOBUOY_RESULTS_DIR"]
    assert ("/out", "/out") == (
        environ(plugin)["SONOBUOY_RESULTS_DIR"],
        environ(plugin)["RESULTS_DIR"],
    )
    assert "results" == mounts(worker)["/out"]


def mounting(*paths: str) -> Object:
    """The Pod of a plugin that mounts `scratch` at these paths and nothing for results."""
    found = definition("worker beside a plugin that is root")
    mounts = [{"name": "scratch", "mountPath": path} for path in paths]
    plugin = {**found.template["spec"]["containers"][0], "volumeMounts": mounts}
    spec = {"containers": [plugin], "volumes": [{"name": "scratch", "emptyDir": {}}]}
    found = replace(found, template={"spec": spec})
    return pod_of(made_of(found, launch_of(found)))


def test_a_mount_beside_the_results_is_not_theirs() -> None:
    pod = mounting("/tmp/sonobuoy/results-of-others", "/data")
    assert "results" == mounts(pod["containers"][0])["/tmp/sonobuoy/results"]
    assert "results" == mounts(container(pod, "plugin"))["/tmp/sonobuoy/results"]


def test_a_mount_above_the_results_is_shared_as_it_is() -> None:
    """The nearest one, of several."""
    mount = {"name": "scratch", "mountPath": "/tmp/sonobuoy"}
    pod = mounting("/tmp", "/tmp/sonobuoy", "/data")
    assert mount in pod["containers"][0]["volumeMounts"]
    assert "/tmp/sonobuoy/results" == environ(pod["containers"][0])["SONOBUOY_RESULTS_DIR"]
    assert "results" not in [each["name"] for each in pod["volumes"]]


FIELD = {"key": "metadata.name", "operator": "In", "values": [NODES[0]]}


class TestPlacement:
    """One node, through the scheduler."""

    def required(self, situation: str) -> list[Object]:
        affinity = pod_of(made(situation))["affinity"]["nodeAffinity"]
        return affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]

    def test_a_pod_without_affinity_is_bound_to_its_node(self) -> None:
        assert [{"matchFields": [FIELD]}] == self.required("adapter on each node")
        assert [{"operator": "Exists"}] == pod_of(made("adapter on each node"))["tolerations"]

    def test_every_alternative_of_a_template_is_bound(self) -> None:
        """One that matches no node is left out: the added field would make it match."""
        zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
        other = {"key": "metadata.name", "operator": "NotIn", "values": ["node9"]}
        assert [
            {"matchExpressions": [zone], "matchFields": [FIELD]},
            {"matchFields": [other, FIELD]},
        ] == self.required("adapter with everything of its own")
        pod = pod_of(made("adapter with everything of its own"))
        assert [{"key": "special", "operator": "Exists"}] == pod["tolerations"]
        given = definition("adapter with everything of its own").template["spec"]["affinity"]
        assert given["podAntiAffinity"] == pod["affinity"]["podAntiAffinity"]
        preferred = "preferredDuringSchedulingIgnoredDuringExecution"
        assert given["nodeAffinity"][preferred] == pod["affinity"]["nodeAffinity"][preferred]

    def test_terms_that_match_nothing_still_match_nothing(self) -> None:
        terms: list[Object] = [{}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        found = definition("adapter on each node")
        spec = {**found.template["spec"], "affinity": {"nodeAffinity": required}}
        found = replace(found, template={"spec": spec})
        assert required == pod_of(made_of(found, launch_of(found)))["affinity"]["nodeAffinity"]

    def test_a_job_for_the_cluster_goes_anywhere(self) -> None:
        pod = pod_of(made("adapter that mounts nothing"))
        assert "affinity" not in pod
        assert "tolerations" not in pod


class TestHostNetwork:
    """Ports and names where a Pod has none of its own."""

    def test_metrics_are_off_and_names_are_those_of_the_cluster(self) -> None:
        pod = pod_of(made("adapter on the node's network"))
        assert "0" == environ(pod["initContainers"][0])["METRICS_PORT"]
        assert "ClusterFirstWithHostNet" == pod["dnsPolicy"]

    def test_elsewhere_nothing_is_changed(self) -> None:
        pod = pod_of(made("adapter that mounts nothing"))
        assert "METRICS_PORT" not in environ(pod["initContainers"][0])
        assert "dnsPolicy" not in pod

    def test_a_policy_of_the_templates_own_stays(self) -> None:
        assert "None" == pod_of(made("adapter with everything of its own"))["dnsPolicy"]


class TestProgressPort:
    """The container that relays listens where the plugin posts."""

    ALONE = "adapter that mounts nothing"
    SHARED = "adapter on the node's network"

    def port(self, found: Definition, index: int = 7, **launch: Any) -> str:
        """What plugin and relay are told: the last one counts."""
        plugin, told = plugin_of(found), replace(launch_of(found), **launch)
        done = job(PLACE, told, plugin, plugin.keys[0], index=index, timeout=600)
        ours, own = (
            [each for each in container(pod_of(done), name)["env"] if each["name"] == PORT][-1]
            for name in (OURS[0], "adapter")
        )
        assert ours == own
        return str(own.get("value") or own["valueFrom"])

    def test_it_is_the_known_one_where_a_pod_has_ports_of_its_own(self) -> None:
        assert "8099" == self.port(definition(self.ALONE))
        assert "9000" == self.port(definition(self.ALONE), progress_port=9000)

    def test_on_a_nodes_network_it_is_the_plugins_own(self) -> None:
        shared = definition(self.SHARED)
        assert str(names.node_port(NAMESPACE, RUN, 3)) == self.port(shared, 3)
        assert "9000" == self.port(shared, 3, progress_port=9000)

    @pytest.mark.parametrize("situation", [ALONE, SHARED])
    def test_the_definitions_own_port_moves_the_relay(self, situation: str) -> None:
        found = definition(situation)
        assert "9001" == self.port(given_port(found, value="9001"), progress_port=9000)
        key = {"configMapKeyRef": {"name": "ports", "key": "mine"}}
        assert str(key) == self.port(given_port(found, valueFrom=key))

    def test_the_commands_own_port_outranks_the_definitions(self) -> None:
        found = given_port(definition(self.ALONE), value="9001")
        assert "9002" == self.port(found, environment={found.name: {PORT: "9002"}})


def given_port(found: Definition, **variable: Any) -> Definition:
    """A definition whose container names its port, after another one."""
    template = deepcopy(dict(found.template))
    earlier = {"name": PORT, "value": "1"}
    template["spec"]["containers"][0]["env"] = [earlier, {"name": PORT, **variable}]
    return replace(found, template=template)


def test_sonobuoys_plugins_get_the_variables_they_know() -> None:
    """Theirs come after ours, so that they can refer to them, and win."""
    pod = pod_of(made("Sonobuoy's kube-bench", index=2))
    plugin = container(pod, "plugin")
    assert {
        "SONOBUOY": "true",
        "SONOBUOY_K8S_VERSION": "v1.34.4",
        "SONOBUOY_CONFIG_DIR": "/tmp/sonobuoy/config",
        "SONOBUOY_RESULTS_DIR": "/tmp/sonobuoy/results",
        "RESULTS_DIR": "/tmp/sonobuoy/results",
        "SONOBUOY_PROGRESS_PORT": str(names.node_port(NAMESPACE, RUN, 2)),
        "NODE_NAME": "spec.nodeName",
        "KUBERNETES_VERSION": "$(SONOBUOY_K8S_VERSION)",
    } == environ(plugin)
    order = [each["name"] for each in plugin["env"]]
    assert order.index("SONOBUOY_K8S_VERSION") < order.index("KUBERNETES_VERSION")
    assert "sonobuoy/kube-bench:v1.34.4" == plugin["image"]
    assert "r1-plugin" == pod["serviceAccountName"]


def test_files_of_the_configuration_come_from_the_runs_config_map() -> None:
    pod = pod_of(made("Sonobuoy's e2e"))
    assert {
        "name": "r1",
        "items": [
            {"key": "config.0.0", "path": "settings.yaml"},
            {"key": "config.0.1", "path": "sub/list.txt"},
        ],
    } == volume(pod, "status-reporter-config")["configMap"]
    assert "status-reporter-config" == mounts(container(pod, "e2e"))["/tmp/sonobuoy/config"]
    assert "status-reporter-config" not in mounts(pod["containers"][0]).values()


def test_without_a_known_version_images_stay_as_they_are() -> None:
    found = definition("Sonobuoy's e2e")
    pod = pod_of(made_of(found, replace(launch_of(found), kubernetes_version="")))
    e2e = container(pod, "e2e")
    assert "registry.k8s.io/conformance:$SONOBUOY_K8S_VERSION" == e2e["image"]
    assert "SONOBUOY_K8S_VERSION" not in environ(e2e)


@pytest.mark.parametrize(("version", "kept"), [("v1.29.15", False), ("v1.30.0", True)])
def test_kubernetes_1_29_would_refuse_recursive_read_only_mounts(version: str, kept: bool) -> None:
    found = definition("adapter that mounts nothing")
    template = deepcopy(found.template)
    mount = {"name": "more", "mountPath": "/more", "readOnly": True}
    (plugin,) = template["spec"]["containers"]
    plugin["volumeMounts"] = [{**mount, "recursiveReadOnly": "IfPossible"}]
    found = replace(found, template=template)

    pod = pod_of(made_of(found, replace(launch_of(found), kubernetes_version=version)))

    said = {"recursiveReadOnly": "IfPossible"} if kept else {}
    assert {**mount, **said} in container(pod, plugin["name"])["volumeMounts"]


def test_the_commands_variables_replace_those_of_the_definition() -> None:
    pod = pod_of(made("adapter with everything of its own"))
    for name in ("main", "helper", "prepare"):
        assert {"EXTRA": "new", "MORE": "1"}.items() <= environ(container(pod, name)).items()
    assert "MORE" not in environ(pod["initContainers"][0])


@pytest.mark.parametrize(("may", "said"), [(True, None), (False, "false")])
def test_the_sidecar_is_told_whether_it_may_write_on_the_job(may: bool, said: str | None) -> None:
    found = definition("adapter that mounts nothing")
    pod = pod_of(made_of(found, replace(launch_of(found), write_conditions=may)))
    assert said == environ(pod["initContainers"][0]).get("REPORT_CONDITION")


@pytest.mark.parametrize(
    ("plugin", "key", "whose"),
    [
        (Plugin("p"), Key("p", GLOBAL), Key("p", GLOBAL)),
        (Plugin("p", ("a", "b")), Key("p", "b"), Key("p", "*")),
        (Plugin("p", ("a", "b"), identity="node"), Key("p", "b"), Key("p", "b")),
    ],
)
def test_nodes_share_a_secret_unless_each_has_an_identity(
    plugin: Plugin, key: Key, whose: Key
) -> None:
    assert names.entry_name(RUN, whose) == secret_name(RUN, plugin, key)


def test_a_secret_holds_what_the_containers_read() -> None:
    key = Key("p", "*")
    found = secret(PLACE, "name", key, ca=b"ca", certificate=b"crt", private_key=b"key")
    assert {"ca.crt": b"ca", "tls.crt": b"crt", "tls.key": b"key"} == {
        name: base64.b64decode(value) for name, value in found["data"].items()
    }
    assert ("kubernetes.io/tls", [OWNER]) == (found["type"], found["metadata"]["ownerReferences"])
    assert key == names.key_of(found)
    files = environ(pod_of(made("program that uploads by itself"))["containers"][0])
    read = {value.rpartition("/")[2] for name, value in files.items() if name.endswith("_FILE")}
    assert set(found["data"]) == read
