"""Snapshots of a FakeKube over TLS: what is there, what is said to be missing, what is nowhere."""

import json
from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.fakekube import Answer, FakeKube, Rule, make_job, make_pod
from tests.fakekube.kinds import Kind
from tests.integration.collect.scene import Take, on_request

SECRET = "hunter2-PLANTED"
PODS = 1_100  # three pages


@pytest.fixture(scope="module")
def crowded() -> Iterator[FakeKube]:
    """A server with more Pods than fit a page; no test changes what is there."""
    with FakeKube(role="admin") as fake:
        job = make_job("crowd")
        for number in range(PODS):
            space = "a" if number % 2 else "b"
            pod = make_pod(job, name=f"pod-{number:04}", uid=f"uid-{number}")
            pod["metadata"]["namespace"] = space
            fake.create_pod(pod)
        yield fake


def on_continue(fake: FakeKube, path: str, then: Callable[[], None], times: int) -> None:
    """The same for a further page."""
    on_request(fake, lambda each: path in each.path and "continue" in each.query, then, times)


def forget(fake: FakeKube) -> None:
    """Let lists that were begun before be too old to go on."""
    fake.store.version += 1
    fake.store.compact()


def test_l12_all_of_a_large_cluster_with_all_its_faults(crowded: FakeKube, take: Take) -> None:
    """Pages, 429, a group that is away, two kinds with one plural: the index tells of each."""
    metrics = [{"metadata": {"name": f"pod-{n}", "namespace": "a"}, "usage": {}} for n in range(3)]
    crowded.offered.serve(Kind("PodMetrics", "metrics.k8s.io", "pods", version="v1beta1"), metrics)
    crowded.offered.broken["broken.example.com"] = "v1"
    crowded.fail(Answer(429, {"Retry-After": "0"}), path="/pods", times=2)
    taken = take(crowded)
    names = [
        each["metadata"]["name"]
        for space in "ab"
        for each in taken.list(f"ns/{space}/core_v1_pods.json")
    ]

    assert taken.failure is None
    assert PODS == len(names) == len(set(names)) == taken.said("pods")["count"]
    assert ["PodMetrics"] * 3 == [
        each["kind"] for each in taken.list("ns/a/metrics.k8s.io_v1beta1_pods.json")
    ]
    assert ("v1", "Pod") == tuple(
        taken.list("ns/a/core_v1_pods.json")[0][name] for name in ("apiVersion", "kind")
    )
    (trouble,) = taken.index["groupErrors"]
    assert ("broken.example.com", False) == (trouble["group"], taken.index["complete"])
    assert {"truncated", "error", "inconsistent"}.isdisjoint(taken.said("pods"))
    assert "v1.34.4" == json.loads(taken.files["serverversion.json"])["gitVersion"]
    assert "pods" in take.told
    assert not crowded.requests("GET", "/secrets")


def test_a_list_that_takes_too_long(crowded: FakeKube, take: Take) -> None:
    """It goes on, and says that it is not of one moment."""
    on_continue(crowded, "/api/v1/pods", lambda: forget(crowded), 1)
    taken = take(crowded, resources="pods.core")
    crowded.clear_faults()
    said = taken.said("pods")
    names = [
        each["metadata"]["name"]
        for space in "ab"
        for each in taken.list(f"ns/{space}/core_v1_pods.json")
    ]

    assert PODS == said["count"] == len(set(names)) == len(names)
    assert said["inconsistent"]
    assert "error" not in said


@pytest.mark.parametrize("times", [1, 2])
def test_a_list_that_cannot_go_on(crowded: FakeKube, take: Take, times: int) -> None:
    """Without a token for another moment it begins again once; then what is there is kept."""
    further = lambda each: "/api/v1/pods" in each.path and "continue" in each.query  # noqa: E731
    crowded.fail(Answer(410), where=further, nth=2, times=times)
    taken = take(crowded, resources="pods.core")
    crowded.clear_faults()
    said = taken.said("pods")
    names = [
        each["metadata"]["name"]
        for path in taken.files
        if path.endswith("/core_v1_pods.json")
        for each in taken.list(path.removeprefix("resources/"))
    ]

    assert said["count"] == len(set(names)) == len(names)
    assert said["bytes"] == sum(len(taken.files[path]) for path in taken.files if "_pods" in path)
    assert (times == 1) is (PODS == said["count"]) is ("error" not in said)


