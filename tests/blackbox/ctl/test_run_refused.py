"""`status-ctl run` that cannot start: all that is wrong is said in one go, and nothing stays."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.blackbox.ctl.launched import RUN_LABEL, standing
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

Prepare = Callable[[FakeKube], object]

OWN = "status-reporter-first"
MISTAKE = "status-ctl: broken.yaml: line 1: not an object"
REFUSED = "status-ctl: the run cannot be started:"
TAKEN = "choose another --name, or delete the run that uses it"
IN_USE = "  namespace default has a run named first; choose another --name"
NAMESPACE_IN_USE = f'  namespace/{OWN}: namespaces "{OWN}" already exists; {TAKEN}'
NO_NODE = "  --node nodel: there is no such node"
NO_SECRET = "  --image-pull-secret mirror: there is no such Secret in namespace"
QUOTA = 'pods "x" is forbidden: exceeded quota'


@pytest.fixture(autouse=True)
def _files(there: Home) -> None:
    write(there, "broken.yaml", "[]")
    write(there, "kernel.yaml", EACH_NODE)
    write(there, "expired", "https://store/k?Signature=5ec2e7&Expires=99")
    write(there, "plain", "http://store/5ec2e7")
    write(there, "theirs.json", "{}")


def refusing(path: str, method: str = "POST", code: int = 403, **more: Any) -> Prepare:
    """Let the API server refuse this every time."""
    said = {"said": more.pop("said")} if "said" in more else {}
    return lambda fake: fake.fail(
        Answer(code, **said), method=method, path=path, times=None, **more
    )


def having(kind: str, name: str, **more: Any) -> Prepare:
    """Create something that is somebody else's."""
    return lambda fake: fake.store.create(kind, {"metadata": {"name": name, **more}})


ACCOUNT = having("ServiceAccount", "default")
"""The namespace `default` can have Pods."""
RUN_THERE = having("ConfigMap", "first", labels={RUN_LABEL: "first"})
OWN_THERE = having("Namespace", OWN)
GOING = having("Namespace", OWN, deletionTimestamp="2026-01-01T00:00:00Z")


CROWDED = [
    *(ACCOUNT, having("ConfigMap", "first"), having("Service", "first")),
    refusing("/pods", said=QUOTA),
]
PROBLEMS = [
    f'  configmap/first: configmaps "first" already exists; {TAKEN}',
    f'  service/first: services "first" already exists; {TAKEN}',
    f"  the aggregator: its Pod would be refused: {QUOTA}",
    f"  plugin quota: its Pod would be refused: {QUOTA}",
    f"{NO_SECRET} default",
]


