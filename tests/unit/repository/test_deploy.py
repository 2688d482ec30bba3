"""deploy/: rights, the components, the aggregator and the examples, read as plain YAML.

What kustomize makes of them is tested in tests/cluster/test_deploy.py.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from reporter.aggregator.certificates.export import secrets
from reporter.aggregator.certificates.run import issue_run
from reporter.core.condition import Attempt
from reporter.core.event import build_event
from reporter.core.rows import Report
from reporter.core.run.plan import Plan, parse_plan
from reporter.kube.api import KubeApi
from reporter.link.environment import VARIABLES
from reporter.settings import aggregator
from reporter.settings.sidecar import Settings
from tests.fakekube import Entry, FakeKube, make_job, make_pod

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
FORMS = {"native": "initContainers", "classic": "containers"}


def load(path: str) -> dict:
    """Read the one object of the file at PATH below deploy/."""
    return yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8"))


def rights(role: dict) -> set[tuple[str, str, str]]:
    """List what a Role allows as (API group, resource, verb)."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def right(entry: Entry) -> tuple[str, str, str]:
    """Name the right that a request needs, as (API group, resource, verb)."""
    words = entry.path.strip("/").split("/")
    group = words[1] if words[0] == "apis" else ""
    _, _, resource, *rest = words[words.index("namespaces") :]
    name, *subresource = [*rest, ""]
    verb = {"GET": "get" if name else "list", "PATCH": "patch", "POST": "create"}[entry.method]
    return (
        group,
        "/".join([resource, *filter(None, subresource)]),
        "watch" if entry.is_watch else verb,
    )


@pytest.fixture(params=FORMS)
def form(request) -> str:
    """Each form of the reporter in turn."""
    return request.param


@pytest.fixture
def pod(form) -> dict:
    """The Pod spec that the component of the form adds."""
    return load(f"components/{form}/job.yaml")["spec"]["template"]["spec"]


@pytest.fixture
def container(form, pod) -> dict:
    """The container that the component of the form adds."""
    (added,) = pod[FORMS[form]]
    return added


Requests = dict[str, Callable[[KubeApi], object]]


def watched(api: KubeApi) -> None:
    """Open a watch and read its first event."""
    with closing(api.watch_pod("default", "pod")) as watch:
        next(iter(watch))


EVENT = build_event(
    Report("R", "True", "AllGood", "fine"),
    Attempt("pod", "pod-uid", None, 0.0),
    0.0,
    namespace="default",
    job_name="job",
    job_uid="uid",
    condition_type="Available",
)
SIDECAR: Requests = {
    "get_pod": lambda api: api.get_pod("default", "pod"),
    "get_job": lambda api: api.get_job("default", "job"),
    "patch_job_status": lambda api: api.patch_job_status("default", "job", {"status": {}}),
    "watch_pod": watched,
    "create_event": lambda api: api.create_event("default", EVENT),
}
AGGREGATOR: Requests = {
    "annotate_pod": lambda api: api.annotate_pod("default", "pod", {"a": "b"}),
}
PEOPLE = {"list_pods", "list_jobs", "watch_jobs", "list_events", "view_job", "read_log"}
"""What the command-line tool asks with rights of their own: deploy/ grants none of it."""


def asked(requests: Requests) -> set[tuple[str, str, str]]:
    """Make the requests and list the rights they need."""
    with FakeKube() as fake:
        job = fake.create_job(make_job("job"))
        fake.create_pod(make_pod(job, name="pod"))
        fake.write_token(fake.token("admin"))
        api = KubeApi.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
        with closing(api):
            for request in requests.values():
                request(api)
        return {right(entry) for entry in fake.requests()}


