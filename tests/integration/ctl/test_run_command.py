"""`status-ctl run` against the fake API server: what it checks, creates, takes back and says."""

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.aggregators.served import ROOT
from tests.fakekube import Answer, FakeKube, Hang, Reset
from tests.integration.ctl.cluster import kubeconfig, plugin
from tests.integration.ctl.launched import RUN_LABEL, Controllers, name_of, shown, standing
from tests.integration.ctl.scripted import Home, interrupt

DEFINITION = """\
apiVersion: status-reporter.io/v1
kind: Plugin
metadata: {name: quota}
spec:
  driver: Job
  contract: result-file
  template:
    spec:
      containers:
        - {name: adapter, image: busybox, command: ["true"]}
"""
EACH_NODE = DEFINITION.replace("quota", "kernel").replace("driver: Job", "driver: Node")
CREATED = [
    "configmaps",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "services",
    "networkpolicies",
    "statefulsets",
]


@pytest.fixture
def fake() -> Iterator[FakeKube]:
    """An API server and its administrator, with one node."""
    with FakeKube() as fake:
        fake.write_token(fake.token("admin"))
        add_node(fake, "node1")
        yield fake


@pytest.fixture
def controllers(fake: FakeKube) -> Iterator[Controllers]:
    """What makes the aggregator's Pod."""
    with Controllers(fake) as controllers:
        yield controllers


@pytest.fixture
def there(home: Home, fake: FakeKube) -> Home:
    """A home with a kubeconfig and a definition."""
    kubeconfig(home.folder / ".kube" / "config", fake)
    write(home, "quota.yaml", DEFINITION)
    return home


def write(home: Home, name: str, content: str) -> None:
    (home.folder / name).write_text(content)


def add_node(fake: FakeKube, name: str, **labels: str) -> None:
    """Put a Linux node there that is ready."""
    fake.store.create(
        "Node",
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/os": "linux", **labels}},
            "spec": {},
        },
    )
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    fake.store.update("Node", "", name, lambda node: node | {"status": ready})


def start(there: Home, *more: str) -> tuple[int, str, str]:
    return there.run("run", "-f", "quota.yaml", "--name", "first", *more)


def really(entry: Any) -> bool:
    """Whether a request is more than a dry run."""
    return "dryRun" not in entry.query


def posts(fake: FakeKube, *, dry: bool = False) -> list[str]:
    """Return what was created, by the last part of the path."""
    return [
        entry.path.rpartition("/")[2]
        for entry in fake.requests("POST")
        if ("dryRun" in entry.query) == dry and entry.status == 201
    ]


