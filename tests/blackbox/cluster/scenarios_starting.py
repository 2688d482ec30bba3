"""Situations in which the adapter cannot start: at first, or never."""

from __future__ import annotations

from typing import Any

from tests.bed.images import BUSYBOX_IMAGE
from tests.bed.node import Node
from tests.blackbox.cluster.scenarios_asked import GOOD, SAYS_NO_JOB, Scenario, explains
from tests.blackbox.scenarios.jobs import ADAPTER, REPORTER, beside, container, writes
from tests.blackbox.scenarios.run import Run, state
from tests.blackbox.scenarios.scenario import FALSE, Expected, reasons, result

KEY = {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "later", "key": "key"}}}
SHORT_WAIT = {"MAX_WAIT_TIME_SECONDS": "20"}

# What a person has to do.
CHECK_IMAGE = (
    "What to do: Check the image's name and tag, that the registry can be reached from the node, "
    "and imagePullSecrets."
)
CHECK_COMMAND = (
    "What to do: Check the container's command, working directory and hooks, or what the named "
    "init container needs."
)


def image_pull_failed(message: str) -> Expected:
    """Row W1: never final, because an image can still come."""
    return Expected("W1", FALSE, "AdapterImagePullFailed", message, final=False)


def _patience(run: Run) -> None:
    """The kubelet's own retries got their 60 seconds before anything was said."""
    assert run.history()[-1].at - run.pods()[0][0].at >= 60


def says_no_image(cause: str) -> tuple[str, ...]:
    """What a person is told of row W1."""
    return (
        f"problem: Available=False AdapterImagePullFailed: container 'adapter': {cause}",
        CHECK_IMAGE,
    )


def says_no_config(cause: str) -> tuple[str, ...]:
    """The same of row W2."""
    return (
        "problem: Available=False AdapterConfigError: container 'adapter': "
        f"CreateContainerConfigError: {cause} (may still change)",
        "What to do: Create the ConfigMap, Secret or key that the message names, or fix the "
        "reference.",
    )


def says_passed(row: str, limit: str, most: int) -> tuple[str, ...]:
    """What a person is told of a Job whose deadline was not the cause: never a longer one alone."""
    return (
        f"problem: Available=False {row}: ",
        f"; the Job's activeDeadlineSeconds ({limit}) passed (final)",
        "warning: The reporter may wait 5m0s, but the Job's activeDeadlineSeconds ends all work "
        f"after {limit}: that leaves little time to report an adapter that hangs.",
        f"What to do: Set MAX_WAIT_TIME_SECONDS to at most {most}, or the deadline to at least ",
    )


def _create_config_map(run: Run) -> None:
    """Somebody adds the missing ConfigMap after the reporter has named it."""
    run.wait_reason("AdapterConfigError")
    explains(run, *says_no_config(f'configmap "later-{run.form}" not found'))
    path = f"/api/v1/namespaces/{run.namespace}/configmaps"
    config_map = {"metadata": {"name": f"later-{run.form}"}, "data": {"key": "value"}}
    run.controlplane.request("POST", path, config_map)


def _own_config_map(job: dict[str, Any], form: str) -> None:
    """Each form waits for a ConfigMap of its own."""
    own = {"valueFrom": {"configMapKeyRef": {"name": f"later-{form}", "key": "key"}}}
    for each in job["spec"]["template"]["spec"]["containers"]:
        # New entries: the one of the scenario is shared by both forms, which begin side by side.
        each["env"] = [
            entry | own if entry["name"] == "KEY" else entry for entry in each.get("env", [])
        ]


def _failing_init_container(job: dict[str, Any], _: str) -> None:
    pod = job["spec"]["template"]["spec"]
    pod["initContainers"].append(beside(pod, "prepare", "sleep 1; exit 6"))
    assert [REPORTER, "prepare"] == [c["name"] for c in pod["initContainers"]]