@pytest.mark.parametrize(
    ("prepare", "words", "code", "lines"),
    [
        pytest.param(
            CROWDED,
            "-f quota.yaml -n default --image-pull-secret mirror",
            1,
            [REFUSED, *PROBLEMS],
            id="a namespace that is there",
        ),
        pytest.param(
            CROWDED,
            "-f quota.yaml -f broken.yaml -n default --node nodel --image-pull-secret mirror",
            2,
            [MISTAKE, REFUSED, *PROBLEMS, NO_NODE],
            id="a definition, and the namespace for those that are right",
        ),
        pytest.param(
            [],
            "-f quota.yaml -f broken.yaml --node nodel --image-pull-secret mirror",
            2,
            [MISTAKE, REFUSED, f"{NO_SECRET} {OWN}", NO_NODE],
            id="a namespace is not made to see what only it could show",
        ),
        pytest.param(
            [RUN_THERE, OWN_THERE],
            "-f quota.yaml -f broken.yaml",
            2,
            [MISTAKE, REFUSED, IN_USE, NAMESPACE_IN_USE],
            id="the name is in use, where other commands look first and as a namespace",
        ),
        pytest.param(
            [GOING],
            "-f quota.yaml -f broken.yaml",
            2,
            [MISTAKE],
            id="a namespace that is just going is not in use",
        ),
        pytest.param(
            [refusing("/namespaces", said="no")],
            "-f quota.yaml -f broken.yaml",
            2,
            [MISTAKE, REFUSED, f"  namespace/{OWN}: no; -n uses a namespace that exists"],
            id="no right to make namespaces",
        ),
        pytest.param(
            [RUN_THERE],
            "-f kernel.yaml --node nodel",
            1,
            [REFUSED, IN_USE, NO_NODE],
            id="the name and a node",
        ),
        pytest.param(
            [OWN_THERE],
            "-f kernel.yaml --node nodel",
            1,
            [REFUSED, NAMESPACE_IN_USE, NO_NODE],
            id="the namespace and a node",
        ),
        pytest.param(
            [],
            "-f quota.yaml -n nowhere",
            1,
            [REFUSED, "  there is no namespace nowhere; --create-namespace creates it"],
            id="no such namespace, once",
        ),
        pytest.param(
            [having("Namespace", "checks")],
            "-f quota.yaml -n checks --create-namespace",
            1,
            [
                REFUSED,
                '  namespace/checks: namespaces "checks" already exists; '
                "leave out --create-namespace to use it",
            ],
            id="a namespace to be created exists: another name would change nothing",
        ),
        pytest.param([], "-f broken.yaml -n default", 2, [MISTAKE], id="nothing but mistakes"),
        pytest.param(
            [],
            "-f quota.yaml -f broken.yaml --upload-url-file plain --upload-ca plain",
            2,
            [
                MISTAKE,
                "the upload URL does not begin with https://",
                "plain: not a certificate in PEM",
            ],
            id="both files of the upload",
        ),
        pytest.param(
            [],
            "-f quota.yaml --expose nodeport --connection theirs.json --image-pull-secret mirror",
            2,
            [
                "status-ctl: theirs.json exists: delete it, or name another file with --connection",
                REFUSED,
                f"{NO_SECRET} {OWN}",
            ],
            id="a connection file that exists",
        ),
    ],
)
def test_all_problems_at_once(
    there: Home, fake: FakeKube, prepare: list[Prepare], words: str, code: int, lines: list[str]
) -> None:
    """2 if a file has a mistake. What was there before stays, and nothing is created."""
    for each in prepare:
        each(fake)
    found, out, err = there.run("run", "--name", "first", *words.split())

    assert (code, "", lines) == (found, out, err.splitlines())
    assert ([], []) == (posts(fake), fake.requests("DELETE"))
    assert "{}" == (there.folder / "theirs.json").read_text()


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_every_mistake_of_files_and_names(
    there: Home, fake: FakeKube, more: tuple[str, ...]
) -> None:
    """With `--dry-run` too, which then prints nothing. No word about a plugin that was not read."""
    files = ("-f", "absent.yaml", "-f", "broken.yaml", "-f", "kernel.yaml", "-f", "quota.yaml")
    asked = ("--upload-url-file", "expired", "--nodes", "disk=tape", "--plugin-env", "unread.A=1")
    code, out, err = start(there, *files, *asked, *more)

    assert (2, "") == (code, out)
    assert [
        "status-ctl: cannot read absent.yaml: No such file or directory",
        "broken.yaml: line 1: not an object",
        "quota.yaml: line 1: another plugin is named 'quota'",
        "status-ctl: plugin kernel: no node to run on",
    ] == err.splitlines()[:4]
    assert err.splitlines()[4].startswith("status-ctl: the upload URL expired at 1970-01-01T00:01")
    assert 5 == len(err.splitlines())
    assert [] == posts(fake)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--name", "First"), "status-ctl: 'First' is not a valid run name: "),
        (("--context", "nowhere"), "status-ctl: cannot read from the cluster (unavailable): "),
    ],
)
def test_a_definition_where_the_cluster_has_nothing_to_say(
    there: Home, more: tuple[str, ...], said: str
) -> None:
    """2: what is known has to be repaired first."""
    code, _, err = start(there, "-f", "broken.yaml", *more)

    assert 2 == code
    assert err.startswith(f"{MISTAKE}\n{said}")


@pytest.mark.usefixtures("controllers")
def test_of_many_nodes_the_first_are_looked_up(there: Home, fake: FakeKube) -> None:
    """Thousands may be named, and the run itself says what became of the others."""
    names = [f"absent{number}" for number in range(30)]
    code, _, err = start(there, "-f", "kernel.yaml", "--node", ",".join(names))

    assert 1 == code
    assert [f"  --node {name}: there is no such node" for name in names[:20]] == (
        err.splitlines()[1:]
    )
    assert 20 == len([e for e in fake.requests("GET") if "/nodes/" in e.path])
    assert [] == standing(fake, "first")


