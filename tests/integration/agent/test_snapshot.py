"""Snapshots of a FakeKube over TLS: what is there, what is said to be missing, what is nowhere."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from reporter.agent.snapshot.collecting import Collecting
from reporter.agent.snapshot.limits import Course, Room
from reporter.agent.snapshot.task import snapshot
from reporter.agent.snapshot.tree import Site
from reporter.agent.task import Failure, Work
from reporter.core.launch.snapshot_plugin import snapshot_objects
from reporter.core.resources import Resource
from reporter.core.snapshot.choice import choose
from reporter.core.snapshot.options import read_options
from reporter.core.snapshot.rights import rights
from reporter.errors import Forbidden
from reporter.kube.api import KubeApi
from reporter.kube.discovery import discover
from reporter.kube.reading import Ask, Page, Reading, in_memory_first
from reporter.link import ResultSource
from tests.fakekube import Answer, Entry, FakeKube, Rule, make_job, make_pod
from tests.fakekube.api import target_of
from tests.fakekube.kinds import Kind
from tests.integration.agent.test_agent import contents

SECRET = "hunter2-PLANTED"
PODS = 1_100  # three pages


@pytest.fixture(scope="module")
def crowded() -> Iterator[FakeKube]:
    """A server with more Pods than fit a page; no test changes what is there."""
    with FakeKube() as fake:
        fake.write_token(fake.token("admin"))
        job = make_job("crowd")
        for number in range(PODS):
            space = "a" if number % 2 else "b"
            pod = make_pod(job, name=f"pod-{number:04}", uid=f"uid-{number}")
            pod["metadata"]["namespace"] = space
            fake.create_pod(pod)
        yield fake


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    with FakeKube() as fake:
        fake.write_token(fake.token("admin"))
        yield fake


class Taken:
    """What a snapshot has left, as its archive has it."""

    def __init__(self, folder: Path, failure: Failure | None) -> None:
        self.failure = failure
        with ResultSource.from_directory(folder).open() as packed:
            self.packed = b"".join(packed.pieces())
        self.files = contents(self.packed)
        self.index: Any = json.loads(self.files["resources/index.json"])

    def list(self, path: str) -> list[Any]:
        """Return the objects of a file."""
        found: list[Any] = json.loads(self.files[f"resources/{path}"])["items"]
        return found

    def said(self, name: str) -> dict[str, Any]:
        """Return what the index says of a resource, as `pods` or `pods.metrics.k8s.io`."""
        plural, _, group = name.partition(".")
        (found,) = (
            each
            for each in self.index["resources"]
            if (each["resource"], each["group"]) == (plural, group)
        )
        return found  # type: ignore[no-any-return]


class Take:
    """Takes snapshots of a server into a directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.stop = threading.Event()
        self.told: list[str] = []

    def __call__(self, fake: FakeKube, **variables: str) -> Taken:
        options, problems = read_options(
            {f"SNAPSHOT_{k.upper()}": v for k, v in variables.items() if v}
        )
        assert [] == problems
        api = KubeApi.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
        tell: Callable[[str, int, int], None] = lambda text, *_: self.told.append(text)  # noqa: E731
        try:
            failure = snapshot(options, Work(self._folder, {}, tell, self.stop), api)
        finally:
            api.close()
        return Taken(self._folder, failure)


@pytest.fixture
def take(tmp_path: Path) -> Take:
    return Take(tmp_path)


def on_request(
    fake: FakeKube, where: Callable[[Entry], bool], then: Callable[[], None], times: int
) -> None:
    """Do something just before the server answers such a request."""
    left = [times]

    def fits(entry: Entry) -> bool:
        if left[0] and where(entry):
            left[0] -= 1
            then()
        return False

    fake.fail(Answer(), where=fits, times=None)


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


