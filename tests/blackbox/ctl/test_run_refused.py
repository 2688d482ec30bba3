"""`status-ctl run` that cannot start: what it checks, what it takes back and what it says."""

import json
import signal
from typing import Any

import pytest

from tests.blackbox.ctl.launched import RUN_LABEL, Controllers, name_of, standing
from tests.blackbox.ctl.scripted import Home, interrupt, interrupted_when
from tests.blackbox.ctl.starting import (
    DEFINITION,
    EACH_NODE,
    START,
    fake,
    posts,
    really,
    start,
    there,
    write,
)
from tests.fakekube import Answer, FakeKube, Hang, Slow

__all__ = ["fake", "there"]


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
        fake.fail(Answer(403, said=words), method="POST", path="/pods", times=None)
        code, _, err = start(there, "-n", "default", "--image-pull-secret", "mirror")

        assert 1 == code
        assert [
            "status-ctl: the run cannot be started:",
            '  configmap/first: configmaps "first" already exists; choose another --name, or '
            "delete the run that uses it",
            '  service/first: services "first" already exists; choose another --name, or delete '
            "the run that uses it",
            f"  the aggregator: its Pod would be refused: {words}",
            f"  plugin quota: its Pod would be refused: {words}",
            "  --image-pull-secret mirror: there is no such Secret in namespace default",
        ] == err.splitlines()
        assert [] == posts(fake)
        assert [] == fake.requests("DELETE")

    def test_nodes_that_do_not_exist(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Each of them, with whatever else is wrong."""
        write(there, "kernel.yaml", EACH_NODE)
        wrong = ("--node", "node1,nodel,node3", "--image-pull-secret", "mirror")
        code, _, err = start(there, "-f", "kernel.yaml", *wrong)

        assert 1 == code
        assert [
            "status-ctl: the run cannot be started:",
            "  --image-pull-secret mirror: there is no such Secret in namespace "
            "status-reporter-first",
            "  --node nodel: there is no such node",
            "  --node node3: there is no such node",
        ] == err.splitlines()
        assert [] == standing(fake, "first")

    def test_of_many_nodes_the_first_are_looked_up(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Thousands may be named, and the run itself says what became of the others."""
        write(there, "kernel.yaml", EACH_NODE)
        names = [f"absent{number}" for number in range(30)]
        code, _, err = start(there, "-f", "kernel.yaml", "--node", ",".join(names))

        assert 1 == code
        assert [f"  --node {name}: there is no such node" for name in names[:20]] == (
            err.splitlines()[1:]
        )
        assert 20 == len([e for e in fake.requests("GET") if "/nodes/" in e.path])

    def test_pull_secrets_of_definitions(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Each that is missing is said with its plugin, and the run starts: it may do without."""
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
        for name in ("present", "mirror"):
            fake.store.create("Secret", {"metadata": {"name": name}})
        named = (
            "    spec:\n      imagePullSecrets: [{name: present}, {name: absent}, {name: mirror}]"
        )
        write(there, "quota.yaml", DEFINITION.replace("    spec:", named))
        write(there, "kernel.yaml", EACH_NODE.replace("    spec:", named))
        code, _, err = start(
            there, "-f", "kernel.yaml", "-n", "default", "--image-pull-secret", "mirror"
        )

        assert 0 == code, err
        said = "imagePullSecrets absent: there is no such Secret in namespace default"
        told = [line for line in err.splitlines() if "no such Secret" in line]
        assert [f"plugin quota: {said}", f"plugin kernel: {said}"] == [
            line[line.index("plugin") :] for line in told
        ]

    def test_the_job_that_will_make_the_pods_is_refused(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """By a policy, say, which accepts a Pod as it is."""
        words = "Job is forbidden: ValidatingAdmissionPolicy 'gone-in-an-hour' denied request"
        fake.fail(Answer(403, said=words), method="POST", path="/jobs", times=None)
        code, _, err = there.run("run", "-f", "quota.yaml", "--name", "first")

        assert 1 == code
        assert f"  plugin quota: its Job would be refused: {words}" in err.splitlines()
        assert ["namespaces"] == posts(fake)

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

    def test_a_namespace_to_be_created_exists(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """It is the one that was asked for: another name of the run would change nothing."""
        fake.store.create("Namespace", {"metadata": {"name": "checks"}})
        code, _, err = start(there, "-n", "checks", "--create-namespace")

        assert 1 == code
        said = 'namespace/checks: namespaces "checks" already exists; '
        assert f"{said}leave out --create-namespace to use it" in err
        assert "--name" not in err
        assert fake.store.has_namespace("checks")

    def test_what_fails_half_way_is_taken_back(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Nothing that was there before goes with it."""
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
        fake.store.create("Role", {"metadata": {"name": "theirs"}})
        fake.fail(
            Answer(403),
            method="POST",
            path="/jobs",
            where=really,
            times=None,
        )
        code, _, err = start(there, "-n", "default")

        assert 1 == code
        assert "the run cannot be started:\n  job/first: " in err
        assert [] == standing(fake, "first")
        assert "theirs" == fake.store.get("Role", "default", "theirs")["metadata"]["name"]

    def test_an_api_server_that_goes_away_half_way(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """It is tried again for a while; nothing is left where it comes back too late."""
        fake.fail(Answer(503), method="POST", path="/jobs", where=really, times=None)
        code, _, err = start(there)

        assert 1 == code
        assert "job/first: scripted fault" in err
        assert 5 == len([e for e in fake.requests("POST", "/jobs") if really(e)])
        assert [] == standing(fake, "first")

    def test_a_run_that_is_deleted_while_it_is_created_takes_all_back(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Its plan has gone: an aggregator without it would start again and again."""
        fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})

        def deletes(entry: Any) -> bool:
            if really(entry):
                fake.store.delete("ConfigMap", "default", "first")
            return False

        fake.fail(Answer(), method="POST", path="/jobs", where=deletes)
        code, _, err = start(there, "-n", "default")

        assert 1 == code
        assert "the run was deleted meanwhile; what was created is removed" in err
        assert [] == standing(fake, "first")

    def test_who_may_not_read_the_plan_starts_a_run_all_the_same(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Whether it was deleted meanwhile is not known then."""
        path = "/namespaces/status-reporter-first/configmaps/first"
        fake.fail(Answer(403), method="GET", path=path, times=None)
        code, _, err = start(there)

        assert 0 == code, err

    def test_ctrl_c_before_everything_is_created_takes_all_back(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Whatever is just being waited for."""
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        creates = lambda: any(map(really, fake.requests("POST", "/jobs")))  # noqa: E731
        code, _, err = interrupted_when(creates, there, fake, *START)

        assert 130 == code
        assert b"interrupted; what was created is removed" in err
        assert [] == standing(fake, "first")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_signal_before_everything_is_created_takes_all_back(
        self, there: Home, fake: FakeKube, controllers: Controllers, number: signal.Signals
    ) -> None:
        """Of a cancelled pipeline, a closed terminal; once more, it does not disturb that."""
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        removes = fake.fail(Slow(0.2, 100), method="DELETE", times=None)
        with there.started(*START) as process:
            fake.wait_for(lambda: any(map(really, fake.requests("POST", "/jobs"))))
            process.send_signal(number)
            fake.wait_for(lambda: removes.hits)
            process.send_signal(number)
            _, err = process.communicate(timeout=60)

        assert 128 + signal.SIGTERM == process.returncode, err
        assert b"interrupted; what was created is removed" in err
        assert [] == standing(fake, "first")

    def test_a_terminal_that_is_closed_while_everything_is_created(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """Nobody reads any more what is said: all is taken back nevertheless."""
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        with there.started(*START) as process:
            fake.wait_for(lambda: any(map(really, fake.requests("POST", "/jobs"))))
            process.stdout.close()
            process.stderr.close()
            process.send_signal(signal.SIGHUP)
            process.wait(60)

        assert [] == standing(fake, "first")

    def test_ctrl_c_again_while_that_is_removed(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """A person who does not want to wait is told how to remove the rest."""
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        removes = fake.fail(Hang(), method="DELETE", times=None)
        with there.started(*START, "-n", "default") as process:
            fake.store.create("ServiceAccount", {"metadata": {"name": "default"}})
            fake.wait_for(lambda: any(map(really, fake.requests("POST", "/jobs"))))
            interrupt(process.pid)
            fake.wait_for(lambda: removes.hits)
            interrupt(process.pid)
            _, err = process.communicate(timeout=60)

        assert 130 == process.returncode, err
        assert b"to remove the rest: status-ctl delete first -n default" in err

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
        with there.started(*START) as process:
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
        made = lambda: fake.store.has_namespace("status-reporter-first")  # noqa: E731
        code, _, err = interrupted_when(made, there, fake, *START)

        assert 130 == code
        assert b"interrupted; what was created is removed" in err
        assert not fake.store.has_namespace("status-reporter-first")

    def test_who_may_not_bind_every_role_is_asked_about_roles_that_are_not_there_yet(
        self, there: Home, fake: FakeKube, controllers: Controllers
    ) -> None:
        """The API server calls the Role that it does not find a RoleBinding, as in these words."""
        for role in ("first-aggregator", "first-plugin"):
            words = f'rolebindings.rbac.authorization.k8s.io "{role}" not found'
            fake.fail(
                Answer(404, said=words),
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
        assert "no permission to grant jobs/status: verdicts are not written on the Jobs" in err
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
            (("--node", ""), 2, "no node is named in ''"),
            (("--node", ","), 2, "no node is named in ','"),
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
