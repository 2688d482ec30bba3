"""Where a plugin leaves its results: on a volume of its own, or on one that is added."""

from __future__ import annotations

from dataclasses import replace

from tests.plugin_launches import definition, launch_of
from tests.unit.launch.job_parts import (
    Object,
    container,
    environ,
    made,
    made_of,
    mounts,
    pod_of,
    volume,
)


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