@pytest.mark.parametrize(("times", "inconsistent"), [(1, False), (2, True)])
def test_a_list_that_takes_too_long(
    crowded: FakeKube, take: Take, times: int, inconsistent: bool
) -> None:
    """It is begun anew once; then it goes on, and says that it is not of one moment."""
    on_continue(crowded, "/api/v1/pods", lambda: forget(crowded), times)
    taken = take(crowded, resources="pods.core")
    crowded.clear_faults()
    said = taken.said("pods")
    names = [
        each["metadata"]["name"]
        for space in "ab"
        for each in taken.list(f"ns/{space}/core_v1_pods.json")
    ]

    assert PODS == said["count"] == len(set(names)) == len(names)
    assert inconsistent is said.get("inconsistent", False)
    assert "error" not in said


@pytest.mark.parametrize(
    ("wished", "words"),
    [
        ({"resource_mib": "1"}, "the resource is as large as it may be"),
        ({"total_mib": "1"}, "the snapshot is as large as it may be"),
    ],
)
def test_caps(crowded: FakeKube, take: Take, wished: Mapping[str, str], words: str) -> None:
    """What was written before stays, and the index says why there is no more."""
    taken = take(crowded, resources="pods.core", **wished)
    said = taken.said("pods")

    assert (words, False) == (said["truncated"], taken.index["complete"])
    assert 0 < said["count"] == len(taken.list("ns/a/core_v1_pods.json")) < PODS
    assert said["bytes"] <= 2**20


def test_told_to_end(crowded: FakeKube, take: Take) -> None:
    """What is there is delivered, and what is missing is said."""
    on_continue(crowded, "/api/v1/pods", take.stop.set, 1)
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
    for kind in ("Job", "Deployment", "DaemonSet", "StatefulSet"):
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
        on_continue(crowded, "/api/v1/pods", take.stop.set, 1)
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


def test_some_namespaces(fake: FakeKube, take: Take) -> None:
    """Chosen by their labels; what belongs to no namespace is there all the same."""
    fake.store.create("Namespace", {"metadata": {"name": "a", "labels": {"team": "x"}}})
    for space in ("a", "b"):
        meta = {"name": "m", "namespace": space}
        fake.store.create("ConfigMap", {"metadata": meta})
    taken = take(fake, namespace_selector="team=x")

    assert ["a"] == taken.index["namespaces"]
    assert "resources/ns/a/core_v1_configmaps.json" in taken.files
    assert "resources/cluster/core_v1_namespaces.json" in taken.files
    assert not any(name.startswith("resources/ns/b/") for name in taken.files)


class SmallPages:
    """Reads pages of at most so many bytes."""

    def __init__(self, reading: Reading, most: int) -> None:
        self._reading, self._most = reading, most

    def page(self, ask: Ask, *, spool: Callable[[], BinaryIO] = in_memory_first) -> Page:
        return self._reading.page(ask, most=self._most, spool=spool)


def test_a_page_that_is_too_large_is_asked_for_in_parts(fake: FakeKube, tmp_path: Path) -> None:
    """Large objects are no reason to miss any of them."""
    for number in range(70):
        data = {"a": "x" * 2000}
        fake.store.create("ConfigMap", {"metadata": {"name": f"m{number:02}"}, "data": data})
    api = KubeApi.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
    reading = api.reading()
    course = Course(lambda: False, time.monotonic() + 600)
    collecting = Collecting(
        SmallPages(reading, 60_000),
        Site(tmp_path, Room(2**30, 100), course),
        most=2**30,
        namespaces=None,
        gone=lambda _: False,
        spool=in_memory_first,
    )
    found = collecting.collect(Resource("", "v1", "configmaps", "ConfigMap", True))
    reading.close()
    api.close()

    assert (70, "", "") == (found.count, found.error, found.truncated)
    assert ["500", "50", "5"] == list(
        dict.fromkeys(each.query["limit"] for each in fake.requests("GET", "/configmaps"))
    )


