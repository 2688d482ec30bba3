"""What `status-ctl run` creates: the order, the names, the least rights."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from reporter.aggregator.settings import Settings
from reporter.run import names
from reporter.run.identity import ANY_NODE
from reporter.run.launch_file import read_launch
from reporter.run.plan import Plugin, parse_plan
from reporter.runctl.objects import objects
from reporter.runctl.spec import CONTAINER, CREATED_BY, STATUS_PORT, RunSpec, StatusTls, UploadTo
from tests.plugin_definitions import YAML
from tests.plugin_launches import NAMESPACE, definition, options_of

Object = dict[str, Any]
ALL = options_of(*(definition(situation) for situation in YAML))
TLS = StatusTls(certificate=b"crt", private_key=b"key", client_ca=b"ca")
SITUATIONS = {
    "as it is": ALL,
    "a namespace of its own": replace(ALL, create_namespace=True),
    "without a volume": replace(ALL, storage=None),
    "a class and a node": replace(ALL, storage_class="fast", node_selector={"disk": "ssd"}),
    "a Job that ends": replace(ALL, exit=True),
    "a Job that ends, without a volume": replace(ALL, exit=True, storage=None),
    "access from outside": replace(ALL, expose="nodeport", status_tls=TLS),
    "a load balancer": replace(ALL, expose="loadbalancer", status_tls=TLS),
    "an upload": replace(ALL, upload=UploadTo(url="https://store/k?SIGNED", ca=b"ca")),
    "accounts of others": replace(
        ALL,
        aggregator_service_account="theirs",
        launch=replace(ALL.launch, service_account="mine", pull_secrets=()),
    ),
    "no conditions on Jobs": replace(ALL, launch=replace(ALL.launch, write_conditions=False)),
    "users from the platform": replace(ALL, fixed_group=False),
}


def one(made: list[Object], kind: str, name: str = "r1") -> Object:
    (found,) = (each for each in made if (kind, name) == (each["kind"], each["metadata"]["name"]))
    return found


def pod_of(options: RunSpec) -> Object:
    made = objects(options)
    return dict(one(made, "Job")["spec"]["template"]["spec"])


def rights(made: list[Object], name: str) -> set[tuple[str, str, str, str]]:
    """What a Role allows: resource, verb, API group, name."""
    return {
        (resource, verb, group, only)
        for rule in one(made, "Role", name)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for only in rule.get("resourceNames", ["*"])
    }


@pytest.mark.parametrize("situation", SITUATIONS)
def test_every_object_is_the_runs(situation: str) -> None:
    """By its labels, in its namespace, once; none has an owner, which nobody could know yet."""
    made = objects(SITUATIONS[situation])
    found = [(each["kind"], each["metadata"]["name"]) for each in made]
    assert len(set(found)) == len(found)
    for each in made:
        metadata = each["metadata"]
        assert names.labels("r1").items() <= metadata["labels"].items()
        assert "ownerReferences" not in metadata
        assert (None if each["kind"] == "Namespace" else NAMESPACE) == metadata.get("namespace")


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_config_map_is_the_lock_and_the_aggregator_comes_last(situation: str) -> None:
    kinds = [each["kind"] for each in objects(SITUATIONS[situation])]
    assert "ConfigMap" == next(kind for kind in kinds if kind != "Namespace")
    assert "Job" == kinds[-1]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_controller_makes_a_claim(situation: str) -> None:
    """It may do so after the run was deleted, and a claim without an owner would stay for ever."""
    made = objects(SITUATIONS[situation])
    claims = {each["metadata"]["name"] for each in made if "PersistentVolumeClaim" == each["kind"]}
    volumes = pod_of(SITUATIONS[situation])["volumes"]
    used = [each["persistentVolumeClaim"] for each in volumes if "persistentVolumeClaim" in each]

    assert "olumeClaimTemplate" not in json.dumps(made)
    assert claims == {each["claimName"] for each in used}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_aggregator_reads_what_was_meant(situation: str) -> None:
    """Plan and launch as they were given; every variable is a setting, and they fit."""
    options = SITUATIONS[situation]
    made = objects(options)
    data = one(made, "ConfigMap")["data"]
    assert options.plan == parse_plan(json.loads(data["plan.json"]))
    told = read_launch(data["launch.json"].encode())
    assert [each.name for each in options.launch.definitions] == (
        [each.name for each in told.definitions]
    )
    (container,) = pod_of(options)["containers"]
    values = {each["name"]: each.get("value", "filled-in") for each in container["env"]}
    known = {each.name for each in Settings.described()} | {"LAUNCH"}
    assert set(values) <= known
    del values["LAUNCH"]
    assert "r1.space.svc:8080" == Settings.read(values).advertise_address
    assert f"r1.{NAMESPACE}.svc" in Settings.read(values).server_names
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    for name in ("PLAN", "STATE", "OUTPUT", "STATUS_TLS_CERT", "STATUS_TLS_CLIENT_CA"):
        if name in values:
            assert any(values[name].startswith(f"{mount}/") for mount in mounts)


@pytest.mark.parametrize("exits", [False, True])
def test_a_new_pod_does_not_need_the_config_map(exits: bool) -> None:
    """Once it is gone: plan and launch are in the aggregator's state, too."""
    volumes = pod_of(replace(ALL, exit=exits))["volumes"]

    assert {"name": "plan", "configMap": {"name": "r1", "optional": True}} in volumes


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_new_pod_does_not_wait_for_a_secret_that_is_gone(situation: str) -> None:
    """It would do so for ever; without them it says what is missing, and goes on."""
    found = [
        each["secret"] for each in pod_of(SITUATIONS[situation])["volumes"] if "secret" in each
    ]

    assert {True} >= {each.get("optional", False) for each in found}
    assert found or not {"access from outside", "a load balancer"} & {situation}


