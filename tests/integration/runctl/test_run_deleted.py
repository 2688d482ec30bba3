"""A run that is deleted while somebody waits for it or watches it."""

import io
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from reporter.cli.exits import CannotTell
from reporter.run.names import labels
from reporter.run.view import Look, ReadOutcome
from reporter.runctl.cluster_run import ByCluster, by_cluster
from reporter.runctl.follow import Deadline
from reporter.runctl.server import ANSWER
from reporter.runctl.wait import Goal, RunBar, wait
from reporter.runctl.watch import Lines, watch
from tests.blackbox.ctl.cluster import plugin
from tests.blackbox.ctl.launched import RUN_LABEL, VIEW, Controllers, shown
from tests.blackbox.ctl.scripted import BOUND, Home
from tests.blackbox.ctl.starting import START, add_node, there
from tests.fakekube import Answer, FakeKube, Rule

__all__ = ["there"]
AGGREGATOR = {"sonobuoy-component": "aggregator"}
RUNNING = shown("running", plugin("quota"), final=False)
OVER = shown("complete", plugin("quota", status="complete"))


@pytest.fixture
def fake(fake: FakeKube) -> FakeKube:
    """The API server shows a person what the role `view` does."""
    fake.tokens.roles["person"] += VIEW
    return fake


class Cluster:
    """The aggregator of the run `first`, by hand."""

    def __init__(self, fake: FakeKube, kind: str = "Job") -> None:
        self.fake, self.kind = fake, kind
        fake.store.create(kind, {"metadata": {"name": "first"}})

    def has_pod(self, annotations: dict[str, str], run: str = "first") -> None:
        """Make its Pod, which says of which run it is."""
        labels = AGGREGATOR | ({RUN_LABEL: run} if run else {})
        meta = {"name": "first-x", "annotations": annotations, "labels": labels}
        owner = {"kind": self.kind, "name": "first", "controller": True}
        made = {"metadata": meta | {"ownerReferences": [owner]}, "spec": {"containers": []}}
        self.fake.store.create("Pod", made)
        running = {"status": {"phase": "Running"}}
        self.fake.store.update("Pod", "default", "first-x", lambda pod: pod | running)

    def loses_pod(self) -> None:
        """As when its node is drained."""
        self.fake.store.delete("Pod", "default", "first-x")

    def ends(self) -> None:
        """Its Job has failed for good, and the Pod goes with that: its node was drained."""
        failed = {"type": "Failed", "status": "True", "message": "it was evicted"}
        with self.fake.changed:
            end = {"status": {"conditions": [failed]}}
            self.fake.store.update("Job", "default", "first", lambda job: job | end)
            self.loses_pod()

    def is_deleted(self) -> None:
        """All of it."""
        with self.fake.changed:
            self.fake.store.delete(self.kind, "default", "first")
            self.loses_pod()


@pytest.fixture
def cluster(fake: FakeKube) -> Cluster:
    """A run that goes on."""
    cluster = Cluster(fake)
    cluster.has_pod(RUNNING)
    return cluster


@pytest.fixture
def run(at_home: Home) -> ByCluster:
    """The run as the commands ask for it."""
    return asked(at_home, "first")


def asked(home: Home, name: str) -> ByCluster:
    config = str(home.folder / ".kube" / "config")
    return by_cluster(Namespace(namespace=None, context=None, kubeconfig=config), name)


def doing(*steps: Callable[[], None]) -> Callable[[float], None]:
    """Return what passes the time between two looks: a step each time."""
    left = iter(steps)

    def sleep(_: float) -> None:
        next(left)()

    return sleep


def waited(run: Any, *steps: Callable[[], None]) -> tuple[int, Look]:
    return wait(run, Goal(), Deadline(None, sleep=doing(*steps)), RunBar(io.StringIO()))


GONE = r"^run first was deleted$"
ENDED = r"^the aggregator has ended \(job/first: failed: it was evicted\) without the status"


ENDS = pytest.mark.parametrize(
    ("end", "said"), [(Cluster.is_deleted, GONE), (Cluster.ends, ENDED)], ids=["deleted", "ended"]
)