@pytest.mark.parametrize(
    ("wished", "words"),
    [
        ({"resource_mib": "1"}, "resource size limit reached"),
        ({"total_mib": "1"}, "size limit reached"),
    ],
)
def test_caps(crowded: FakeKube, take: Take, wished: Mapping[str, str], words: str) -> None:
    """What was written before stays, and the index says why there is no more."""
    taken = take(crowded, resources="pods.core", **wished)
    said = taken.said("pods")

    assert (words, False) == (said["truncated"], taken.index["complete"])
    assert 0 < said["count"] == len(taken.list("ns/a/core_v1_pods.json")) < PODS
    assert said["bytes"] <= 2**20


def test_a_server_that_ignores_the_limit(fake: FakeKube, take: Take) -> None:
    """A list that would take more memory than the plugin has is left out."""
    listed = b'{"kind":"PodList","metadata":{"a":"%s"}}' % (b"x" * 9 * 2**20)
    fake.fail(Answer(body=listed), path="/api/v1/pods", times=None)
    taken = take(fake, resources="pods.core,namespaces")

    assert "the response is larger than 8388608 bytes" in taken.said("pods")["error"]
    assert "error" not in taken.said("namespaces")


def test_told_to_end(crowded: FakeKube, take: Take) -> None:
    """What is there is delivered, and what is missing is said."""
    on_continue(crowded, "/api/v1/pods", take.stop.request, 1)
    taken = take(crowded, resources="pods.core,nodes,jobs")
    crowded.clear_faults()

    assert taken.failure is None
    assert ("terminated", False) == (taken.index["stopped"], taken.index["complete"])
    assert "terminated" == taken.said("pods")["truncated"]
    assert 0 < len(taken.list("ns/a/core_v1_pods.json")) < PODS


def planted(fake: FakeKube) -> None:
    """Hide a secret wherever objects may have one."""
    variable = [{"name": "A", "value": SECRET}]
    pod = make_pod(make_job("j"), name="pod")
    pod["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"data": SECRET})
    }
    for sort in ("containers", "initContainers"):
        pod["spec"][sort][0] |= {"env": variable, "args": [f"--url=https://u:{SECRET}@host/"]}
    fake.create_pod(pod)
    spec = pod["spec"]
    for kind in ("Job", "Deployment", "StatefulSet"):
        fake.store.create(kind, {"metadata": {"name": "x"}, "spec": {"template": {"spec": spec}}})
    nested = {"jobTemplate": {"spec": {"template": {"spec": spec}}}}
    fake.store.create("CronJob", {"metadata": {"name": "x"}, "spec": nested})
    data = {"url": f"amqp://u:{SECRET}@h/", "spec": json.dumps({"env": {"A": SECRET}})}
    fake.store.create("ConfigMap", {"metadata": {"name": "x"}, "data": data})
    message = f"cannot pull from https://u:{SECRET}@host/image"
    fake.store.create("Event", {"metadata": {"name": "x"}, "message": message})
    fake.store.create(
        "Secret",
        {"metadata": {"name": "x", "annotations": {"a": SECRET}}, "stringData": {"a": SECRET}},
    )
    fake.store.logs["default", "pod", "adapter"] = f"GET https://u:{SECRET}@h/\n\xff".encode(
        "latin-1"
    )
    kind = Kind("Widget", "example.com", "widgets", version="v2")
    fake.offered.serve(kind, [{"metadata": {"name": "w"}, "spec": {"extraEnv": {"A": SECRET}}}])


def test_l12_planted_secrets_are_in_no_byte(fake: FakeKube, take: Take) -> None:
    """Not in a file, not in the archive; Secrets are there with their names alone."""
    planted(fake)
    taken = take(fake, secrets="metadata", pod_logs="true")
    (secret,) = taken.list("ns/default/core_v1_secrets.json")

    assert taken.index["complete"], taken.index
    assert not [name for name, data in taken.files.items() if SECRET.encode() in data]
    assert SECRET.encode() not in taken.packed
    assert {"apiVersion", "kind", "metadata"} == set(secret)
    assert b"GET https://[redacted]@h/\n\xff" == taken.files["podlogs/default/pod/logs/adapter.txt"]
    redacted = {each["resource"] for each in taken.index["resources"] if each["redacted"]}
    assert redacted >= {"pods", "jobs", "deployments", "configmaps", "events", "secrets", "widgets"}


