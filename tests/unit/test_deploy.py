"""deploy/: rights, the two components and the examples, read as plain YAML.

What kustomize makes of them is tested in tests/cluster/test_deploy.py.
"""

from contextlib import closing
from pathlib import Path

import pytest
import yaml

from reporter.kube import KubeApi
from reporter.settings.sidecar import Settings
from tests.fakekube import Entry, FakeKube, make_job, make_pod

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
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
    verb = {"GET": "get" if name else "list", "PATCH": "patch"}[entry.method]
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


class TestRole:
    """deploy/base/role.yaml."""

    def test_allows_what_the_code_asks_for_and_nothing_more(self):
        """Each request that kube.py can make needs a right of the Role; each right is needed."""
        with FakeKube() as fake:
            job = fake.create_job(make_job("job"))
            fake.create_pod(make_pod(job, name="pod"))
            api = KubeApi.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
            requests = {
                "get_pod": lambda: api.get_pod("default", "pod"),
                "get_job": lambda: api.get_job("default", "job"),
                "patch_job_status": lambda: api.patch_job_status("default", "job", {"status": {}}),
                "watch_pod": lambda: next(iter(watch)),
            }
            with closing(api), closing(api.watch_pod("default", "pod")) as watch:
                for request in requests.values():
                    request()
            asked = {right(entry) for entry in fake.requests()}

        others = {"close", "connect", "in_cluster"}
        public = {name for name in vars(KubeApi) if not name.startswith("_")}
        assert public == requests.keys() | others, "a new request: add it above"
        assert asked == rights(load("base/role.yaml"))

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

    def test_adapter_writes_where_the_reporter_reads(self, form):
        """The adapter mounts the results volume at the same place, writable."""
        spec = load(f"examples/{form}/job.yaml")["spec"]["template"]["spec"]
        (adapter,) = spec["containers"]

        assert [{"name": "results", "mountPath": "/results"}] == adapter["volumeMounts"]
        assert "Never" == spec["restartPolicy"]