@ENDS
def test_waiting_ends(
    run: ByCluster, cluster: Cluster, end: Callable[[Cluster], None], said: str
) -> None:
    """Nothing can come any more: a Job that has ended makes no other Pod."""
    with pytest.raises(CannotTell, match=said):
        waited(run, partial(end, cluster))


@ENDS
def test_watching_ends(
    run: ByCluster, cluster: Cluster, end: Callable[[Cluster], None], said: str
) -> None:
    """In the same words; `logs -f` looks in the same way."""
    with pytest.raises(CannotTell, match=said):
        watch(run, Lines(Namespace(output="name")), doing(partial(end, cluster)))


def test_the_only_run_of_the_namespace(at_home: Home, cluster: Cluster) -> None:
    """Its name is on its Pod."""
    with pytest.raises(CannotTell, match=GONE):
        waited(asked(at_home, ""), cluster.is_deleted)


def test_a_pod_that_moves_is_waited_for(
    run: ByCluster, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """However long there is none; nobody reads that there is no such run."""
    comes_back = lambda: cluster.has_pod(OVER)  # noqa: E731
    code, _ = waited(run, cluster.loses_pod, int, comes_back)

    assert 0 == code
    told = capsys.readouterr().err.splitlines()
    assert ["status-ctl: run first: its aggregator has no Pod; waiting"] == told


@pytest.fixture(params=["StatefulSet", "Job"])
def by_hand(request: pytest.FixtureRequest, fake: FakeKube) -> Cluster:
    """An aggregator that nobody launched: it has no name of a run."""
    by_hand = Cluster(fake, request.param)
    by_hand.has_pod(RUNNING, run="")
    return by_hand


def test_an_aggregator_that_nobody_launched_is_deleted(at_home: Home, by_hand: Cluster) -> None:
    """It is called by what makes its Pods."""
    said = rf"^the aggregator \({by_hand.kind.lower()}/first\) was deleted$"
    with pytest.raises(CannotTell, match=said):
        waited(asked(at_home, ""), by_hand.is_deleted)


@pytest.mark.parametrize("by_hand", ["Job"], indirect=True)
def test_an_aggregator_that_nobody_launched_ends(at_home: Home, by_hand: Cluster) -> None:
    """In the same words as a run's."""
    with pytest.raises(CannotTell, match=ENDED):
        waited(asked(at_home, ""), by_hand.ends)


def test_a_pod_that_moves_of_an_aggregator_that_nobody_launched(
    at_home: Home, by_hand: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is waited for."""
    comes_back = lambda: by_hand.has_pod(OVER, run="")  # noqa: E731
    code, _ = waited(asked(at_home, ""), by_hand.loses_pod, comes_back)

    assert 0 == code
    told = capsys.readouterr().err.splitlines()
    where = f"{by_hand.kind.lower()}/first"
    assert [f"status-ctl: the aggregator ({where}) has no Pod; waiting"] == told


def test_who_may_not_ask_for_the_owner_waits_on(
    run: ByCluster, cluster: Cluster, fake: FakeKube, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be there, and reads only what is sure."""
    fake.tokens.roles["person"] = (Rule(("list",), ("pods",)),)
    comes_back = lambda: cluster.has_pod(OVER)  # noqa: E731
    code, _ = waited(run, cluster.loses_pod, comes_back)

    assert 0 == code
    told = capsys.readouterr().err.splitlines()
    assert ["status-ctl: run 'first' not found in namespace 'default'; waiting"] == told


def test_a_pod_that_moves_in_the_only_namespace_that_one_may_read(
    run: ByCluster, cluster: Cluster, fake: FakeKube
) -> None:
    """The run is here: whether there is one in another namespace does not matter any more."""
    here = Rule(("get", "list"), ("pods", "jobs"), namespaces=("default",))
    fake.tokens.roles["person"] = (here,)
    comes_back = lambda: cluster.has_pod(OVER)  # noqa: E731
    code, _ = waited(run, cluster.loses_pod, comes_back)

    assert 0 == code


def test_a_run_that_is_not_there_yet_is_waited_for(at_home: Home, fake: FakeKube) -> None:
    """It was never seen, so nobody can have deleted it."""
    started: list[Cluster] = []

    def starts() -> None:
        started.append(Cluster(fake))
        started[0].has_pod(OVER)

    code, _ = waited(asked(at_home, "first"), int, starts)

    assert 0 == code


class TestBeforeItsFirstPod:
    """Somebody waits for a run of which only the plan is there, and perhaps what makes its Pod."""

    @pytest.fixture(params=["Job", ""])
    def made(self, request: pytest.FixtureRequest, fake: FakeKube) -> tuple[str, ...]:
        """What is there."""
        kinds = tuple(filter(None, ("ConfigMap", request.param)))
        for kind in kinds:
            fake.store.create(kind, {"metadata": {"name": "first", "labels": labels("first")}})
        return kinds

    @pytest.fixture
    def is_deleted(self, fake: FakeKube, made: tuple[str, ...]) -> Callable[[], None]:
        """Delete all of it."""

        def delete() -> None:
            with fake.changed:
                for kind in made:
                    fake.store.delete(kind, "default", "first")

        return delete

    def test_it_is_deleted(self, run: ByCluster, is_deleted: Callable[[], None]) -> None:
        """It was there, so it will not come any more."""
        with pytest.raises(CannotTell, match=GONE):
            waited(run, is_deleted)

    def test_it_is_deleted_between_two_looks(
        self, run: ByCluster, is_deleted: Callable[[], None]
    ) -> None:
        """That it is there was seen when a name was asked for."""
        assert run.exists(ANSWER)
        is_deleted()
        with pytest.raises(CannotTell, match=GONE):
            waited(run)

    @pytest.mark.parametrize("made", [""], indirect=True)
    @pytest.mark.parametrize("status", [403, 503])
    @pytest.mark.parametrize("path", ["/configmaps/", "/jobs/"])
    def test_not_all_of_it_can_be_asked_for(
        self,
        run: ByCluster,
        is_deleted: Callable[[], None],
        fake: FakeKube,
        path: str,
        status: int,
    ) -> None:
        """While nobody says that it is gone, a Pod may come."""

        def goes() -> None:
            fake.fail(Answer(status), path=f"{path}first", times=None)
            is_deleted()

        code, _ = waited(run, goes, lambda: Cluster(fake).has_pod(OVER))

        assert 0 == code

    @pytest.mark.parametrize("made", ["Job"], indirect=True)
    def test_first_the_plan_is_deleted(
        self, run: ByCluster, made: tuple[str, ...], fake: FakeKube
    ) -> None:
        """What makes its Pod is there, seen or not: the run was not deleted."""
        fake.fail(Answer(503), path="/jobs/first")
        plan, owner = (partial(fake.store.delete, kind, "default", "first") for kind in made)
        with pytest.raises(CannotTell, match=GONE):
            waited(run, plan, owner)

        assert [] == fake.store.find(made[1], None)


def test_a_verdict_that_is_known_stays() -> None:
    """The summary has said the end; only the entries were still to come."""
    summary = {"status": "complete", "final": True} | {
        "counts": {"entries": 1, "decided": 1, "received": 1, "failed": 0, "unknown": 0},
    }
    looks: Iterator[Look] = iter([Look(ReadOutcome.OK, summary)])

    class Run:
        name, pause = "run", 1.0

        def look(self, timeout: float = ANSWER, *, entries: bool = True) -> Look:
            for look in looks:
                return look
            raise CannotTell("run first was deleted")

    code, look = waited(Run())

    assert (0, summary) == (code, look.document)


class TestRunWaits:
    """`run --wait`."""

    @pytest.fixture
    def fake(self) -> Iterator[FakeKube]:
        with FakeKube(role="admin") as fake:
            add_node(fake, "node1")
            yield fake

    def test_ends_with_4(self, there: Home, fake: FakeKube, controllers: Controllers) -> None:
        """And offers nothing to do with a run that is gone."""
        controllers.annotations = RUNNING
        listed = "/namespaces/status-reporter-first/pods"
        looked = lambda: [e for e in fake.requests("GET", listed) if "limit" in e.query]  # noqa: E731
        with there.started(*START, "--wait") as process:
            fake.wait_for(looked)
            fake.store.empty("status-reporter-first")
            _, err = process.communicate(timeout=BOUND)

        assert 4 == process.returncode
        assert err.endswith(b"status-ctl: run first was deleted\n")