class TestCreates:
    """What is there afterwards."""

    def test_a_namespace_of_its_own_and_the_run_in_it(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The ConfigMap is the lock on the name and comes first, the aggregator last."""
        code, out, err = start(there)

        assert (0, "") == (code, out), err
        assert ["namespaces", *CREATED] == posts(fake)
        assert [
            "status-ctl: run first created in new namespace status-reporter-first (plugins: 1, "
            "expected results: 1)",
            "status-ctl: the namespace allows Pod Security level baseline: quota needs baseline: "
            "allowPrivilegeEscalation, capabilities, runAsNonRoot, seccompProfile",
            "status-ctl: the aggregator is ready",
            "status-ctl: what to do with the run:",
            "  look at it            status-ctl status first",
            "  wait for it           status-ctl wait first",
            "  download the results  status-ctl retrieve first",
            "  delete it             status-ctl delete first",
        ] == err.splitlines()

    def test_only_by_creating(self, there: Home, fake: FakeKube, controllers: Controllers) -> None:
        """Server-side apply would take over what is a stranger's."""
        start(there)

        assert {"GET", "POST"} == {entry.method for entry in fake.requests()}

    def test_in_a_namespace_that_is_there(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The hints name it, and its other inhabitants are a reason for a warning."""
        fake.store.create("Secret", {"metadata": {"name": "theirs", "namespace": "default"}})
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
        code, _, err = start(there, "-n", "default")

        assert 0 == code, err
        assert CREATED == posts(fake)
        assert "namespace default is shared: whoever controls the run's aggregator" in err
        assert "status-ctl delete first -n default" in err

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

    def test_nodes_that_are_named_need_not_be_listed(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        write(there, "kernel.yaml", EACH_NODE)
        code, _, err = start(there, "-f", "kernel.yaml", "--node", "node7,node8")

        assert 0 == code, err
        assert [] == fake.requests("GET", "/nodes")
        assert "expected results: 3" in err

    def test_an_answer_that_got_lost_is_no_stranger(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The object was made all the same: it is known again by what the command has put on it."""
        fake.fail(Reset(apply=True), method="POST", path="/configmaps", where=really)
        fake.fail(Answer(503, apply=True), method="POST", path="/statefulsets", where=really)
        code, _, err = start(there)

        assert 0 == code, err
        assert "StatefulSet/first" in standing(fake, "first")


class TestPrints:
    """`--dry-run`."""

    def test_everything_and_creates_nothing(self, there: Home, fake: FakeKube) -> None:
        """As kubectl reads it."""
        code, out, err = start(there, "--dry-run")
        kinds = [each["kind"] for each in yaml.safe_load_all(out)]

        assert (0, "") == (code, err)
        assert ["Namespace", "ConfigMap", "StatefulSet"] == [kinds[0], kinds[1], kinds[-1]]
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
        made = items["StatefulSet"]["spec"]
        claim = made["volumeClaimTemplates"][0]["spec"]

        assert 0 == code, err
        assert {"disk": "ssd"} == made["template"]["spec"]["nodeSelector"]
        assert "robot" == made["template"]["spec"]["serviceAccountName"]
        assert ("fast", {"storage": "1Gi"}) == (
            claim["storageClassName"],
            claim["resources"]["requests"],
        )
        assert 7 == json.loads(items["ConfigMap"]["data"]["launch.json"])["maxNodesAtOnce"]

    def test_names_only(self, there: Home) -> None:
        _, out, _ = start(there, "--dry-run", "-o", "name", "-n", "team-a")

        assert "configmap/first" == out.splitlines()[0]


class TestWaitsForTheAggregator:
    """Before `--wait` begins."""

    def test_who_may_not_read_pods_has_started_the_run_all_the_same(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """4 at once: the right that is missing; the run stays."""
        words = 'pods "first-0" is forbidden: User "eve" cannot get resource "pods"'
        denied = {"kind": "Status", "reason": "Forbidden", "message": words, "code": 403}
        fake.fail(Answer(403, body=denied), method="GET", path="/pods/first-0", times=None)
        code, _, err = start(there)

        assert 4 == code
        assert f"cannot tell whether the aggregator is ready: {words}\nthe run continues" in err
        assert 1 == len(fake.requests("GET", "/pods/first-0"))
        assert "StatefulSet/first" in standing(fake, "first")

    def test_the_time_limit_is_for_this_too(self, there: Home, fake: FakeKube) -> None:
        """3, and not two minutes later: nobody makes the Pod."""
        account = {"metadata": {"name": "default"}}
        fake.store.create("ServiceAccount", account)
        code, _, err = start(there, "-n", "default", "--wait", "--timeout", "1s")

        assert 3 == code
        assert "timed out: the aggregator is not ready:\n  the Pod first-0 has not" in err
        assert "StatefulSet/first" in standing(fake, "first")


class TestRefuses:
    """What is said before anything exists."""

    def test_all_problems_at_once(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Nothing of the stranger's is touched, nothing of ours stays."""
        for kind in ("ConfigMap", "Service"):
            fake.store.create(kind, {"metadata": {"name": "first"}})
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
        words = 'pods "x" is forbidden: violates PodSecurity "restricted:latest": hostPath'
        denied = {"kind": "Status", "reason": "Forbidden", "message": words, "code": 403}
        fake.fail(Answer(403, body=denied), method="POST", path="/pods", times=None)
        code, _, err = start(there, "-n", "default", "--image-pull-secret", "mirror")

        assert 1 == code
        assert [
            "status-ctl: the run cannot be started:",
            '  configmap/first: configmaps "first" already exists; choose another --name, or '
            "delete what has it",
            '  service/first: services "first" already exists; choose another --name, or delete '
            "what has it",
            f"  the aggregator: its Pod would be refused: {words}",
            f"  plugin quota: its Pod would be refused: {words}",
            "  --image-pull-secret mirror: there is no such Secret in namespace default",
        ] == err.splitlines()
        assert [] == posts(fake)
        assert [] == fake.requests("DELETE")

    def test_the_namespace_goes_again_if_a_check_fails(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        fake.fail(Answer(403), method="POST", path="/services", times=None)
        code, _, err = start(there)

        assert 1 == code
        assert "service/first: " in err
        assert ["namespaces"] == posts(fake)
        assert [] == standing(fake, "first")

    def test_a_namespace_of_that_name_is_somebody_elses(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        fake.store.create("Namespace", {"metadata": {"name": "status-reporter-first"}})
        code, _, err = start(there)

        assert 1 == code
        assert 'namespaces "status-reporter-first" already exists; choose another --name' in err
        assert "status-reporter-first" in [name_of(n) for n in fake.store.find("Namespace", None)]

    def test_what_fails_half_way_is_taken_back(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Nothing that was there before goes with it."""
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
        fake.store.create("Role", {"metadata": {"name": "theirs"}})
        fake.fail(
            Answer(403),
            method="POST",
            path="/statefulsets",
            where=really,
            times=None,
        )
        code, _, err = start(there, "-n", "default")

        assert 1 == code
        assert "the run cannot be started:\n  statefulset/first: " in err
        assert [] == standing(fake, "first")
        assert "theirs" == fake.store.get("Role", "default", "theirs")["metadata"]["name"]

    def test_an_api_server_that_goes_away_half_way(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """It is tried again for a while; nothing is left where it comes back too late."""
        fake.fail(Answer(503), method="POST", path="/statefulsets", where=really, times=None)
        code, _, err = start(there)

        assert 1 == code
        assert "statefulset/first: scripted fault" in err
        assert 5 == len([e for e in fake.requests("POST", "/statefulsets") if really(e)])
        assert [] == standing(fake, "first")

    def test_ctrl_c_before_everything_is_created_takes_all_back(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Whatever is just being waited for."""
        fake.fail(Hang(), method="POST", path="/statefulsets", where=really)
        with there.started("run", "-f", "quota.yaml", "--name", "first") as process:
            fake.wait_for(lambda: [e for e in fake.requests("POST", "/statefulsets") if really(e)])
            interrupt(process.pid)
            _, err = process.communicate(timeout=60)

        assert 130 == process.returncode
        assert b"interrupted; what was created is removed" in err
        assert [] == standing(fake, "first")

    def test_a_run_of_that_name_where_the_other_commands_look_first(
        self, there: Home, fake: FakeKube
    ) -> None:
        """`delete first` would delete it, and not the one in a namespace of its own."""
        labels = {RUN_LABEL: "first"}
        fake.store.create("ConfigMap", {"metadata": {"name": "first", "labels": labels}})
        code, _, err = start(there)

        assert 1 == code
        assert "namespace default has a run named first; choose another --name" in err
        assert [] == posts(fake)

    def test_a_namespace_that_is_just_going_is_waited_for(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """As the one of a run that was deleted or refused a moment ago."""
        name = "status-reporter-first"
        going = {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        fake.store.create("Namespace", {"metadata": {"name": name}})
        fake.store.update("Namespace", "", name, lambda found: found | {"metadata": going})
        with there.started("run", "-f", "quota.yaml", "--name", "first") as process:
            looks = f"/namespaces/{name}"
            fake.wait_for(lambda: [e for e in fake.requests("GET", looks) if e.status == 200])
            fake.store.delete("Namespace", "", name)
            _, err = process.communicate(timeout=60)

        assert 0 == process.returncode, err
        assert b"namespace/status-reporter-first is still being deleted; waiting\n" in err
        assert 1 == posts(fake).count("namespaces")

    def test_a_conflict_without_anything_of_that_name_is_tried_again(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """As of two writers of one quota, or of an object that went between two requests."""
        fake.fail(Answer(409), method="POST", path="/configmaps", where=really)
        code, _, err = start(there)

        assert 0 == code, err
        assert 1 == posts(fake).count("configmaps")

    def test_who_may_not_create_namespaces_is_told_what_to_do(
        self, there: Home, fake: FakeKube
    ) -> None:
        fake.fail(Answer(403), method="POST", path="/namespaces", times=None)
        code, _, err = start(there)

        assert 1 == code
        assert "; -n uses a namespace that exists" in err

    def test_a_namespace_that_does_not_exist_is_told_once(
        self, there: Home, fake: FakeKube
    ) -> None:
        code, _, err = start(there, "-n", "nowhere")

        assert 1 == code
        assert [
            "status-ctl: the run cannot be started:",
            "  there is no namespace nowhere; --create-namespace creates it",
        ] == err.splitlines()
        assert [] == posts(fake)

    def test_ctrl_c_before_the_answer_takes_back_what_was_created(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The namespace is there, but nobody has said so yet."""
        fake.fail(Hang(apply=True), method="POST", path="/namespaces", where=really)
        with there.started("run", "-f", "quota.yaml", "--name", "first") as process:
            fake.wait_for(lambda: fake.store.has_namespace("status-reporter-first"))
            interrupt(process.pid)
            _, err = process.communicate(timeout=60)

        assert 130 == process.returncode
        assert b"interrupted; what was created is removed" in err
        assert not fake.store.has_namespace("status-reporter-first")

    def test_who_may_not_bind_every_role_is_asked_about_roles_that_are_not_there_yet(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The API server calls the Role that it does not find a RoleBinding, as in these words."""
        for role in ("first-aggregator", "first-plugin"):
            words = f'rolebindings.rbac.authorization.k8s.io "{role}" not found'
            missing = {"kind": "Status", "reason": "NotFound", "message": words, "code": 404}
            fake.fail(
                Answer(404, body=missing),
                method="POST",
                path="/rolebindings",
                where=lambda entry, role=role: (
                    not really(entry) and entry.json["roleRef"]["name"] == role
                ),
            )
        code, _, err = start(there)

        assert 0 == code, err
        assert 2 == posts(fake).count("rolebindings")

    def test_who_may_not_grant_the_status_of_jobs_gets_a_run_without_conditions(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """As the administrator of a namespace."""

        def granting(entry: Any) -> bool:
            rules = entry.json["rules"]
            return any("jobs/status" in r["resources"] and "patch" in r["verbs"] for r in rules)

        fake.fail(Answer(403), method="POST", path="/roles", where=granting, times=None)
        code, _, err = start(there)

        assert 0 == code, err
        assert "you may not grant jobs/status: verdicts are not written on the Jobs" in err
        made = fake.store.get("ConfigMap", "status-reporter-first", "first")
        assert json.loads(made["data"]["launch.json"])["writeConditions"] is False

    @pytest.mark.parametrize(
        ("more", "code", "said"),
        [
            (("--timeout", "1m"), 2, "--timeout requires --wait"),
            (("--create-namespace",), 2, "--create-namespace requires -n"),
            (("--upload-ca", "ca.pem"), 2, "--upload-ca requires --upload-url-file"),
            (("--plugin-env", "nobody.A=1"), 2, "no plugin of this run fits 'nobody.A'"),
            (("--aggregator-node-selector", "disk"), 2, "not a label KEY=VALUE: 'disk'"),
            (("--storage", "much"), 2, "not a size like 64Mi or 1G: 'much'"),
            (("--plugin-timeout", "0"), 2, "not a time between 1s and 366 days"),
            (("--max-nodes-at-once", "0"), 2, "not a number of at least 1: '0'"),
            (("--max-nodes-at-once", "all"), 2, "not a number of at least 1: 'all'"),
            (("--name", "First"), 2, "'First' is not a valid run name"),
            (("-f", "absent.yaml"), 2, "cannot read absent.yaml: No such file or directory"),
            (("-f", "quota.yaml"), 2, "another plugin is named 'quota'"),
            (("--context", "nowhere"), 4, "cannot read from the cluster (unavailable)"),
        ],
    )
    def test_wrong_usage(
        self, there: Home, fake: FakeKube, more: tuple[str, ...], code: int, said: str
    ) -> None:
        """Nothing is created."""
        found, out, err = start(there, *more)

        assert (code, "") == (found, out)
        assert said in err
        assert [] == posts(fake)

    def test_who_may_not_list_nodes_is_told_what_to_do(self, there: Home, fake: FakeKube) -> None:
        write(there, "kernel.yaml", EACH_NODE)
        fake.fail(Answer(403), method="GET", path="/nodes", times=None)
        code, _, err = start(there, "-f", "kernel.yaml")

        assert 4 == code
        assert "Name the nodes instead: --node NAME,..." in err
        assert [] == posts(fake)

    def test_what_cannot_be_taken_back_is_named(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """A person has to know what is left."""
        fake.fail(Answer(403), method="POST", path="/services", times=None)
        fake.fail(Answer(403), method="DELETE", times=None)
        code, _, err = start(there)

        assert 1 == code
        assert "status-ctl: not removed: namespace/status-reporter-first: scripted fault" in err

    def test_a_cluster_without_a_fitting_node(self, there: Home, fake: FakeKube) -> None:
        write(there, "kernel.yaml", EACH_NODE)
        code, _, err = start(there, "-f", "kernel.yaml", "--nodes", "disk=tape")

        assert 2 == code
        assert "plugin kernel: no node to run on" in err


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
        assert "status-ctl retrieve first" in err
        assert "status-ctl wait first" not in err

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
        arguments = ("run", "-f", "quota.yaml", "--name", "first", "--wait")
        with there.started(*arguments) as process:
            listed = "/namespaces/status-reporter-first/pods"
            fake.wait_for(lambda: [e for e in fake.requests("GET", listed) if "limit" in e.query])
            interrupt(process.pid)
            _, err = process.communicate(timeout=60)

        assert 130 == process.returncode
        assert b"the run continues\n" in err
        assert b"status-ctl delete first" in err
        assert "StatefulSet/first" in standing(fake, "first")


class TestUploads:
    """`--upload-url-file`."""

    URL = "https://store.example.com/b/k?X-Amz-Signature=5ec2e7"

    def test_the_url_goes_into_a_secret_and_is_never_shown(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """It may stand alone in its line."""
        write(there, "url", f"{self.URL}\n")
        code, out, err = start(there, "--upload-url-file", "url")

        assert (0, "") == (code, out), err
        assert [*CREATED[:-1], "secrets", CREATED[-1]] == posts(fake)[1:]
        secret = fake.store.get("Secret", "status-reporter-first", "first-upload")
        assert self.URL == base64.b64decode(secret["data"]["url"]).decode()
        assert "the results will be uploaded to store.example.com before the run is over" in err
        assert "5ec2e7" not in err
        assert 0 == there.run("delete", "first", "--yes")[0]
        assert [] == standing(fake, "first")

    def test_printed_it_is_a_secret_like_any_other(self, there: Home) -> None:
        """In the Secret's data and nowhere else."""
        write(there, "url", self.URL)
        _, out, err = start(there, "--dry-run", "--upload-url-file", "url")

        made = list(yaml.safe_load_all(out))
        (secret,) = (each for each in made if each["kind"] == "Secret")
        assert self.URL == base64.b64decode(secret["data"].pop("url")).decode()
        assert "5ec2e7" not in json.dumps(made) + err

    @pytest.mark.parametrize(
        ("content", "more", "said"),
        [
            ("http://store/5ec2e7", (), "the upload URL does not begin with https://"),
            (
                "https://store/k?Signature=5ec2e7&Expires=99",
                (),
                "the upload URL expired at 1970-01-01T00:01",
            ),
            ("https://store/5ec2e7", ("--upload-ca", "url"), "url: not a certificate in PEM"),
            ("https://store/5ec2e7", ("--upload-ca", "absent"), "cannot read absent: No such file"),
            ("", ("-f", "-", "--upload-url-file", "-"), "only one of -f and --upload-url-file"),
        ],
    )
    def test_what_cannot_work_is_said_before_anything_exists(
        self, there: Home, fake: FakeKube, content: str, more: tuple[str, ...], said: str
    ) -> None:
        """Without a word of the URL."""
        write(there, "url", content)
        code, out, err = start(there, "--upload-url-file", "url", *more)

        assert (2, "") == (code, out)
        assert said in err
        assert "5ec2e7" not in err
        assert [] == posts(fake)

    def test_the_run_may_last_longer_than_the_url(self, there: Home, fake: FakeKube) -> None:
        """Six hours and the start timeout; with a shorter limit it is right."""
        seconds = int(time.time()) + 3600
        write(there, "url", f"{self.URL}&Signature=x&Expires={seconds}")
        code, _, err = start(there, "--dry-run", "--upload-url-file", "url")

        assert 2 == code
        assert "if every plugin takes all the time it has; use a URL that is valid longer" in err
        short = ("--plugin-timeout", "30m", "--upload-url-file", "url")
        assert 0 == start(there, "--dry-run", *short)[0]


class TestEnds:
    """`--exit`."""

    UPLOAD = ("--upload-url-file", "url", "--exit")

    @pytest.fixture(autouse=True)
    def _url(self, there: Home) -> None:
        write(there, "url", "https://store/k?5ec2e7")

    @pytest.mark.parametrize(
        ("result", "upload", "code"),
        [("passed", "uploaded", 0), ("failed", "uploaded", 1), ("passed", "failed", 1)],
    )
    def test_the_verdict_is_there_when_the_aggregator_is_gone(
        self,
        there: Home,
        fake: FakeKube,
        controllers: Controllers,
        result: str,
        upload: str,
        code: int,
    ) -> None:
        """On the Pod that it was; and `delete` removes Job and Pod too."""
        controllers.ended = code
        controllers.annotations = shown(
            "complete",
            plugin("quota", status="complete", verdict=result),
            result_status=result,
            upload={"host": "store", "state": upload, "error": "403"},
        )
        found, out, err = start(there, *self.UPLOAD, "--wait")

        assert code == found, err
        assert f"{'were' if upload == 'uploaded' else 'could not be'} uploaded to store" in out
        assert "retrieve" not in err
        assert "Job/first" in standing(fake, "first")
        assert "quota/global\n" == there.run("status", "first", "-o", "name")[1]
        assert code == there.run("wait", "first")[0]
        assert "run/first\n" == there.run("runs", "-A", "-o", "name")[1]
        sure = () if upload == "uploaded" else ("--yes",)
        assert len(sure) == there.run("delete", "first")[0]
        assert 0 == there.run("delete", "first", *sure)[0] or not sure
        assert [] == standing(fake, "first")

    def test_an_aggregator_that_ended_without_a_word(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Its Job will not try again, so nobody waits for ever; `delete` asks."""
        controllers.ended = 1
        code, _, err = start(there, *self.UPLOAD, "--wait")

        assert 4 == code
        assert (
            "the aggregator has ended (job/first: failed: the Pod has ended) without the status "
            "of the run"
        ) in err
        code, _, err = there.run("delete", "first")
        assert 1 == code
        assert "run first was not deleted: the aggregator has ended (job/first: failed: " in err
        assert "use --yes to delete it anyway" in err
        assert 0 == there.run("delete", "first", "--yes")[0]
        assert [] == standing(fake, "first")

    def test_the_example_is_what_is_printed(self, there: Home) -> None:
        """deploy/examples/run-as-job: the command that it names makes its file, all but the URL."""
        example = ROOT / "deploy" / "examples" / "run-as-job"
        code, out, err = there.run(
            *("run", "-f", str(example / "plugins.yaml"), "--name", "example", "--dry-run"),
            *("--image", "localhost/status-reporter:dev", *self.UPLOAD),
        )
        assert 0 == code, err
        documents = out.removeprefix("---\n").split("\n---\n")
        (secret,) = (each for each in documents if yaml.safe_load(each)["kind"] == "Secret")
        made = "---\n" + "\n---\n".join(each for each in documents if each != secret)
        path = example / "run.yaml"
        if os.environ.get("WRITE_EXAMPLES"):
            path.write_text(made)
        assert made == path.read_text(), "WRITE_EXAMPLES=1 writes it"

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (("--exit",), "--exit requires --upload-url-file: nobody can download"),
            ((*UPLOAD, "--expose", "nodeport"), "--exit cannot be used with --expose"),
        ],
    )
    def test_what_does_not_go_with_it(self, there: Home, more: tuple[str, ...], said: str) -> None:
        code, _, err = start(there, *more)

        assert 2 == code
        assert said in err


def test_definitions_from_standard_input_are_read_like_files(there: Home) -> None:
    """A pipe at a person's fingertips."""
    code, out, err = there.run("run", "-f", str(Path("/dev/null")), "--dry-run")

    assert (2, "") == (code, out)
    assert "no plugin definition in it" in err