def _absent_sidecar(job: dict[str, Any], _: str) -> None:
    pod = job["spec"]["template"]["spec"]
    proxy = beside(pod, "proxy", "sleep 600", image="localhost/absent:1", restartPolicy="Always")
    pod["initContainers"].append(proxy)


def _broken_sidecar(job: dict[str, Any], _: str) -> None:
    pod = job["spec"]["template"]["spec"]
    proxy = beside(pod, "proxy", "", restartPolicy="Always", command=["/no-such-program"])
    pod["initContainers"].append(proxy)


def _no_node(job: dict[str, Any], _: str) -> None:
    del job["spec"]["template"]["spec"]["nodeName"]


def _ask_while_no_node_takes_it(run: Run) -> None:
    """The test is the scheduler: first it says nothing, then why not, then it finds the node."""
    run.wait(run.pods, "a Pod")
    name = run.pod()["metadata"]["name"]
    beyond = (
        "warning: The reporter may wait 5m0s, but the Job's activeDeadlineSeconds ends all work "
        "after 2m0s: that leaves little time to report an adapter that hangs.",
        "What to do: Set MAX_WAIT_TIME_SECONDS to at most 110, or the deadline to at least 310.",
        "What to do: Compare what it requests (cpu, memory, node selector, tolerations, volumes) "
        "with what the nodes have (kubectl describe node).",
    )
    explains(run, "problem: Pod <pod> is pending: it cannot be scheduled yet.", *beyond)
    why = "0/1 nodes are available: 1 Insufficient memory."
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
    path = run.pod_path(name)
    merge = "application/strategic-merge-patch+json"
    request = run.controlplane.request
    request("PATCH", f"{path}/status", {"status": {"conditions": [refusal]}}, merge)
    explains(run, f"problem: Pod <pod> is pending: it cannot be scheduled ({why}).", *beyond)
    target = {"apiVersion": "v1", "kind": "Node", "name": Node.name}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    request("POST", f"{path}/binding", binding)


def _absent_reporter(job: dict[str, Any], _: str) -> None:
    pod = job["spec"]["template"]["spec"]
    container(pod, REPORTER)["image"] = "localhost/absent:1"


def _ask_for_the_reporters_image(run: Run) -> None:
    run.wait(
        lambda: state(run.pod(), REPORTER).get("waiting", {}).get("reason") == "ErrImageNeverPull",
        "the reporter's missing image",
    )
    tail = " The adapter does not start before it." if run.form == "native" else ""
    explains(
        run,
        "problem: The reporter's container 'status-reporter' of Pod <pod> cannot pull its image "
        '(ErrImageNeverPull: Container image "localhost/absent:1" is not present with pull policy '
        f"of Never).{tail}",
        CHECK_IMAGE,
    )
    run.delete()


def _absent_volume(job: dict[str, Any], _: str) -> None:
    pod = job["spec"]["template"]["spec"]
    pod["volumes"].append({"name": "data", "configMap": {"name": "absent"}})
    container(pod, ADAPTER)["volumeMounts"].append({"name": "data", "mountPath": "/data"})


def _ask_for_the_volume(run: Run) -> None:
    """Only an event of the kubelet tells. On a busy node its first one is about its own cache."""
    run.wait(run.pods, "a Pod")
    uid = run.pod()["metadata"]["uid"]
    events = f"/api/v1/namespaces/{run.namespace}/events"
    query = f"?fieldSelector=reason=FailedMount,involvedObject.uid={uid}"
    run.controlplane.api.wait_for(
        events + query,
        lambda found: any("not found" in each["message"] for each in found["items"]),
    )
    explains(
        run,
        "problem: Pod <pod> is pending: a volume cannot be mounted (FailedMount: MountVolume.SetUp "
        'failed for volume "data" : configmap "absent" not found',
        "What to do: Create the ConfigMap, Secret or claim that is named, or check what else",
    )
    run.delete()


