"""deploy/aggregator and deploy/plugins: the objects of a run, read as plain YAML."""

import json
from pathlib import Path

import pytest

from reporter.aggregator.certificates.export import secrets
from reporter.link.config import VARIABLES
from reporter.run.plan import Plan, parse_plan
from reporter.run.settings import Settings
from tests.aggregators.issued import issue_run
from tests.unit.repository.manifests import AGGREGATOR, DEPLOY, FORMS, asked, load, rights


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
        known = {variable.name for variable in Settings.described()}
        inside = {"POD_NAMESPACE": "space", "POD_NAME": "status-aggregator-0"}
        given = {
            name: inside[name] if value is None else value.replace("$(POD_NAMESPACE)", "space")
            for name, value in variables.items()
        }

        assert set(variables) <= known
        assert "space" == Settings.read(given).pod_namespace

    def test_ports_are_those_that_are_listened_to(self, collector):
        """Container, Service and policy speak of the defaults, by name."""
        defaults = {variable.name: variable.default for variable in Settings.described()}
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