def test_files_of_configurations_are_in_the_config_map_under_their_keys() -> None:
    data = one(objects(ALL), "ConfigMap")["data"]
    keys = ALL.launch.config_keys
    assert {"e2e", "elsewhere"} == set(keys)
    assert "a: 1" == data[keys["e2e"]["settings.yaml"]]
    assert "x" == data[keys["elsewhere"]["a.conf"]]
    assert True is one(objects(ALL), "ConfigMap")["immutable"]


def test_the_files_of_a_configuration_are_in_the_config_map_once() -> None:
    """It holds 1 MiB; files of 600 KiB must fit."""
    large = "x" * 600 * 1024
    options = options_of(
        replace(definition("adapter as in the documentation"), name="big", config={"a.conf": large})
    )
    data = one(objects(options), "ConfigMap")["data"]
    assert 1 == sum(text.count(large) for text in data.values())
    launch = read_launch(data["launch.json"].encode())
    assert large == data[launch.config_keys["big"]["a.conf"]]


def test_the_aggregator_has_the_least_rights() -> None:
    secrets = {
        names.entry_name("r1", key._replace(node=ANY_NODE) if plugin.nodes else key)
        for plugin in ALL.plan.plugins
        for key in plugin.keys
    }
    free = {
        *(("jobs", verb, "batch") for verb in ("create", "delete", "get", "list", "watch")),
        # Of its own Pod, whose name nobody knows before.
        *(("pods", verb, "") for verb in ("list", "patch", "watch")),
        ("pods/log", "get", ""),
        ("events", "list", ""),
        ("events", "watch", ""),
        ("secrets", "create", ""),
    }
    narrow = {
        *(("configmaps", verb, "", "r1") for verb in ("get", "patch")),
        *(("secrets", verb, "", name) for verb in ("get", "delete") for name in secrets),
    }
    assert {(*right, "*") for right in free} | narrow == rights(objects(ALL), "r1-aggregator")


def test_nodes_with_an_identity_of_their_own_have_secrets_of_their_own() -> None:
    plugin = Plugin("per-node", ("a", "b"), identity="node")
    made = objects(replace(ALL, plan=replace(ALL.plan, plugins=(plugin,))))
    allowed = {
        right[3] for right in rights(made, "r1-aggregator") if right[:2] == ("secrets", "get")
    }
    assert {names.entry_name("r1", key) for key in plugin.keys} == allowed


def test_our_containers_may_write_the_conditions_of_adapters_and_nothing_else() -> None:
    """Where a definition names an account of its own, that one's rights hold."""
    jobs = {
        names.entry_name("r1", key)
        for plugin in ALL.plan.plugins
        for key in plugin.keys
        if ALL.launch.definition(plugin.name).contract == "result-file" and plugin.name != "own"
    }
    reading = {("pods", "get", "", "*"), ("pods", "watch", "", "*")}
    writing = {("jobs/status", verb, "batch", name) for verb in ("get", "patch") for name in jobs}
    assert reading | writing == rights(objects(ALL), "r1-plugin")
    only_seeing = {("jobs/status", "get", "batch", name) for name in jobs}
    assert reading | only_seeing == rights(
        objects(SITUATIONS["no conditions on Jobs"]), "r1-plugin"
    )


