"""What a plugin and our container are told: variables, and files of the configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.plugin_launches import definition, launch_of
from tests.unit.launch.job_parts import container, environ, made, made_of, mounts, pod_of, volume


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
        "SONOBUOY_PROGRESS_PORT": "8101",
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