def test_without_any_right(fake: FakeKube, take: Take) -> None:
    """It is a failure, with the server's words."""
    fake.tokens.roles["none"] = (Rule(("get",), ("nothing",)),)
    fake.write_token(fake.token("none"))
    taken = take(fake)

    assert taken.failure is not None
    assert "snapshot_failed" == taken.failure.cause
    assert "cannot list resource" in taken.failure.text


def as_rules(found: dict[str, Any]) -> Iterator[Rule]:
    """Read a Role or a ClusterRole."""
    space = found["metadata"].get("namespace")
    for each in found["rules"]:
        names, groups = each.get("resourceNames", ()), each["apiGroups"]
        only = () if space is None else (space,)
        yield Rule(
            tuple(each["verbs"]), tuple(each["resources"]), tuple(names), tuple(groups), only
        )


def grant(fake: FakeKube, **variables: str) -> list[Rule]:
    """Give the snapshot the account that `status-ctl run` would; return its rules."""
    options, _ = read_options({f"SNAPSHOT_{name.upper()}": v for name, v in variables.items()})
    api = KubeApi.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
    with closing(api), closing(api.reading()) as reading:
        found = discover(reading.document)
    granted = rights(choose(found.resources, options).chosen, options)
    made = snapshot_objects("first", "default", granted)
    rules = [
        rule for each in made if each["kind"] in {"Role", "ClusterRole"} for rule in as_rules(each)
    ]
    fake.tokens.roles["snapshot"] = rules
    fake.write_token(fake.token("snapshot"))
    fake.journal.clear()
    return rules


Right = tuple[str, str, str, str]


def granted_rights(rules: list[Rule]) -> set[Right]:
    """Return group, resource, verb and place of each; a right to one namespace is in that."""
    return {
        (group, resource, verb, place)
        for rule in rules
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
        for place in rule.namespaces or rule.names or ("",)
    }


def used_rights(fake: FakeKube) -> set[Right]:
    found = set()
    for entry in fake.requests("GET"):
        target = target_of(entry.path)
        if target is not None:
            plural = "/".join(filter(None, (target.resource, target.subresource)))
            own = target.name or "" if plural == "namespaces" else target.namespace
            found.add((target.group, plural, "get" if target.name else "list", own))
    return found


def spread(fake: FakeKube, *spaces: str) -> None:
    """Put a Pod that says something, a ConfigMap and a Secret into each namespace."""
    for space in spaces:
        fake.store.create("Namespace", {"metadata": {"name": space}})
        fake.create_pod(make_pod(make_job("j", space), name="pod", uid=f"pod-{space}"))
        fake.store.logs[space, "pod", "adapter"] = b"said\n"
        for kind in ("ConfigMap", "Secret"):
            fake.store.create(kind, {"metadata": {"name": "m", "namespace": space}})


@pytest.mark.parametrize("resources", ["", "pods,secrets,configmaps"], ids=["all", "namespaced"])
def test_chosen_namespaces_need_no_right_in_others(
    fake: FakeKube, take: Take, resources: str
) -> None:
    """The roles are enough, none of their rights is in vain, and Secrets elsewhere are refused."""
    spread(fake, "a", "b", "theirs")
    wished = {"namespaces": "b,a", "secrets": "metadata", "pod_logs": "true"}
    rules = grant(fake, resources=resources, **wished)
    taken = take(fake, resources=resources, **wished)
    used = used_rights(fake)
    api = KubeApi.connect(fake.server, ca_file=fake.ca_file, token_file=fake.token_file)
    with closing(api):
        for space in ("theirs", None):
            with pytest.raises(Forbidden):
                api.list_page("Secret", space)

    assert (True, []) == (taken.index["complete"], taken.index["namespaceErrors"]), taken.index
    assert granted_rights(rules) == used
    assert (2, 2) == (taken.said("pods")["count"], taken.said("secrets")["count"])
    assert 2 == taken.index["podlogs"]["count"]
    assert not [name for name in taken.files if "theirs" in name.split("/")]
    assert bool(resources) is all(rule.namespaces for rule in rules)


