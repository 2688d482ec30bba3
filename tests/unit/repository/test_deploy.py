"""deploy/: rights, the components, the aggregator and the examples, read as plain YAML.

What kustomize makes of them is tested in tests/blackbox/cluster/test_deploy.py.
"""

import re
from pathlib import Path

import pytest
import yaml

from reporter.sidecar.settings import Settings
from tests.unit.repository.manifests import (
    DEPLOY,
    FORMS,
    SIDECAR,
    asked,
    load,
    rights,
    whole_pods,
)


class TestRole:
    """deploy/base/role.yaml."""

    def test_allows_what_the_code_asks_for_and_nothing_more(self):
        """Each request of the sidecar needs a right of the Role; each right is needed."""
        assert asked(SIDECAR) == rights(load("base/role.yaml"))

    def test_what_administrators_of_a_namespace_get_is_a_part_of_it(self):
        """Which part they lack, is tested with the real role admin."""
        wider = load("base/clusterrole.yaml")

        assert rights(wider) < rights(load("base/role.yaml"))
        assert ["rbac.authorization.k8s.io/aggregate-to-admin"] == [
            label for label in wider["metadata"]["labels"] if "aggregate" in label
        ]

    def test_is_bound_to_the_account_of_the_examples(self, form):
        """Names in binding, account and examples are one."""
        pod = load(f"examples/{form}/job.yaml")["spec"]["template"]["spec"]
        binding = load("base/rolebinding.yaml")
        account = load("base/serviceaccount.yaml")["metadata"]["name"]
        (subject,) = binding["subjects"]

        assert load("base/role.yaml")["metadata"]["name"] == binding["roleRef"]["name"]
        assert (account, account) == (subject["name"], pod["serviceAccountName"])


class TestComponents:
    """What deploy/components/ add to a Job."""

    def test_the_account_is_the_jobs_own(self, form, pod):
        """And so is what its containers get of it; the examples give them nothing."""
        example = load(f"examples/{form}/job.yaml")["spec"]["template"]["spec"]

        assert not {"serviceAccountName", "automountServiceAccountToken"} & pod.keys()
        assert example["automountServiceAccountToken"] is False

    def test_token_goes_to_the_reporter_only(self, pod, container):
        """The one token volume has one mount, where clients look."""
        (token,) = (volume["name"] for volume in pod["volumes"] if "projected" in volume)
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}

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

    def test_variables_are_settings_and_the_required_ones_are_there(self, container):
        """A name that the settings do not know would be set in vain."""
        names = {variable["name"] for variable in container["env"]}
        known = {name.upper() for name in Settings.model_fields}

        assert names <= known
        assert {"JOB_NAME", "JOB_NAMESPACE", "POD_NAME"} <= names

    def test_defaults_of_the_settings_fit(self, container):
        """Name and results directory are what the settings take when nothing is set."""
        fields = Settings.model_fields
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        results = Path(fields["results_path"].default).parent

        assert fields["reporter_container_name"].default == container["name"]
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
        patch, other = load(f"components/{form}/kustomization.yaml")["patches"]
        key, _, value = patch["target"]["labelSelector"].partition("=")

        assert ("Job", "CronJob") == (patch["target"]["kind"], other["target"]["kind"])
        assert patch["target"]["labelSelector"] == other["target"]["labelSelector"]

        assert {key: value} == labels
        assert form == value

    def test_adapter_writes_where_the_reporter_reads(self, form):
        """The adapter mounts the results volume at the same place, writable."""
        spec = load(f"examples/{form}/job.yaml")["spec"]["template"]["spec"]
        (adapter,) = spec["containers"]

        assert [{"name": "results", "mountPath": "/results"}] == adapter["volumeMounts"]
        assert "Never" == spec["restartPolicy"]


def test_every_setting_can_be_uncommented():
    """In the plain Job with two containers, with its default."""
    shown = (DEPLOY / "plain" / "job-classic.yaml").read_text(encoding="utf-8")
    job = yaml.safe_load(re.sub(r"(?m)^( +)# (- name:|  value:)", r"\1\2", shown))
    (container, _) = job["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each.get("value", "x") for each in container["env"]}
    fixed = {
        name: given[name] for name in ("JOB_NAME", "JOB_NAMESPACE", "POD_NAME", "REPORTER_FORM")
    }

    assert {name.upper() for name in Settings.model_fields} == given.keys()
    assert Settings.read(fixed).model_dump() == Settings.read(given).model_dump()


@pytest.mark.parametrize(
    ("path", "pod"),
    [pytest.param(path, pod, id=f"{path}-{number}") for path, number, pod in whole_pods()],
)
def test_no_service_becomes_a_variable(path, pod):
    """What is ours alone does not take its namespace's Services for settings."""
    assert pod.get("enableServiceLinks") is False