def _no_rights(job: dict[str, Any], _: str) -> None:
    job["spec"]["template"]["spec"]["serviceAccountName"] = "default"


def _ask_for_the_rights(run: Run) -> None:
    """Only the reporter's log tells."""
    run.wait(lambda: any("403 Forbidden" in str(line) for line in run.log()), "a refusal")
    # Its log is not asked for before the kubelet has told the API server that it runs.
    run.wait_running(REPORTER)
    explains(
        run,
        "problem: The reporter lacks permissions: the API server denies its requests.",
        'is forbidden: User "system:serviceaccount:<namespace>:default" cannot ',
        "What to do: Bind the Role of deploy/base to the Pod's service account "
        "(jobs/status: get, patch; pods: get, watch).",
    )
    run.delete()


def _nothing_was_written(run: Run) -> None:
    assert [] == run.history()


def unreported(name: str, **more: Any) -> Scenario:
    """Nobody writes a condition, so `explain` alone can tell; `act` asks, and deletes the Job."""
    never = Expected("", "", "", "")
    return Scenario(
        name, "sleep 60", never, judge=_nothing_was_written, explain=SAYS_NO_JOB, grace=1, **more
    )


NO_KEY = {
    "name": "KEY",
    "valueFrom": {"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "nothing"}},
}
REFUSED = {"image": "127.0.0.1:1/nobody/home:1", "imagePullPolicy": "Always"}
MALFORMED = {"image": "Not/An/Image:::", "imagePullPolicy": "IfNotPresent"}
THIRTY = {"activeDeadlineSeconds": 30}
"""The native form is told 11 to 16 s late why its adapter does not start."""
PASSED = r"; the Job's activeDeadlineSeconds \(30s\) passed"


STARTING = [
    # The slow ones first.
    Scenario(
        "image-pull-refused",
        writes(),
        image_pull_failed("container 'adapter': ErrImagePull: .*connection refused.*"),
        container=REFUSED,
        check=_patience,
        ends=False,
        seconds=180,
        explain=says_no_image("ErrImagePull: failed to pull and unpack image"),
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
        container={"env": [NO_KEY]},
        check=_patience,
        ends=False,
        seconds=180,
        explain=says_no_config(
            "couldn't find key nothing in ConfigMap <namespace>/kube-root-ca.crt"
        ),
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
        explain=GOOD,
    ),
    Scenario(
        "never-pull-absent-image",
        writes(),
        image_pull_failed("container 'adapter': ErrImageNeverPull: .*"),
        container={"image": "localhost/absent:1", "imagePullPolicy": "Never"},
        ends=False,
        explain=says_no_image(
            'ErrImageNeverPull: Container image "localhost/absent:1" is not present with pull '
            "policy of Never (may still change)"
        ),
    ),
    Scenario(
        "invalid-image-name",
        writes(),
        image_pull_failed("container 'adapter': InvalidImageName: .*"),
        container=MALFORMED,
        ends=False,
        explain=says_no_image(
            'InvalidImageName: Failed to apply default image tag "Not/An/Image:::": '
        ),
    ),
    Scenario(
        "job-deadline-while-the-image-is-refused",
        writes(),
        Expected(
            "W1",
            FALSE,
            "AdapterImagePullFailed",
            f"container 'adapter': ErrImagePull: .*connection refused.*{PASSED}",
        ),
        container=REFUSED,
        job=THIRTY,
        grace=5,
        explain=(*says_passed("AdapterImagePullFailed", "30s", 20), CHECK_IMAGE),
    ),
    Scenario(
        "job-deadline-with-an-invalid-image-name",
        writes(),
        Expected(
            "W1",
            FALSE,
            "AdapterImagePullFailed",
            f"container 'adapter': InvalidImageName: .*{PASSED}",
        ),
        container=MALFORMED,
        job=THIRTY,
        grace=5,
        explain=(*says_passed("AdapterImagePullFailed", "30s", 20), CHECK_IMAGE),
    ),
    Scenario(
        "job-deadline-without-a-config-map-key",
        writes(),
        Expected(
            "W2",
            FALSE,
            "AdapterConfigError",
            "container 'adapter': CreateContainerConfigError: couldn't find key nothing "
            f".*{PASSED}",
        ),
        container={"env": [NO_KEY]},
        job=THIRTY,
        grace=5,
        explain=(
            *says_passed("AdapterConfigError", "30s", 20),
            "What to do: Create the ConfigMap, Secret or key that the message names, or fix the "
            "reference.",
        ),
    ),
    Scenario(
        "pod-deadline-without-a-config-map-key",
        writes(),
        Expected(
            "W2",
            FALSE,
            "AdapterConfigError",
            "container 'adapter': CreateContainerConfigError: couldn't find key nothing "
            r".*; the Pod's activeDeadlineSeconds \(30s\) passed",
        ),
        container={"env": [NO_KEY]},
        pod=THIRTY,
        grace=5,
        explain=(
            "problem: Available=False AdapterConfigError: ",
            "What to do: Create the ConfigMap, Secret or key that the message names, or fix the "
            "reference.",
            "info:    Pod <pod> was terminated by its activeDeadlineSeconds.",
            "info:    Container 'adapter' of Pod <pod> was not running when the Pod was "
            "terminated.",
            "warning: The reporter may wait 5m0s, but the Pod's activeDeadlineSeconds ends all "
            "work after 30s",
        ),
    ),
    Scenario(
        "sidecar-before-the-adapter-without-an-image",
        writes(),
        image_pull_failed("init container 'proxy': ErrImageNeverPull: .*"),
        # In the classic form the kubelet starts no reporter before the sidecar runs.
        forms=("native",),
        change=_absent_sidecar,
        ends=False,
        explain=(
            "problem: Available=False AdapterImagePullFailed: init container 'proxy': "
            "ErrImageNeverPull: ",
            CHECK_IMAGE,
        ),
    ),
    Scenario(
        "sidecar-before-the-adapter-that-cannot-start",
        writes(),
        Expected(
            "W3",
            FALSE,
            "AdapterStartFailed",
            f"init container 'proxy': StartError: .*no-such.*{PASSED}",
        ),
        forms=("native",),
        job=THIRTY,
        grace=5,
        change=_broken_sidecar,
        explain=(*says_passed("AdapterStartFailed", "30s", 20), CHECK_COMMAND),
    ),
    Scenario(
        "command-not-found",
        "",
        Expected("W3", FALSE, "AdapterStartFailed", "container 'adapter': StartError: .*no-such.*"),
        container={"image": BUSYBOX_IMAGE, "command": ["/no-such-program"]},
        explain=(
            "problem: Available=False AdapterStartFailed: container 'adapter': StartError: ",
            "/no-such-program: no such file or directory",
            CHECK_COMMAND,
        ),
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
        explain=(
            "problem: Available=False AdapterStartFailed: init container 'prepare': exited with "
            "code 6: Error (final)",
            CHECK_COMMAND,
            "info:    Container 'prepare' of Pod <pod> ended: exit code 6 (Error).",
            "What to do: kubectl logs <pod> -n <namespace> -c prepare",
        ),
    ),
    Scenario(
        "no-node-at-first",
        f"sleep 1; {writes()}",
        result(),
        job={"activeDeadlineSeconds": 120},
        change=_no_node,
        act=_ask_while_no_node_takes_it,
        explain=(*GOOD, "The reporter may wait 5m0s, but the Job's activeDeadlineSeconds ends all"),
    ),
    unreported(
        "no-image-for-the-reporter", change=_absent_reporter, act=_ask_for_the_reporters_image
    ),
    unreported("missing-config-map-of-a-volume", change=_absent_volume, act=_ask_for_the_volume),
    unreported("no-rights-at-all", change=_no_rights, act=_ask_for_the_rights),
]
