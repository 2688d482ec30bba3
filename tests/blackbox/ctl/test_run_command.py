"""`status-ctl run` against the fake API server: what it creates, prints and waits for."""

import json
from pathlib import Path

import pytest
import yaml

from tests.blackbox.ctl.cluster import add_aggregator, plugin
from tests.blackbox.ctl.launched import Controllers, shown, standing
from tests.blackbox.ctl.scripted import Home, interrupted_when
from tests.blackbox.ctl.starting import (
    CREATED,
    DEFINITION,
    EACH_NODE,
    START,
    add_node,
    fake,
    posts,
    start,
    there,
    write,
)
from tests.fakekube import Answer, FakeKube

__all__ = ["fake", "there"]


class TestCreates:
    """What is there afterwards."""

    def test_a_namespace_of_its_own_and_the_run_in_it(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The ConfigMap is the lock on the name and comes first, the aggregator last."""
        code, out, err = start(there)

        assert (0, "") == (code, out), err
        assert ["namespaces", *CREATED] == posts(fake)
        # Server-side apply would take over what is a stranger's.
        assert {"GET", "POST"} == {entry.method for entry in fake.requests()}
        assert [
            "status-ctl: run first created in new namespace status-reporter-first (plugins: 1, "
            "expected results: 1)",
            "status-ctl: the namespace allows Pod Security level baseline: quota needs baseline: "
            "allowPrivilegeEscalation, capabilities, runAsNonRoot, seccompProfile",
            "status-ctl: the aggregator is ready",
            "status-ctl: what to do with the run:",
            "  look at it            status-ctl status first",
            "  wait for it           status-ctl wait run/first",
            "  stop it               status-ctl stop first",
            "  download the results  status-ctl retrieve first",
            "  delete it             status-ctl delete first --yes",
        ] == err.splitlines()

    def test_in_a_namespace_that_is_there(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The hints name it, and its other inhabitants are a reason for a warning."""
        fake.store.create("Secret", {"metadata": {"name": "theirs", "namespace": "default"}})
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
        code, _, err = start(there, "-n", "default")

        assert 0 == code, err
        assert CREATED == posts(fake)
        assert "namespace default is shared: anyone who controls the run's aggregator" in err
        assert "status-ctl delete first -n default --yes\n" in err

    def test_the_plan_has_the_nodes_that_were_there(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        add_node(fake, "node2", disk="ssd")
        write(there, "kernel.yaml", EACH_NODE)
        code, _, err = start(there, "-f", "kernel.yaml", "--nodes", "disk=ssd")

        assert 0 == code, err
        made = fake.store.get("ConfigMap", "status-reporter-first", "first")
        plan = json.loads(made["data"]["plan.json"])
        assert [None, ["node2"]] == [each.get("nodes") for each in plan["plugins"]]

    def test_nodes_that_are_named_need_no_right_to_see_nodes(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Whether they exist the run itself finds out. A comma too many does no harm."""
        write(there, "kernel.yaml", EACH_NODE)
        fake.fail(Answer(403), method="GET", path="/nodes/", times=None)
        code, _, err = start(there, "-f", "kernel.yaml", "--node", "node7,node8,")

        assert 0 == code, err
        assert [] == [each for each in fake.requests("GET") if each.path.endswith("/nodes")]
        assert "expected results: 3" in err


class TestPrints:
    """`--dry-run`."""

    def test_everything_and_creates_nothing(self, there: Home, fake: FakeKube) -> None:
        """As kubectl reads it."""
        code, out, err = start(there, "--dry-run")
        kinds = [each["kind"] for each in yaml.safe_load_all(out)]

        assert (0, "") == (code, err)
        assert ["Namespace", "ConfigMap", "Job"] == [kinds[0], kinds[1], kinds[-1]]
        assert [] == fake.requests("POST")

    def test_as_json_for_other_programs(self, there: Home) -> None:
        code, out, _ = start(there, "--dry-run", "-o", "json", "-n", "team-a")

        assert 0 == code
        assert "List" == json.loads(out)["kind"]
        assert {"team-a"} == {each["metadata"]["namespace"] for each in json.loads(out)["items"]}

    def test_what_the_aggregator_is_told(self, there: Home) -> None:
        """Where it runs, as whom, with which volume, and how many nodes it may use at once."""
        more = ("--aggregator-service-account", "robot", "--storage", "1Gi")
        more += ("--storage-class", "fast", "--aggregator-node-selector", "disk=ssd")
        more += ("--max-nodes-at-once", "7")
        code, out, err = start(there, "--dry-run", "-o", "json", *more)
        items = {each["kind"]: each for each in json.loads(out)["items"]}
        made = items["Job"]["spec"]
        claim = items["PersistentVolumeClaim"]["spec"]

        assert 0 == code, err
        assert {"disk": "ssd"} == made["template"]["spec"]["nodeSelector"]
        assert "robot" == made["template"]["spec"]["serviceAccountName"]
        assert ("fast", {"storage": "1Gi"}) == (
            claim["storageClassName"],
            claim["resources"]["requests"],
        )
        assert 7 == json.loads(items["ConfigMap"]["data"]["launch.json"])["maxNodesAtOnce"]

    @pytest.mark.parametrize(
        ("argument", "form", "told"),
        [
            ("x" * 255_000, "yaml", False),
            ("x" * 262_144, "json", True),
            ("x" * 262_144, "name", False),
        ],
        ids=["just fits", "too large", "names only"],
    )
    def test_what_kubectl_apply_would_refuse(
        self, there: Home, argument: str, form: str, told: bool
    ) -> None:
        """It keeps a copy of each object in an annotation, and these have a limit."""
        write(there, "quota.yaml", DEFINITION.replace('"true"', f'"{argument}"'))
        code, _, err = start(there, "--dry-run", "-o", form)
        words = (
            "status-ctl: configmap/first is too large for `kubectl apply`; use `kubectl create` or "
            "`kubectl apply --server-side`\n"
        )

        assert (0, words if told else "") == (code, err)

    def test_names_only(self, there: Home) -> None:
        _, out, _ = start(there, "--dry-run", "-o", "name", "-n", "team-a")

        assert "configmap/first" == out.splitlines()[0]


class TestWaitsForTheAggregator:
    """Before `--wait` begins."""

    def test_who_may_not_read_pods_has_started_the_run_all_the_same(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """4 at once: the right that is missing; the run stays."""
        words = 'pods is forbidden: User "eve" cannot list resource "pods"'
        fake.fail(Answer(403, said=words), method="GET", path="/pods", times=None)
        code, _, err = start(there)

        assert 4 == code
        assert f"cannot tell whether the aggregator is ready: {words}\nthe run continues" in err
        assert 1 == len(fake.requests("GET", "/pods"))
        assert "Job/first" in standing(fake, "first")

    def test_the_time_limit_is_for_this_too(self, there: Home, fake: FakeKube) -> None:
        """3, and not two minutes later: nobody makes the Pod."""
        account = {"metadata": {"name": "default"}}
        fake.store.create("ServiceAccount", account)
        code, _, err = start(there, "-n", "default", "--wait", "--timeout", "1s")

        assert 3 == code
        assert "timed out: the aggregator is not ready:\n  the Pod first-* has not" in err
        assert "Job/first" in standing(fake, "first")

    def test_on_a_terminal_delete_is_named_without_yes(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """It asks there."""
        code, out = there.terminal(*START)

        assert 0 == code, out
        assert out.endswith("status-ctl delete first\n")


class TestWaits:
    """`--wait`."""

    def test_until_the_verdict(self, there: Home, fake: FakeKube, controllers: Controllers) -> None:
        """As `wait` does: the table, and the same exit codes."""
        controllers.annotations = shown(
            "complete",
            plugin("quota", status="complete", verdict="failed"),
            result_status="failed",
            why={"quota/global": {"reason": "QuotaMissing", "message": "no quota"}},
        )
        code, out, err = start(there, "--wait")

        assert 1 == code, err
        assert "QuotaMissing: no quota" in out
        assert [
            "status-ctl: what to do with the run:",
            "  read the results      status-ctl results run/first",
            "  download the results  status-ctl retrieve first",
            "  then delete it        status-ctl delete first",
        ] == err.splitlines()[-4:]

    @pytest.mark.parametrize(
        ("more", "named"), [([], ["facts"]), (["-f", "quota.yaml"], ["facts", "results"])]
    )
    def test_what_host_facts_has_found_is_read_with_facts(
        self,
        there: Home,
        fake: FakeKube,
        controllers: Controllers,
        more: list[str],
        named: list[str],
    ) -> None:
        controllers.annotations = shown("complete", plugin("host-facts", status="complete"))
        chosen = ["run", "--plugin", "host-facts", *more, "--image", "r:1", "--name", "first"]
        code, _, err = there.run(*chosen, "--storage", "none", "--wait")

        assert 0 == code, err
        read = [line.split()[4] for line in err.splitlines() if line.startswith("  read the")]
        assert named == read

    def test_with_fail_fast_no_longer_than_the_first_failure(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The run goes on, and that is said."""
        words = "timed out: no heartbeat for 120 s: cannot resolve first.team-a.svc"
        failed = plugin("quota", status="failed", verdict="failed")
        why = {"quota/global": {"message": words}}
        controllers.annotations = shown("failed", failed, plugin("slow"), final=False, why=why)
        code, out, err = start(there, "--wait", "--fail-fast")

        assert 1 == code, err
        assert words in out
        assert "  wait for it           status-ctl wait run/first" in err.splitlines()
        assert (2, "") == start(there, "--fail-fast")[:2]

    def test_no_longer_than_the_timeout(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The run goes on, and that is said."""
        controllers.annotations = shown("running", plugin("quota"), final=False)
        code, _, err = start(there, "--wait", "--timeout", "1s")

        assert 3 == code
        assert "timed out: the run is not over; it is still running" in err

    def test_ctrl_c_leaves_the_run(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        controllers.annotations = shown("running", plugin("quota"), final=False)
        listed = "/namespaces/status-reporter-first/pods"
        waits = lambda: [e for e in fake.requests("GET", listed) if "limit" in e.query]  # noqa: E731
        code, _, err = interrupted_when(waits, there, fake, *START, "--wait")

        assert 130 == code
        assert b"the run continues\n" in err
        assert b"status-ctl delete first" in err
        assert "Job/first" in standing(fake, "first")


SAID = "status-ctl: run {0} in namespace status-reporter-{0}: the newest that you started"


class TestFoundWithoutItsName:
    """The newest that this user has started, where the namespace has none."""

    @pytest.fixture(autouse=True)
    def _started(self, there: Home, fake: FakeKube, controllers: Controllers) -> None:
        """Two, each in a namespace of its own."""
        controllers.annotations = shown("running", plugin("quota"), final=False)
        for name in ("first", "second"):
            code, _, err = there.run("run", "-f", "quota.yaml", "--name", name)
            assert 0 == code, err

    def test_the_newest_that_there_still_is(self, there: Home, fake: FakeKube) -> None:
        """Which it is, is said; a run that somebody else has started by that name is not it."""
        assert SAID.format("second") == there.run("retrieve")[2].splitlines()[0]
        other = {"status-reporter.io/creation": "somebody else's"}
        fake.store.update(
            "ConfigMap",
            "status-reporter-second",
            "second",
            lambda plan: plan | {"metadata": plan["metadata"] | {"annotations": other}},
        )
        assert SAID.format("first") == there.run("results")[2].splitlines()[0]

    @pytest.mark.parametrize("kind", ["Pod", "StatefulSet", "Job"])
    def test_what_is_in_the_namespace_comes_first(
        self, there: Home, fake: FakeKube, kind: str
    ) -> None:
        """It was deployed there for those who work there; its Pod may be about to move."""
        if kind == "Pod":
            add_aggregator(fake, "running", plugin("e2e"))
        else:
            labels = {"app.kubernetes.io/name": "status-aggregator"}
            made = {"metadata": {"name": "a", "namespace": "default", "labels": labels}}
            pod = {"metadata": {"labels": {}}}
            fake.store.create(kind, made | {"spec": {"template": pod}})
        code, _, err = there.run("retrieve")
        assert (4, False) == (code, "that you started" in err), err

    @pytest.mark.parametrize("command", ["status", "wait --timeout 1s"])
    def test_others_have_to_name_one(self, there: Home, command: str) -> None:
        """They are told which there are."""
        code, _, err = there.run(*command.split())
        elsewhere = "status-reporter-first/first, status-reporter-second/second"
        told = f"; in other namespaces: {elsewhere}; use -n NAMESPACE or -A"
        assert 0 != code
        assert f"no aggregator found in namespace 'default'{told}" in err
        assert "that you started" not in err


def test_definitions_from_standard_input_are_read_like_files(there: Home) -> None:
    """A pipe at a person's fingertips."""
    code, out, err = there.run("run", "-f", str(Path("/dev/null")), "--dry-run")

    assert (2, "") == (code, out)
    assert "no plugin definition found" in err