LOG_ANALYSIS = ("--plugin", "log-analysis")


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--timeout", "1m"), 2, "--timeout requires --wait"),
        (("--create-namespace",), 2, "--create-namespace requires -n"),
        (("--connection", "kept.json"), 2, "--connection requires --expose"),
        (("--exit",), 2, "--exit requires --upload-url-file: the results cannot be downloaded"),
        (
            ("--upload-url-file", "plain", "--exit", "--expose", "nodeport"),
            2,
            "--exit cannot be used with --expose",
        ),
        (("--upload-ca", "ca.pem"), 2, "--upload-ca requires --upload-url-file"),
        (("--plugin-env", "nobody.A=1"), 2, "no plugin of this run fits 'nobody.A'"),
        (
            (*LOG_ANALYSIS, "--plugin-env", "log-analysis.LOG_PATTERNS=- {name: a, match: ['*']}"),
            2,
            "--plugin-env log-analysis.LOG_PATTERNS: line 1: [0]: a text of * alone matches",
        ),
        (
            (*LOG_ANALYSIS, "--plugin-env", "log-analysis.LOG_HOURS=1d"),
            2,
            "--plugin-env log-analysis.LOG_HOURS is not a number from 1 to 168",
        ),
        (("--aggregator-node-selector", "disk"), 2, "not a label KEY=VALUE: 'disk'"),
        (("--storage", "much"), 2, "not a size like 64Mi or 1G: 'much'"),
        (("--plugin-timeout", "0"), 2, "not a time between 1s and 366 days"),
        (("--max-nodes-at-once", "0"), 2, "not a number of at least 1: '0'"),
        (("--max-nodes-at-once", "all"), 2, "not a number of at least 1: 'all'"),
        (("--node", ","), 2, "no node is named in ','"),
        (("--context", "nowhere"), 4, "cannot read from the cluster (unavailable)"),
    ],
)
def test_wrong_usage(
    there: Home, fake: FakeKube, more: tuple[str, ...], code: int, said: str
) -> None:
    """Nothing is created."""
    found, out, err = start(there, *more)

    assert (code, "") == (found, out)
    assert said in err
    assert [] == posts(fake)


def test_who_may_not_list_nodes_is_told_what_to_do(there: Home, fake: FakeKube) -> None:
    refusing("/nodes", "GET")(fake)
    code, _, err = start(there, "-f", "kernel.yaml")

    assert 4 == code
    assert "Name the nodes instead: --node NAME,..." in err
    assert [] == posts(fake)


@pytest.mark.usefixtures("controllers")
class TestTakenBack:
    """What was created before the refusal."""

    @pytest.mark.parametrize(
        ("prepare", "more", "said"),
        [
            pytest.param(
                refusing("/jobs", said="Job is forbidden by a policy"),
                (),
                "\n  plugin quota: its Job would be refused: Job is forbidden by a policy\n",
                id="a policy accepts a Pod, but no Job that makes it",
            ),
            pytest.param(refusing("/services"), (), "\n  service/first: ", id="a check fails"),
            pytest.param(
                refusing("/jobs", where=really),
                ("-n", "default"),
                "the run cannot be started:\n  job/first: ",
                id="half way",
            ),
            pytest.param(
                refusing("/jobs", where=really, code=503),
                (),
                "\n  job/first: scripted fault",
                id="an API server that goes away",
            ),
        ],
    )
    def test_nothing_of_the_run_stays(
        self, there: Home, fake: FakeKube, prepare: Prepare, more: tuple[str, ...], said: str
    ) -> None:
        """Its namespace goes again; nothing that was there before goes with it."""
        ACCOUNT(fake)
        having("Role", "theirs")(fake)
        prepare(fake)
        code, _, err = start(there, *more)

        assert 1 == code
        assert said in err
        assert [] == standing(fake, "first")
        assert "theirs" == fake.store.get("Role", "default", "theirs")["metadata"]["name"]

    def test_a_run_that_is_deleted_while_it_is_created(self, there: Home, fake: FakeKube) -> None:
        """Its plan has gone: an aggregator without it would start again and again."""
        ACCOUNT(fake)

        def deletes(entry: Any) -> bool:
            if really(entry):
                fake.store.delete("ConfigMap", "default", "first")
            return False

        fake.fail(Answer(), method="POST", path="/jobs", where=deletes)
        code, _, err = start(there, "-n", "default")

        assert 1 == code
        assert "the run was deleted meanwhile; what was created is removed" in err
        assert [] == standing(fake, "first")

    def test_what_cannot_be_taken_back_is_named(self, there: Home, fake: FakeKube) -> None:
        """A person has to know what is left."""
        refusing("/services")(fake)
        refusing("/namespaces", "DELETE")(fake)
        code, _, err = start(there)

        assert 1 == code
        assert f"status-ctl: not removed: namespace/{OWN}: scripted fault" in err

    def test_ctrl_c(self, there: Home, fake: FakeKube) -> None:
        """Whatever is just being waited for."""
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        creates = lambda: any(map(really, fake.requests("POST", "/jobs")))  # noqa: E731
        code, _, err = interrupted_when(creates, there, fake, *START)

        assert 130 == code
        assert b"interrupted; what was created is removed" in err
        assert [] == standing(fake, "first")

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
    def test_a_signal(self, there: Home, fake: FakeKube, number: signal.Signals) -> None:
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

    def test_a_terminal_that_is_closed(self, there: Home, fake: FakeKube) -> None:
        """Nobody reads any more what is said: all is taken back nevertheless."""
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        with there.started(*START) as process:
            fake.wait_for(lambda: any(map(really, fake.requests("POST", "/jobs"))))
            process.stdout.close()
            process.stderr.close()
            process.send_signal(signal.SIGHUP)
            process.wait(60)

        assert [] == standing(fake, "first")

    def test_ctrl_c_again_while_that_is_removed(self, there: Home, fake: FakeKube) -> None:
        """A person who does not want to wait is told how to remove the rest."""
        ACCOUNT(fake)
        fake.fail(Hang(), method="POST", path="/jobs", where=really)
        removes = fake.fail(Hang(), method="DELETE", times=None)
        with there.started(*START, "-n", "default") as process:
            fake.wait_for(lambda: any(map(really, fake.requests("POST", "/jobs"))))
            interrupt(process.pid)
            fake.wait_for(lambda: removes.hits)
            interrupt(process.pid)
            _, err = process.communicate(timeout=60)

        assert 130 == process.returncode, err
        assert b"to remove the rest: status-ctl delete first -n default" in err