def test_a_run_without_adapters_has_no_right_to_a_job() -> None:
    """An empty list of names would allow all of them."""
    options = options_of(definition("Sonobuoy's systemd-logs"))
    assert {"pods"} == {right[0] for right in rights(objects(options), "r1-plugin")}


def test_accounts_that_are_there_are_bound_and_not_made() -> None:
    made = objects(SITUATIONS["accounts of others"])
    assert "ServiceAccount" not in [each["kind"] for each in made]
    for name, account in (("r1-aggregator", "theirs"), ("r1-plugin", "mine")):
        (subject,) = one(made, "RoleBinding", name)["subjects"]
        assert (account, NAMESPACE) == (subject["name"], subject["namespace"])
    assert "theirs" == pod_of(SITUATIONS["accounts of others"])["serviceAccountName"]
    assert "imagePullSecrets" not in pod_of(SITUATIONS["accounts of others"])


def test_no_plugin_gets_the_token_of_our_containers() -> None:
    made = objects(ALL)
    assert False is one(made, "ServiceAccount", "r1-plugin")["automountServiceAccountToken"]
    assert True is pod_of(ALL)["automountServiceAccountToken"]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_services_and_policies_find_the_aggregator_and_no_plugin(situation: str) -> None:
    options = SITUATIONS[situation]
    made = objects(options)
    own = one(made, "Job")["spec"]["template"]["metadata"]
    found = [each["spec"]["selector"] for each in made if each["kind"] == "Service"]
    found.append(one(made, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"])
    for selector in found:
        assert selector.items() <= own["labels"].items()
        assert "status-aggregator" in selector.values()
    assert "aggregator" == own["labels"]["sonobuoy-component"]


def test_the_status_port_is_open_only_where_somebody_asked_for_it() -> None:
    def ports(situation: str) -> list[str]:
        rules = one(objects(SITUATIONS[situation]), "NetworkPolicy")["spec"]["ingress"]
        return [port["port"] for rule in rules for port in rule["ports"]]

    assert ["workers"] == ports("as it is")
    assert ["workers", "status"] == ports("access from outside")


def test_access_from_outside() -> None:
    """A Service of that type, certificates from a Secret, and probes that speak TLS."""
    made = objects(SITUATIONS["access from outside"])
    assert "NodePort" == one(made, "Service", "r1-status")["spec"]["type"]
    assert {"ca.crt", "tls.crt", "tls.key"} == set(one(made, "Secret", "r1-status")["data"])
    balanced = objects(SITUATIONS["a load balancer"])
    assert "LoadBalancer" == one(balanced, "Service", "r1-status")["spec"]["type"]
    (container,) = pod_of(SITUATIONS["access from outside"])["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert "HTTPS" == container[probe]["httpGet"]["scheme"]
    assert "b'key'" not in repr(TLS)


@pytest.mark.parametrize("situation", ["a class and a node", "a Job that ends"])
def test_the_state_is_on_a_volume(situation: str) -> None:
    options = SITUATIONS[situation]
    claim = one(objects(options), "PersistentVolumeClaim")["spec"]
    assert "10Gi" == claim["resources"]["requests"]["storage"]
    assert (options.storage_class or None) == claim.get("storageClassName")
    assert (options.node_selector or None) == pod_of(options).get("nodeSelector")
    mounted = {"name": "data", "persistentVolumeClaim": {"claimName": "r1"}}
    assert mounted in pod_of(options)["volumes"]


@pytest.mark.parametrize("situation", ["without a volume", "a Job that ends, without a volume"])
def test_without_a_volume_the_state_is_in_the_pod(situation: str) -> None:
    assert {"name": "data", "emptyDir": {}} in pod_of(SITUATIONS[situation])["volumes"]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_no_two_pods_of_an_aggregator_work_at_once(situation: str) -> None:
    """The next one is made when the one before has ended."""
    spec = one(objects(SITUATIONS[situation]), "Job")["spec"]
    assert ("Failed", 1, 1) == (
        spec["podReplacementPolicy"],
        spec.get("parallelism", 1),
        spec.get("completions", 1),
    )


@pytest.mark.parametrize("situation", ["as it is", "without a volume"])
def test_an_aggregator_that_is_to_stay_is_started_again_and_again(situation: str) -> None:
    """In its Pod, which keeps the state; no failure is final, and no time limit ends it."""
    spec = one(objects(SITUATIONS[situation]), "Job")["spec"]
    assert "OnFailure" == spec["template"]["spec"]["restartPolicy"]
    assert 2**31 - 1 == spec["backoffLimit"]
    assert {"podFailurePolicy", "activeDeadlineSeconds", "ttlSecondsAfterFinished"}.isdisjoint(spec)


def test_a_run_that_ends_is_a_job_whose_exit_code_is_the_verdict() -> None:
    """No second Pod follows a verdict; one that ended otherwise is replaced, if it has a volume."""
    made = objects(SITUATIONS["a Job that ends"])
    spec = one(made, "Job")["spec"]
    final, _ = spec["podFailurePolicy"]["rules"]
    assert (6, "FailJob", [1, 2]) == (
        spec["backoffLimit"],
        final["action"],
        final["onExitCodes"]["values"],
    )
    env = pod_of(SITUATIONS["a Job that ends"])["containers"][0]["env"]
    assert {"name": "EXIT_WHEN_FINISHED", "value": "true"} in env
    assert "Never" == pod_of(SITUATIONS["a Job that ends"])["restartPolicy"]
    spec = one(objects(SITUATIONS["a Job that ends, without a volume"]), "Job")["spec"]
    assert (0, False) == (spec["backoffLimit"], "podFailurePolicy" in spec)


def test_the_url_of_an_upload_is_in_its_secret_and_nowhere_else() -> None:
    """Which only the aggregator mounts; a store with a public certificate needs no CA."""
    options = SITUATIONS["an upload"]
    made = objects(options)
    secret = one(made, "Secret", "r1-upload")
    data = {name: base64.b64decode(value) for name, value in secret["data"].items()}
    assert {"url": b"https://store/k?SIGNED", "ca.crt": b"ca"} == data
    others = [each for each in made if each is not secret]
    for shown in (json.dumps(others), repr(options)):
        assert "SIGNED" not in shown
        assert secret["data"]["url"] not in shown
    container = pod_of(options)["containers"][0]
    files = {each["name"]: each.get("value") for each in container["env"]}
    assert ("/run/upload/url", "/run/upload/ca.crt") == (
        files["UPLOAD_URL_FILE"],
        files["UPLOAD_CA"],
    )
    mount = {"name": "upload", "mountPath": "/run/upload", "readOnly": True}
    assert mount in container["volumeMounts"]
    assert "r1-upload" in json.dumps(pod_of(options)["volumes"])
    public = replace(ALL, upload=UploadTo(url="https://store/k"))
    assert ["url"] == [*one(objects(public), "Secret", "r1-upload")["data"]]
    assert "UPLOAD_CA" not in json.dumps(pod_of(public))


def test_a_drained_node_costs_no_run_its_verdict() -> None:
    """The next Pod of the aggregator's Job has its state."""
    (_, rule) = one(objects(replace(ALL, exit=True)), "Job")["spec"]["podFailurePolicy"]["rules"]
    assert "Ignore" == rule["action"]
    assert [{"type": "DisruptionTarget", "status": "True"}] == rule["onPodConditions"]


def test_the_platform_gives_groups_where_it_wants_to() -> None:
    assert 65532 == pod_of(ALL)["securityContext"]["fsGroup"]
    assert "securityContext" not in pod_of(SITUATIONS["users from the platform"])


@pytest.mark.parametrize(
    ("situations", "level"),
    [
        (["restricted adapter"], "restricted"),
        (["restricted adapter", "adapter that mounts nothing"], "baseline"),
        (list(YAML), "privileged"),
    ],
)
def test_a_namespace_of_its_own_has_the_level_that_the_definitions_need(
    situations: list[str], level: str
) -> None:
    definitions = [definition(situation) for situation in situations]
    options = replace(options_of(*definitions), create_namespace=True)
    namespace = one(objects(options), "Namespace", NAMESPACE)["metadata"]
    assert level == namespace["labels"]["pod-security.kubernetes.io/enforce"]
    assert {CREATED_BY: "r1"} == namespace["annotations"]


def test_the_launch_of_a_run_is_told_in_one_place() -> None:
    """The aggregator's image is that of our containers beside the plugins."""
    (container,) = pod_of(ALL)["containers"]
    assert (CONTAINER, ALL.launch.image) == (container["name"], container["image"])
    assert STATUS_PORT in [each["containerPort"] for each in container["ports"]]