class TestRole:
    """deploy/base/role.yaml."""

    def test_allows_what_the_code_asks_for_and_nothing_more(self):
        """Each request of the sidecar needs a right of the Role; each right is needed."""
        assert asked(SIDECAR) == rights(load("base/role.yaml"))

    def test_every_request_is_looked_at(self):
        """A new method of kube.py has to be put where its right is granted, or is not."""
        others = {"close", "connect", "in_cluster", "from_kubeconfig", "hurry_after"}
        public = {name for name in vars(KubeApi) if not name.startswith("_")}

        assert public == SIDECAR.keys() | AGGREGATOR.keys() | PEOPLE | others

    def test_is_bound_to_the_account_of_the_components(self, pod):
        """Names in binding, account and components are one."""
        binding = load("base/rolebinding.yaml")
        account = load("base/serviceaccount.yaml")["metadata"]["name"]
        (subject,) = binding["subjects"]

        assert load("base/role.yaml")["metadata"]["name"] == binding["roleRef"]["name"]
        assert (account, account) == (subject["name"], pod["serviceAccountName"])


class TestComponents:
    """What deploy/components/ add to a Job."""

    def test_token_goes_to_the_reporter_only(self, pod, container):
        """Nothing is mounted by itself; the one token volume has one mount, where clients look."""
        (token,) = (volume["name"] for volume in pod["volumes"] if "projected" in volume)
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}

        assert pod["automountServiceAccountToken"] is False
        assert "/var/run/secrets/kubernetes.io/serviceaccount" == mounts[token]["mountPath"]

    def test_token_volume_holds_what_the_client_loads(self, pod):
        """Token, CA and namespace under their usual names, and the kubelet's choice of mode."""
        (volume,) = (volume["projected"] for volume in pod["volumes"] if "projected" in volume)
        token, ca, namespace = volume["sources"]

        assert "token" == token["serviceAccountToken"]["path"]
        assert 600 <= token["serviceAccountToken"]["expirationSeconds"]
        assert [{"key": "ca.crt", "path": "ca.crt"}] == ca["configMap"]["items"]
        assert "namespace" == namespace["downwardAPI"]["items"][0]["path"]
        assert "defaultMode" not in volume

    def test_form_is_always_set(self, form, container):
        """Told, a reporter without the right to read Pods knows its form too."""
        env = {variable["name"]: variable for variable in container["env"]}

        assert form == env["REPORTER_FORM"]["value"]
        assert ("Always" if form == "native" else None) == container.get("restartPolicy")

    def test_the_jobs_name_comes_from_a_label_that_every_version_sets(self, container):
        """A downward API label that is not there is empty: on 1.25 and 1.26 only this one is."""
        env = {variable["name"]: variable for variable in container["env"]}

        assert (
            "metadata.labels['job-name']" == (env["JOB_NAME"]["valueFrom"]["fieldRef"]["fieldPath"])
        )

    def test_service_links_stay_as_the_job_has_them(self, pod):
        """They are the whole Pod's, and the adapter may need its Services' variables."""
        assert "enableServiceLinks" not in pod

    def test_variables_are_settings_and_the_required_ones_are_there(self, container):
        """A name that the settings do not know would be set in vain."""
        names = {variable["name"] for variable in container["env"]}
        known = {name.upper() for name in Settings.model_fields}

        assert names <= known
        assert {"JOB_NAME", "JOB_NAMESPACE", "POD_NAME"} <= names

    def test_defaults_of_the_settings_fit(self, container):
        """Name, port and results directory are what the settings take when nothing is set."""
        fields = Settings.model_fields
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        results = Path(fields["results_path"].default).parent

        assert fields["reporter_container_name"].default == container["name"]
        assert fields["metrics_port"].default == container["ports"][0]["containerPort"]
        assert (str(results), True) == (
            mounts["results"]["mountPath"],
            mounts["results"]["readOnly"],
        )

    def test_restricted_profile(self, container):
        """What the restricted Pod security standard asks of a container, and a read-only root."""
        assert {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        } == container["securityContext"]

    def test_memory_is_limited_and_the_processor_is_not(self, container):
        """A throttled start would hold the adapter back in the native form."""
        assert {
            "requests": {"cpu": "50m", "memory": "48Mi"},
            "limits": {"memory": "64Mi"},
        } == container["resources"]

    def test_both_forms_are_one_container(self, form):
        """They differ in the form alone."""
        native, classic = (
            load(f"components/{name}/job.yaml")["spec"]["template"]["spec"] for name in FORMS
        )
        (one,), (other,) = native.pop("initContainers"), classic.pop("containers")
        del one["restartPolicy"]
        one["env"].pop(0)
        other["env"].pop(0)

        assert native == classic
        assert one == other