def test_logs_of_init_containers_and_of_those_before_a_restart(fake: FakeKube, take: Take) -> None:
    """A Pod without logs costs the others nothing; of a long log the end is kept."""
    job = make_job("j")
    fake.create_pod(make_pod(job, name="silent", uid="1"))
    pod = make_pod(job, name="loud", uid="2", restarts=2)
    fake.create_pod(pod)
    for container in ("adapter", "status-reporter"):
        fake.store.logs["default", "loud", container] = (
            b"x" * 63 + b"\n"
        ) * 99 + container.encode()
    taken = take(fake, pod_logs="true", log_kib="1")
    home = "podlogs/default/loud/logs"
    logs = {name: data for name, data in taken.files.items() if name.startswith("podlogs/")}

    assert {
        f"{home}/adapter.txt",
        f"{home}/adapter.previous.txt",
        f"{home}/status-reporter.txt",
    } == set(logs)
    assert all(data.startswith(b"x" * 63 + b"\n") for data in logs.values())
    assert logs[f"{home}/adapter.txt"].endswith(b"x\nadapter")
    assert all(1024 - 64 < len(data) <= 1024 for data in logs.values())
    assert "of each log the newest 1 KiB are kept" == taken.index["podlogs"]["truncated"]


@pytest.mark.parametrize("apart", [b"\n", b" ", b""], ids=["line", "word", "nothing"])
def test_a_log_that_is_cut_within_a_credential(fake: FakeKube, take: Take, apart: bytes) -> None:
    """Without its `://` nobody could tell what it is."""
    fake.create_pod(make_pod(make_job("j"), name="pod"))
    rest = b"y" * (1024 - len(f"{SECRET}@h/") - len(apart))
    log = b"x" * 1000 + f"GET https://u:{SECRET}@h/".encode() + apart + rest
    fake.store.logs["default", "pod", "adapter"] = log
    taken = take(fake, pod_logs="true", log_kib="1")

    assert (rest if apart else None) == taken.files.get("podlogs/default/pod/logs/adapter.txt")
    assert "of each log the newest 1 KiB are kept" == taken.index["podlogs"]["truncated"]


@pytest.mark.parametrize("ending", [False, True], ids=["list", "time"])
def test_logs_from_before_the_list_of_pods_broke_off(
    crowded: FakeKube, take: Take, ending: bool
) -> None:
    """They are there, and so the index counts them."""
    for name in ("pod-0001", "pod-0003"):
        crowded.store.logs["a", name, "adapter"] = b"said\n"
    where = lambda entry: "continue" in entry.query  # noqa: E731
    if ending:
        on_continue(crowded, "/api/v1/pods", take.stop.request, 1)
    else:
        crowded.fail(Answer(403), path="/api/v1/pods", where=where, times=None)
    taken = take(crowded, resources="nodes", pod_logs="true")
    crowded.clear_faults()
    crowded.store.logs.clear()
    said = taken.index["podlogs"]

    written = [data for name, data in taken.files.items() if name.startswith("podlogs/")]
    assert (len(written), sum(map(len, written))) == (said["count"], said["bytes"])
    if ending:
        assert "terminated" == said["truncated"]
    else:
        assert (2, True) == (said["count"], "error" in said)


def test_what_kubelets_say(fake: FakeKube, take: Take) -> None:
    """One that does not answer is told, and the other is there."""
    for name in ("n1", "n2"):
        fake.store.create("Node", {"metadata": {"name": name}})
    config = {"kubeletconfig": {"url": f"https://u:{SECRET}@h/"}}
    fake.fail(Answer(body=config), path="/nodes/n1/proxy/configz")
    fake.fail(Answer(body=b"ok"), path="/nodes/n1/proxy/healthz")
    fake.fail(Answer(404), path="/nodes/n2/proxy/", times=None)
    taken = take(fake, kubelet="true")

    assert {"status": 200} == json.loads(taken.files["hosts/n1/healthz.json"])
    assert b"[redacted]" in taken.files["hosts/n1/configz.json"]
    assert "n2" in taken.index["hosts"]["error"]
    assert 2 == taken.index["hosts"]["count"]


def test_without_any_right(fake: FakeKube, take: Take) -> None:
    """It is a failure, with the server's words."""
    fake.tokens.roles["none"] = (Rule(("get",), ("nothing",)),)
    fake.write_token(fake.token("none"))
    taken = take(fake)

    assert taken.failure is not None
    assert "snapshot_failed" == taken.failure.cause
    assert "cannot list resource" in taken.failure.text