def granting(entry: Any) -> bool:
    """Whether it is a Role that may write conditions on Jobs."""
    rules = entry.json["rules"]
    return any("jobs/status" in r["resources"] and "patch" in r["verbs"] for r in rules)


@pytest.mark.usefixtures("controllers")
class TestStartsAllTheSame:
    """What is in the way only a little."""

    def test_a_pull_secret_of_a_definition_that_is_missing(
        self, there: Home, fake: FakeKube
    ) -> None:
        """It is said with each plugin: the Pod may do without."""
        ACCOUNT(fake)
        for name in ("present", "mirror"):
            having("Secret", name)(fake)
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

    def test_who_may_not_read_the_plan(self, there: Home, fake: FakeKube) -> None:
        """Whether it was deleted meanwhile is not known then."""
        refusing(f"/namespaces/{OWN}/configmaps/first", "GET")(fake)
        code, _, err = start(there)

        assert 0 == code, err

    def test_a_namespace_that_is_just_going_is_waited_for(
        self, there: Home, fake: FakeKube
    ) -> None:
        """As the one of a run that was deleted or refused a moment ago."""
        GOING(fake)
        with there.started(*START) as process:
            looks = f"/namespaces/{OWN}"
            fake.wait_for(lambda: [e for e in fake.requests("GET", looks) if e.status == 200])
            fake.store.delete("Namespace", "", OWN)
            _, err = process.communicate(timeout=60)

        assert 0 == process.returncode, err
        assert f"namespace/{OWN} is still being deleted; waiting\n".encode() in err
        assert 1 == posts(fake).count("namespaces")

    def test_a_conflict_without_anything_of_that_name(self, there: Home, fake: FakeKube) -> None:
        """As of two writers of one quota, or of an object that went between two requests."""
        fake.fail(Answer(409), method="POST", path="/configmaps", where=really)
        code, _, err = start(there)

        assert 0 == code, err
        assert 1 == posts(fake).count("configmaps")

    def test_who_may_not_bind_every_role_is_asked_about_roles_that_are_not_there_yet(
        self, there: Home, fake: FakeKube
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
        self, there: Home, fake: FakeKube
    ) -> None:
        """As the administrator of a namespace."""
        refusing("/roles", where=granting)(fake)
        code, _, err = start(there)

        assert 0 == code, err
        assert "no permission to grant jobs/status: verdicts are not written on the Jobs" in err
        made = fake.store.get("ConfigMap", OWN, "first")
        assert json.loads(made["data"]["launch.json"])["writeConditions"] is False