class TestExamples:
    """What deploy/examples/ show."""

    def test_job_asks_for_its_form(self, form):
        """The label is the one that the component selects."""
        labels = load(f"examples/{form}/job.yaml")["metadata"]["labels"]
        (patch,) = load(f"components/{form}/kustomization.yaml")["patches"]
        key, _, value = patch["target"]["labelSelector"].partition("=")

        assert {key: value} == labels
        assert form == value

    @pytest.mark.parametrize(
        "path",
        [
            "examples/native/job.yaml",
            "examples/classic/job.yaml",
            "examples/run/network.yaml",
            "examples/run/quota.yaml",
            "examples/run/storage.yaml",
        ],
    )
    def test_no_service_becomes_a_variable(self, path):
        """What is ours alone does not take its namespace's Services for settings."""
        assert load(path)["spec"]["template"]["spec"]["enableServiceLinks"] is False

    def test_adapter_writes_where_the_reporter_reads(self, form):
        """The adapter mounts the results volume at the same place, writable."""
        spec = load(f"examples/{form}/job.yaml")["spec"]["template"]["spec"]
        (adapter,) = spec["containers"]

        assert [{"name": "results", "mountPath": "/results"}] == adapter["volumeMounts"]
        assert "Never" == spec["restartPolicy"]


@pytest.fixture(scope="module")
def aggregator_pod() -> dict:
    """The aggregator's Pod template."""
    return load("aggregator/statefulset.yaml")["spec"]["template"]


@pytest.fixture(scope="module")
def collector(aggregator_pod) -> dict:
    """The aggregator's only container."""
    (found,) = aggregator_pod["spec"]["containers"]
    return found


@pytest.fixture(scope="module")
def variables(collector) -> dict:
    """The values of the aggregator's variables; those filled in from the Pod have none."""
    return {variable["name"]: variable.get("value") for variable in collector["env"]}


@pytest.fixture(scope="module")
def plan() -> Plan:
    """The run of the example."""
    return parse_plan(json.loads((DEPLOY / "aggregator/plan.json").read_text(encoding="utf-8")))