def drop(fake: FakeKube, space: str, *, left: bool = False) -> None:
    """Delete a namespace, or just the Role in it."""
    if not left:
        fake.store.delete("Namespace", "", space)
        fake.store.empty(space)
    rules = fake.tokens.roles["snapshot"]
    fake.tokens.roles["snapshot"] = [each for each in rules if space not in each.namespaces]


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        ("", "it was deleted"),
        ("pods,configmaps", 'it was deleted, or the snapshot\'s Role in it: namespaces "a" is'),
    ],
    ids=["all", "namespaced"],
)
def test_a_namespace_that_is_deleted_meanwhile(
    fake: FakeKube, take: Take, resources: str, why: str
) -> None:
    """It is told once, not of every resource, and the others have all that is theirs."""
    spread(fake, "a", "b")
    grant(fake, resources=resources, namespaces="a,b")
    in_it = lambda entry: entry.path.startswith("/api/v1/namespaces/a/")  # noqa: E731
    on_request(fake, in_it, lambda: drop(fake, "a"), times=1)
    taken = take(fake, resources=resources, namespaces="a,b", pod_logs="true")
    (told,) = taken.index["namespaceErrors"]

    assert ("a", False) == (told["namespace"], taken.index["complete"])
    assert told["error"].startswith(why)
    assert not [each for each in taken.index["resources"] if "error" in each]
    assert ["pod"] == [each["metadata"]["name"] for each in taken.list("ns/b/core_v1_pods.json")]


def test_a_namespace_that_is_on_its_way_out(fake: FakeKube, take: Take) -> None:
    """Its objects go first, and nothing is refused: what is there may not be all."""
    spread(fake, "a")
    grant(fake, namespaces="a")
    going = {"name": "a", "deletionTimestamp": "2030-01-01T12:00:00Z"}
    fake.store.update(
        "Namespace", "", "a", lambda found: {**found, "metadata": found["metadata"] | going}
    )
    taken = take(fake, namespaces="a")

    assert [{"namespace": "a", "error": "it is being deleted"}] == taken.index["namespaceErrors"]
    assert not taken.index["complete"]


def test_what_is_refused_in_one_namespace(fake: FakeKube, take: Take) -> None:
    """It is there: then each resource says so, and the other namespaces are read to their end."""
    spread(fake, "a", "b")
    grant(fake, namespaces="a,b", pod_logs="true")
    drop(fake, "a", left=True)
    taken = take(fake, namespaces="a,b", pod_logs="true")
    said = taken.said("configmaps")

    assert ([], False) == (taken.index["namespaceErrors"], taken.index["complete"])
    assert (1, True) == (said["count"], 'in the namespace "a"' in said["error"])
    assert (1, True) == (taken.index["podlogs"]["count"], "error" in taken.index["podlogs"])


def test_all_namespaces_are_gone(fake: FakeKube, take: Take) -> None:
    """A snapshot of nothing is a failure that says why."""
    grant(fake, resources="pods", namespaces="a")
    taken = take(fake, resources="pods", namespaces="a")

    assert taken.failure is not None
    assert "namespace a: it was deleted" in taken.failure.text


def test_a_cap_that_is_reached_in_the_first_namespace(fake: FakeKube, take: Take) -> None:
    """What would still fit from the others does not make the resource look complete."""
    for space, name, size in (("a", "1", 600), ("a", "2", 600), ("b", "1", 1)):
        meta = {"name": f"m{name}", "namespace": space}
        fake.store.create("ConfigMap", {"metadata": meta, "data": {"x": "y" * size * 1024}})
    taken = take(fake, resources="configmaps", namespaces="a,b", resource_mib="1")

    assert "the resource is as large as it may be" == taken.said("configmaps")["truncated"]
    assert not taken.index["complete"]
