"""Situations in which the adapter cannot start: at first, or never."""

from __future__ import annotations

from typing import Any

from tests.bed.images import BUSYBOX_IMAGE
from tests.runs.jobs import REPORTER, beside, writes
from tests.runs.run import Run
from tests.runs.scenario import FALSE, Expected, Scenario, reasons, result

KEY = {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "key"}}}
SHORT_WAIT = {"MAX_WAIT_TIME_SECONDS": "20"}


def image_pull_failed(message: str) -> Expected:
    """Row W1: never final, because an image can still come."""
    return Expected("W1", FALSE, "AdapterImagePullFailed", message, final=False)


def _patience(run: Run) -> None:
    """The kubelet's own retries got their 60 seconds before anything was said."""
    assert run.history()[-1].at - run.pods()[0][0].at >= 60


def _create_config_map(run: Run) -> None:
    """Somebody adds the missing ConfigMap after the reporter has named it."""
    run.wait_reason("AdapterConfigError")
    path = f"/api/v1/namespaces/{run.namespace}/configmaps"
    config_map = {"metadata": {"name": f"later-{run.form}"}, "data": {"key": "value"}}
    run.controlplane.request("POST", path, config_map)


def _own_config_map(job: dict[str, Any], form: str) -> None:
    """Each form waits for a ConfigMap of its own."""
    for container in job["spec"]["template"]["spec"]["containers"]:
        for entry in container.get("env", []):
            if entry["name"] == "KEY":
                reference = {"name": f"later-{form}", "key": "key"}
                entry["valueFrom"] = {"configMapKeyRef": reference}


def _failing_init_container(job: dict[str, Any], _: str) -> None:
    pod = job["spec"]["template"]["spec"]
    pod["initContainers"].append(beside(pod, "prepare", "sleep 1; exit 6"))
    assert [REPORTER, "prepare"] == [c["name"] for c in pod["initContainers"]]


STARTING = [
    # The two slow ones first.
    Scenario(
        "image-pull-refused",
        writes(),
        image_pull_failed("container 'adapter': ErrImagePull: .*connection refused.*"),
        container={"image": "127.0.0.1:1/nobody/home:1", "imagePullPolicy": "Always"},
        check=_patience,
        ends=False,
        seconds=180,
    ),
    Scenario(
        "missing-config-map-key",
        writes(),
        Expected(
            "W2",
            FALSE,
            "AdapterConfigError",
            "container 'adapter': CreateContainerConfigError: couldn't find key nothing .*",
            final=False,
        ),
        container={
            "env": [
                {
                    "name": "KEY",
                    "valueFrom": {
                        "configMapKeyRef": {"name": "kube-root-ca.crt", "key": "nothing"}
                    },
                }
            ]
        },
        check=_patience,
        ends=False,
        seconds=180,
    ),
    Scenario(
        "config-map-comes-after-the-wait-time",
        f"sleep 1; {writes()}",
        result(before=reasons("AdapterConfigError")),
        settings=SHORT_WAIT,
        container={"env": [KEY]},
        change=_own_config_map,
        act=_create_config_map,
        seconds=180,
    ),
    Scenario(
        "never-pull-absent-image",
        writes(),
        image_pull_failed("container 'adapter': ErrImageNeverPull: .*"),
        container={"image": "localhost/absent:1", "imagePullPolicy": "Never"},
        ends=False,
    ),
    Scenario(
        "invalid-image-name",
        writes(),
        image_pull_failed("container 'adapter': InvalidImageName: .*"),
        container={"image": "Not/An/Image:::", "imagePullPolicy": "IfNotPresent"},
        ends=False,
    ),
    Scenario(
        "command-not-found",
        "",
        Expected("W3", FALSE, "AdapterStartFailed", "container 'adapter': StartError: .*no-such.*"),
        container={"image": BUSYBOX_IMAGE, "command": ["/no-such-program"]},
    ),
    Scenario(
        "another-init-container-fails",
        writes(),
        Expected(
            "W3",
            FALSE,
            "AdapterStartFailed",
            "init container 'prepare': exited with code 6: Error",
        ),
        # In the classic form the kubelet starts no reporter before the init containers are done.
        forms=("native",),
        change=_failing_init_container,
    ),
]