class TestAggregator:
    """deploy/aggregator."""

    def test_role_allows_what_the_code_asks_for_and_nothing_more(self):
        """One right, on one Pod: the StatefulSet's only one."""
        role = load("aggregator/role.yaml")
        (rule,) = role["rules"]

        assert asked(AGGREGATOR) == rights(role)
        assert [f"{load('aggregator/statefulset.yaml')['metadata']['name']}-0"] == (
            rule["resourceNames"]
        )

    def test_no_service_becomes_a_variable(self, aggregator_pod):
        """A Service of its namespace cannot set one of its variables."""
        assert aggregator_pod["spec"]["enableServiceLinks"] is False

    def test_role_is_bound_to_its_account(self, aggregator_pod):
        """Names in binding, account and Pod are one."""
        binding = load("aggregator/rolebinding.yaml")
        account = load("aggregator/serviceaccount.yaml")["metadata"]["name"]
        (subject,) = binding["subjects"]

        assert load("aggregator/role.yaml")["metadata"]["name"] == binding["roleRef"]["name"]
        assert (account, account) == (
            subject["name"],
            aggregator_pod["spec"]["serviceAccountName"],
        )

    def test_labels_lead_to_the_pod(self, aggregator_pod):
        """StatefulSet, Service, NetworkPolicy and Sonobuoy's tools find it."""
        labels = aggregator_pod["metadata"]["labels"].items()
        selectors = [
            load("aggregator/statefulset.yaml")["spec"]["selector"]["matchLabels"],
            load("aggregator/service.yaml")["spec"]["selector"],
            load("aggregator/networkpolicy.yaml")["spec"]["podSelector"]["matchLabels"],
            {"sonobuoy-component": "aggregator"},
        ]

        assert [True] * 4 == [selector.items() <= labels for selector in selectors]

    def test_one_process_has_the_volume(self):
        """Two would be refused by the lock; the Service is the one of the StatefulSet."""
        spec = load("aggregator/statefulset.yaml")["spec"]

        assert (1, load("aggregator/service.yaml")["metadata"]["name"]) == (
            spec["replicas"],
            spec["serviceName"],
        )

    def test_variables_are_settings_that_fit(self, variables):
        """What the settings do not know would be set in vain; with a namespace all are valid."""
        known = {variable.name for variable in aggregator.describe()}
        inside = {"POD_NAMESPACE": "space", "POD_NAME": "status-aggregator-0"}
        given = {
            name: inside[name] if value is None else value.replace("$(POD_NAMESPACE)", "space")
            for name, value in variables.items()
        }

        assert set(variables) <= known
        assert "space" == aggregator.load(given).pod_namespace

    def test_ports_are_those_that_are_listened_to(self, collector):
        """Container, Service and policy speak of the defaults, by name."""
        defaults = {variable.name: variable.default for variable in aggregator.describe()}
        listened = {
            "workers": int(defaults["LISTEN"].rpartition(":")[2]),
            "status": int(defaults["STATUS_LISTEN"].rpartition(":")[2]),
        }
        service = load("aggregator/service.yaml")["spec"]["ports"]
        rules = load("aggregator/networkpolicy.yaml")["spec"]["ingress"]

        assert listened == {port["name"]: port["containerPort"] for port in collector["ports"]}
        assert listened == {port["targetPort"]: port["port"] for port in service}
        assert set(listened) == {port["port"] for rule in rules for port in rule["ports"]}

    def test_what_is_written_is_on_the_volume(self, collector, variables):
        """State, results and the certificates that come out once all outlive the Pod."""
        mounts = {mount["name"]: mount["mountPath"] for mount in collector["volumeMounts"]}
        (claim,) = load("aggregator/statefulset.yaml")["spec"]["volumeClaimTemplates"]
        volume = Path(mounts[claim["metadata"]["name"]])

        for name in ("STATE", "OUTPUT", "EXPORT_SECRETS"):
            assert Path(variables[name]).is_relative_to(volume)
        assert mounts["plan"] == str(Path(variables["PLAN"]).parent)

    def test_restricted_profile(self, collector):
        """As the reporter: nothing but a user without rights and its volumes."""
        native = load("components/native/job.yaml")["spec"]["template"]["spec"]

        assert native["initContainers"][0]["securityContext"] == collector["securityContext"]

    def test_name_of_the_service_is_in_the_certificate(self, variables):
        """The name that workers are given, and the longer ones that they may be given."""
        service = load("aggregator/service.yaml")
        name, (port, _) = service["metadata"]["name"], service["spec"]["ports"]
        space = f"{name}.$(POD_NAMESPACE)"

        assert f"{name}:{port['port']}" == variables["ADVERTISE_ADDRESS"]
        assert [space, f"{space}.svc", f"{space}.svc.cluster.local"] == (
            variables["SERVER_NAMES"].split(",")
        )


class TestAggregatorLink:
    """deploy/components/aggregator-link."""

    @pytest.fixture
    def linked(self, form) -> dict:
        """What the component adds to the reporter."""
        pod = load(f"components/aggregator-link/{form}.yaml")["spec"]["template"]["spec"]
        (added,) = pod[FORMS[form]]
        return added

    def test_both_forms_get_the_same(self):
        """The files differ in where the reporter stands."""
        native, classic = (
            load(f"components/aggregator-link/{form}.yaml")["spec"]["template"]["spec"]
            for form in FORMS
        )

        assert native["initContainers"] == classic["containers"]

    def test_a_job_with_a_link_makes_one_attempt(self, form):
        """The aggregator keeps the first result, which a second attempt could not correct."""
        assert 0 == load(f"components/aggregator-link/{form}.yaml")["spec"]["backoffLimit"]

    def test_goes_to_the_container_of_the_form(self, container, linked):
        """A patch for a container of another name would add one."""
        assert container["name"] == linked["name"]

    def test_the_jobs_name_comes_from_a_label_that_every_version_sets(self, container):
        """A downward API label that is not there is empty: on 1.25 and 1.26 only this one is."""
        env = {variable["name"]: variable for variable in container["env"]}

        assert (
            "metadata.labels['job-name']" == (env["JOB_NAME"]["valueFrom"]["fieldRef"]["fieldPath"])
        )

    def test_service_links_stay_as_the_job_has_them(self, pod):
        """They are the whole Pod's, and the adapter may need its Services' variables."""
        assert "enableServiceLinks" not in pod

    def test_variables_are_settings_and_the_required_ones_are_there(self, linked):
        """Certificates are files: no key in the environment."""
        pems = {f"{name}_FILE" for name in ("CA_CERT", "CLIENT_CERT", "CLIENT_KEY")}
        names = {variable["name"] for variable in linked["env"]}

        assert pems | {"AGGREGATOR_URL", "RESULT_TYPE"} == names
        assert {name.removesuffix("_FILE") for name in names} <= set(VARIABLES.values())

    def test_address_is_the_service(self, linked, variables):
        """The one the server's certificate is made for."""
        (url,) = (v["value"] for v in linked["env"] if v["name"] == "AGGREGATOR_URL")

        assert f"https://{variables['ADVERTISE_ADDRESS']}" == url

    def test_files_are_keys_of_the_secrets(self, linked, plan):
        """What the aggregator exports is what is mounted and read."""
        (mount,) = linked["volumeMounts"]
        (first, *_) = exported(plan)
        files = {
            variable["value"] for variable in linked["env"] if variable["name"].endswith("_FILE")
        }

        assert {f"{mount['mountPath']}/{key}" for key in first["data"]} == files


def exported(plan: Plan) -> list[dict]:
    """The Secrets of a run."""
    return secrets(issue_run(plan, ["status-aggregator"], now=0.0))


class TestRunExample:
    """deploy/examples/run."""

    @pytest.fixture
    def jobs(self) -> list[dict]:
        """The Jobs of the example."""
        resources = load("examples/run/kustomization.yaml")["resources"]
        return [load(f"examples/run/{name}") for name in resources if name.endswith(".yaml")]

    def test_plan_expects_what_the_jobs_report(self, jobs, plan):
        """A plugin without a Job would be waited for, a Job without a plugin be refused."""
        labels = [job["spec"]["template"]["metadata"]["labels"] for job in jobs]

        assert [plugin.name for plugin in plan.plugins] == (
            [label["status-reporter.io/plugin"] for label in labels]
        )

    def test_each_job_mounts_the_certificates_of_its_plugin(self, jobs, plan):
        """By the names that the aggregator gives the Secrets."""
        mounted = {
            job["metadata"]["name"]: volume["secret"]["secretName"]
            for job in jobs
            for volume in job["spec"]["template"]["spec"]["volumes"]
        }
        made = {
            found["metadata"]["annotations"]["status-reporter.io/plugin"]: found["metadata"]["name"]
            for found in exported(plan)
        }

        assert made == mounted

    def test_adapters_never_see_the_key(self, jobs):
        """Results are all that they mount."""
        for job in jobs:
            (adapter,) = job["spec"]["template"]["spec"]["containers"]
            assert ["results"] == [mount["name"] for mount in adapter["volumeMounts"]]

    def test_nobody_has_to_beat_before_the_certificates_are_handed_out(self, plan):
        """A person does that, and may take longer than the two minutes of a first heartbeat."""
        assert not any(plugin.heartbeats for plugin in plan.plugins)


def test_plain_manifests_are_made_from_the_kustomize_files():
    """`make fmt` has been run after the last change below deploy/."""
    script = DEPLOY.parent / "scripts" / "plain_manifests.py"
    command = [sys.executable, str(script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stdout)
